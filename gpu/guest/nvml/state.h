/* The NVML session: no CUDA context is made, and none of the program's CUDA
 * state is shared. */
#ifndef BASALT_NVML_STATE_H
#define BASALT_NVML_STATE_H

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
int nvml_attribute(int attribute);
nvmlReturn_t nvml_text(char *out, unsigned int length, const char *text);

#endif
