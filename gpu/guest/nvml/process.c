/* The processes of this VM that compute on the vGPU. */
#include <string.h>

#include "status.h"

#define NO_INSTANCE 0xffffffffu /* the vGPU is not a MIG instance */

/* Reports whether a process is a compute process. Processes without memory only query the vGPU. */
static int computes(const struct process_info *p)
{
	return p->vram > 0;
}

/* Copies up to *count entries, whose first size bytes have the layout of nvmlProcessDetail_v1_t,
 * and sets *count. */
static nvmlReturn_t processes(nvmlDevice_t device, unsigned int *count, void *infos, size_t size)
{
	unsigned int room, n = 0;

	STATUS(device, count, v);
	room = infos ? *count : 0;
	for (uint32_t i = 0; i < v.process_count; i++) {
		nvmlProcessDetail_v1_t p = {v.processes[i].pid, v.processes[i].vram, NO_INSTANCE, NO_INSTANCE, 0};

		if (!computes(&v.processes[i]))
			continue;
		if (n < room)
			memcpy((char *)infos + n * size, &p, size);
		n++;
	}
	free_vgpu_status(&v);
	*count = n;
	return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define PROCESSES(function, type)                                                                                      \
	NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *infoCount, type *infos)                      \
	{                                                                                                              \
		return processes(device, infoCount, infos, sizeof *infos);                                             \
	}
PROCESSES(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)

/* There are no graphics processes, and there is no MPS. */
#define NO_PROCESSES(function, type)                                                                                   \
	NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *infoCount, type *infos)                      \
	{                                                                                                              \
		(void)infos;                                                                                           \
		DEVICE(device, infoCount);                                                                             \
		*infoCount = 0;                                                                                        \
		return NVML_SUCCESS;                                                                                   \
	}
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

NVML_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *plist)
{
	enum { COMPUTE, GRAPHICS, MPS };

	VERSIONED(device, plist, VERSION_nvmlProcessDetailList_v1);
	if (plist->mode > MPS)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (plist->mode == COMPUTE)
		return processes(device, &plist->numProcArrayEntries, plist->procArray, sizeof *plist->procArray);
	plist->numProcArrayEntries = 0;
	return NVML_SUCCESS;
}
