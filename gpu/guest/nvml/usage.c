/* The vGPU's utilization, now and in the samples that the host stores. */
#include <string.h>

#include "status.h"

NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	STATUS(device, utilization, v);
	utilization->gpu = v.gpu_utilization;
	utilization->memory = v.memory_utilization;
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *pDynamicPstatesInfo)
{
	STATUS(device, pDynamicPstatesInfo, v);
	memset(pDynamicPstatesInfo, 0, sizeof *pDynamicPstatesInfo);
	pDynamicPstatesInfo->utilization[0].bIsPresent = 1;
	pDynamicPstatesInfo->utilization[0].percentage = v.gpu_utilization;
	for (uint32_t i = 0; i < v.reading_count; i++) { /* the host does not always know it */
		if (v.readings[i].key != BSLT_READING_MEMORY_UTILIZATION)
			continue;
		pDynamicPstatesInfo->utilization[1].bIsPresent = 1;
		pDynamicPstatesInfo->utilization[1].percentage = v.memory_utilization;
	}
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}

/* Returns the samples after a time, oldest first, as many as there is room for. Without an array
 * it returns their number. */
NVML_API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long lastSeenTimeStamp,
					   nvmlValueType_t *sampleValType, unsigned int *sampleCount, nvmlSample_t *samples)
{
	unsigned int n = 0;

	DEVICE(device, type < NVML_SAMPLINGTYPE_COUNT && sampleValType ? sampleCount : NULL);
	if (type != NVML_GPU_UTILIZATION_SAMPLES)
		return NVML_ERROR_NOT_SUPPORTED;
	STATUS(device, sampleCount, v);
	for (uint32_t i = 0; i < v.sample_count && (!samples || n < *sampleCount); i++) {
		if (v.samples[i].at <= lastSeenTimeStamp)
			continue;
		if (samples) {
			memset(&samples[n], 0, sizeof samples[n]);
			samples[n].timeStamp = v.samples[i].at;
			samples[n].sampleValue.uiVal = v.samples[i].gpu_utilization;
		}
		n++;
	}
	free_vgpu_status(&v);
	if (n == 0 && (!samples || *sampleCount > 0))
		return NVML_ERROR_NOT_FOUND;
	*sampleValType = NVML_VALUE_TYPE_UNSIGNED_INT;
	*sampleCount = n;
	return NVML_SUCCESS;
}

/* Returns the time of the host's last sample, or 0 if the host does not send samples. */
static unsigned long long last_sample_time(const struct vgpu_status *v)
{
	return v->sample_count ? v->samples[v->sample_count - 1].at : 0;
}

/* Calls note for each running process that has used the vGPU, and returns their number. */
static unsigned int busy(const struct vgpu_status *v, void *out, void (*note)(void *out, unsigned int i, const struct accounted_process *, unsigned long long at))
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < v->accounted_count; i++) {
		if (v->accounted[i].end)
			continue;
		if (note)
			note(out, n, &v->accounted[i], last_sample_time(v));
		n++;
	}
	return n;
}

static void note_sample(void *out, unsigned int i, const struct accounted_process *p, unsigned long long at)
{
	((nvmlProcessUtilizationSample_t *)out)[i] = (nvmlProcessUtilizationSample_t){.pid = p->pid, .timeStamp = at, .smUtil = p->gpu_utilization};
}

static void note_info(void *out, unsigned int i, const struct accounted_process *p, unsigned long long at)
{
	((nvmlProcessUtilizationInfo_v1_t *)out)[i] = (nvmlProcessUtilizationInfo_v1_t){.timeStamp = at, .pid = p->pid, .smUtil = p->gpu_utilization};
}

/* Returns the utilization of processes. If there is too little room, it only sets *count to their
 * number. */
static nvmlReturn_t processes(nvmlDevice_t device, unsigned long long since, unsigned int *count, void *out,
			      void (*note)(void *, unsigned int, const struct accounted_process *, unsigned long long))
{
	unsigned int room, n;
	nvmlReturn_t r = NVML_SUCCESS;

	STATUS(device, count, v);
	room = out ? *count : 0;
	n = last_sample_time(&v) > since ? busy(&v, NULL, NULL) : 0;
	if (n == 0)
		r = v.accounted_count || v.sample_count ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
	else if (n > room)
		r = NVML_ERROR_INSUFFICIENT_SIZE;
	else
		busy(&v, out, note);
	*count = n;
	free_vgpu_status(&v);
	return r;
}

NVML_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
						      unsigned int *processSamplesCount, unsigned long long lastSeenTimeStamp)
{
	return processes(device, lastSeenTimeStamp, processSamplesCount, utilization, note_sample);
}

NVML_API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *procesesUtilInfo)
{
	VERSIONED(device, procesesUtilInfo, VERSION_nvmlProcessesUtilizationInfo_v1);
	return processes(device, procesesUtilInfo->lastSeenTimeStamp, &procesesUtilInfo->processSamplesCount, procesesUtilInfo->procUtilArray, note_info);
}
