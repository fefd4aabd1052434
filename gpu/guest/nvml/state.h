/* The NVML session. It creates no CUDA context, and does not share the program's CUDA state. */
#ifndef BASALT_NVML_STATE_H
#define BASALT_NVML_STATE_H

#include "basalt_abi.h"
#include "nvml.h"
#include "query.h"

/* Read only between nvmlInit and nvmlShutdown. */
extern struct device_info nvml_device;

/* Returns NVML_SUCCESS if there is a session. */
nvmlReturn_t nvml_ready(void);
/* Checks that too, and that the handle is that of the device. */
nvmlReturn_t nvml_handle(nvmlDevice_t device);
nvmlDevice_t nvml_the_device(void);
/* Gets the vGPU's current state. The caller calls free_vgpu_status. */
nvmlReturn_t nvml_status(struct vgpu_status *out);
/* Gets a current reading (BSLT_READING_…). It is NVML_ERROR_NOT_SUPPORTED if the GPU does not
 * provide it. */
nvmlReturn_t nvml_reading(unsigned int key, unsigned long long *value);
/* Returns a device attribute, or 0 if it is unknown. */
int nvml_attribute(int attribute);
/* Checks that the first word of a struct is one of n versions. */
nvmlReturn_t nvml_version(const void *with_version, const unsigned int *versions, int n);
/* Copies a text with its NUL, or nothing if it does not fit. */
nvmlReturn_t nvml_text(char *out, unsigned int length, const char *text);
/* Returns the time in microseconds since 1970. */
long long nvml_now(void);

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		nvmlReturn_t try_result = (call);                                                                      \
		if (try_result)                                                                                        \
			return try_result;                                                                             \
	} while (0)
/* Begins every function of a device: checks the handle and the pointer to the result. */
#define DEVICE(device, out)                                                                                            \
	do {                                                                                                           \
		TRY(nvml_handle(device));                                                                              \
		if (!(out))                                                                                            \
			return NVML_ERROR_INVALID_ARGUMENT;                                                            \
	} while (0)
/* Begins a function with a struct of the version NAME_vN. */
#define VERSIONED(device, out, version)                                                                                \
	do {                                                                                                           \
		TRY(nvml_handle(device));                                                                              \
		TRY(nvml_version(out, (const unsigned int[]){version}, 1));                                            \
	} while (0)

#endif
