/* The NVML session: no CUDA context is made, and none of the program's CUDA
 * state is shared. */
#ifndef BASALT_NVML_STATE_H
#define BASALT_NVML_STATE_H

#include "basalt_abi.h"
#include "nvml.h"
#include "query.h"

/* Read only between nvmlInit and nvmlShutdown. */
extern struct device_info nvml_device;

/* NVML_SUCCESS once there is a session. */
nvmlReturn_t nvml_ready(void);
/* That, and the handle is the one that there is. */
nvmlReturn_t nvml_handle(nvmlDevice_t device);
nvmlDevice_t nvml_the_device(void);
/* The vGPU's state now; free_vgpu_status it. */
nvmlReturn_t nvml_status(struct vgpu_status *out);
/* What the card tells of itself now (BSLT_READING_…), NVML_ERROR_NOT_SUPPORTED if it does not. */
nvmlReturn_t nvml_reading(unsigned int key, unsigned long long *value);
/* The device attribute, 0 where it is not known. */
int nvml_attribute(int attribute);
/* Whether the first word of a struct is one of n versions. */
nvmlReturn_t nvml_version(const void *with_version, const unsigned int *versions, int n);
/* Copies a text with its end, or nothing. */
nvmlReturn_t nvml_text(char *out, unsigned int length, const char *text);
/* Microseconds since 1970. */
long long nvml_now(void);

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		nvmlReturn_t try_result = (call);                                                                      \
		if (try_result)                                                                                        \
			return try_result;                                                                             \
	} while (0)
/* Every function of a device begins so: the handle, and where the answer goes. */
#define DEVICE(device, out)                                                                                            \
	do {                                                                                                           \
		TRY(nvml_handle(device));                                                                              \
		if (!(out))                                                                                            \
			return NVML_ERROR_INVALID_ARGUMENT;                                                            \
	} while (0)
/* And one that takes a struct of the version NAME_vN. */
#define VERSIONED(device, out, version)                                                                                \
	do {                                                                                                           \
		TRY(nvml_handle(device));                                                                              \
		TRY(nvml_version(out, (const unsigned int[]){version}, 1));                                            \
	} while (0)

#endif
