/* Accounting of processes, which the host always does. It includes processes that have ended. */
#include <stdbool.h>

#include "status.h"

NVML_API nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *bufferSize)
{
	unsigned long long most;

	DEVICE(device, bufferSize);
	TRY(nvml_reading(BSLT_READING_ACCOUNTED_ENDED, &most));
	*bufferSize = (unsigned int)most;
	return NVML_SUCCESS;
}

/* Old hosts do not support accounting. */
NVML_API nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
	unsigned int most;
	nvmlReturn_t r;

	DEVICE(device, mode);
	r = nvmlDeviceGetAccountingBufferSize(device, &most);
	if (r && r != NVML_ERROR_NOT_SUPPORTED)
		return r;
	*mode = r ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

/* Reports whether a later process had the same number: only the last one is returned. */
static bool superseded(const struct vgpu_status *v, uint32_t i)
{
	for (uint32_t later = i + 1; later < v->accounted_count; later++)
		if (v->accounted[later].pid == v->accounted[i].pid)
			return true;
	return false;
}

NVML_API nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
	unsigned int room, n = 0;

	STATUS(device, count, v);
	room = pids ? *count : 0;
	for (uint32_t i = 0; i < v.accounted_count; i++) {
		if (superseded(&v, i))
			continue;
		if (n < room)
			pids[n] = v.accounted[i].pid;
		n++;
	}
	free_vgpu_status(&v);
	*count = n;
	return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlAccountingStats_t stats_of(const struct accounted_process *p, unsigned long long now)
{
	unsigned long long end = p->end ? p->end : now, lived = end > p->start ? end - p->start : 0; /* microseconds */
	unsigned long long busy = p->gpu_nanos / 1000, percent = lived ? busy * 100 / lived : 0;

	return (nvmlAccountingStats_t){
		.gpuUtilization = percent < 100 ? (unsigned int)percent : 100,
		.memoryUtilization = (unsigned int)NVML_VALUE_NOT_AVAILABLE,
		.maxMemoryUsage = p->peak_vram,
		.time = p->end ? lived / 1000 : 0, /* it is 0 for a running process */
		.startTime = p->start,
		.isRunning = !p->end,
	};
}

NVML_API nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
	nvmlReturn_t r = NVML_ERROR_NOT_FOUND;

	STATUS(device, stats, v);
	for (uint32_t i = v.accounted_count; i-- > 0 && r;) {
		if (v.accounted[i].pid == pid) {
			/* The last sample has the host's time, and so has the process's start. */
			*stats = stats_of(&v.accounted[i], v.sample_count ? v.samples[v.sample_count - 1].at : (unsigned long long)nvml_now());
			r = NVML_SUCCESS;
		}
	}
	free_vgpu_status(&v);
	return r;
}
