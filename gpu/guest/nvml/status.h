/* What changes from moment to moment: each call asks the worker. */
#ifndef BASALT_NVML_STATUS_H
#define BASALT_NVML_STATUS_H

#include "state.h"

/* Declares status, the state of device now, once the arguments are right; the
 * caller frees it. */
#define STATUS(device, out, status)                                                                                    \
	struct vgpu_status status;                                                                                     \
	DEVICE(device, out);                                                                                           \
	TRY(nvml_status(&status))

#endif
