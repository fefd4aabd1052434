/* The system: versions, and components that do not exist here. */
#include <string.h>

#include "state.h"

#define NVML_VERSION "12.550.163.01"

NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	TRY(nvml_ready());
	return nvml_text(version, length, nvml_device.driver_version);
}

NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return nvml_text(version, length, NVML_VERSION);
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion)
{
	TRY(nvml_ready());
	if (!cudaDriverVersion)
		return NVML_ERROR_INVALID_ARGUMENT;
	*cudaDriverVersion = (int)nvml_device.cuda_version;
	return NVML_SUCCESS;
}

/* Returns the name of a process that uses the vGPU, truncated if necessary. */
NVML_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	struct vgpu_status v;
	nvmlReturn_t r = nvml_ready();

	if (r == NVML_SUCCESS && (!name || !length))
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r || (r = nvml_status(&v)) != NVML_SUCCESS)
		return r;
	r = NVML_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < v.process_count && r == NVML_ERROR_NOT_FOUND; i++) {
		if (v.processes[i].pid == pid) {
			size_t n = strnlen(v.processes[i].name, length - 1);

			memcpy(name, v.processes[i].name, n);
			name[n] = 0;
			r = NVML_SUCCESS;
		}
	}
	free_vgpu_status(&v);
	return r;
}

/* Functions that return the number of components that do not exist here. */
#define NONE(function)                                                                                                 \
	NVML_API nvmlReturn_t function(unsigned int *count)                                                            \
	{                                                                                                              \
		TRY(nvml_ready());                                                                                     \
		if (!count)                                                                                            \
			return NVML_ERROR_INVALID_ARGUMENT;                                                            \
		*count = 0;                                                                                            \
		return NVML_SUCCESS;                                                                                   \
	}
NONE(nvmlUnitGetCount)
NONE(nvmlGetExcludedDeviceCount)

NVML_API nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int index, nvmlUnit_t *unit)
{
	(void)index;
	(void)unit;
	TRY(nvml_ready());
	return NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int index, nvmlExcludedDeviceInfo_t *info)
{
	(void)index;
	(void)info;
	TRY(nvml_ready());
	return NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *hwbcCount, nvmlHwbcEntry_t *hwbcEntries)
{
	(void)hwbcEntries;
	return nvmlUnitGetCount(hwbcCount);
}
