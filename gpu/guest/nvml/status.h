/* The vGPU's changing state, for which each call asks the worker. */
#ifndef BASALT_NVML_STATUS_H
#define BASALT_NVML_STATUS_H

#include "state.h"

/* Checks the arguments, and declares status, the current state of the device. The caller frees
 * it. */
#define STATUS(device, out, status)                                                                                    \
	struct vgpu_status status;                                                                                     \
	DEVICE(device, out);                                                                                           \
	TRY(nvml_status(&status))

#endif
