/* What changes from moment to moment: each call asks the worker. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define STATUS(device, out, status)                                                                                    \
	struct vgpu_status status;                                                                                     \
	do {                                                                                                           \
		nvmlReturn_t status_result = nvml_handle(device);                                                      \
		if (status_result)                                                                                     \
			return status_result;                                                                          \
		if (!(out))                                                                                            \
			return NVML_ERROR_INVALID_ARGUMENT;                                                            \
		if ((status_result = nvml_status(&status)) != NVML_SUCCESS)                                            \
			return status_result;                                                                          \
	} while (0)

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	STATUS(device, memory, v);
	memory->total = v.vram_limit;
	memory->used = v.vram_used;
	memory->free = v.vram_used < v.vram_limit ? v.vram_limit - v.vram_used : 0;
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	if (memory && memory->version != (sizeof *memory | 2u << 24))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	STATUS(device, memory, v);
	memory->total = v.vram_limit;
	memory->reserved = 0;
	memory->used = v.vram_used;
	memory->free = v.vram_used < v.vram_limit ? v.vram_limit - v.vram_used : 0;
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	STATUS(device, utilization, v);
	utilization->gpu = v.gpu_utilization;
	utilization->memory = v.memory_utilization;
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *temp)
{
	STATUS(device, sensor == 0 ? temp : NULL, v);
	*temp = v.temperature;
	free_vgpu_status(&v);
	return *temp ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	STATUS(device, power, v);
	*power = v.power_milliwatts;
	free_vgpu_status(&v);
	return *power ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* A process that only looks holds no memory and is no compute process. */
static int computes(const struct process_info *p)
{
	return p->vram > 0;
}

/* Copies up to *count entries of the form with that size; sets *count. */
static nvmlReturn_t processes(nvmlDevice_t device, unsigned int *count, void *infos, size_t size)
{
	unsigned int room, n = 0;

	STATUS(device, count, v);
	room = infos ? *count : 0;
	for (uint32_t i = 0; i < v.process_count; i++) {
		nvmlProcessInfo_t p = {v.processes[i].pid, v.processes[i].vram, 0xffffffffu, 0xffffffffu};

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

NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	return processes(device, count, infos, sizeof *infos);
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	return processes(device, count, infos, sizeof *infos);
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
	return processes(device, count, infos, sizeof *infos);
}

static nvmlReturn_t none(nvmlDevice_t device, unsigned int *count)
{
	nvmlReturn_t r = nvml_handle(device);

	if (r == NVML_SUCCESS && !count)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*count = 0;
	return r;
}

/* Nothing draws here, and there is no MPS. */
#define NO_PROCESSES(function)                                                                                         \
	NVML_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, void *infos)                          \
	{                                                                                                              \
		(void)infos;                                                                                           \
		return none(device, count);                                                                            \
	}
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

NVML_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	struct vgpu_status v;
	nvmlReturn_t r = nvml_status(&v);

	if (r)
		return r;
	r = NVML_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < v.process_count && r == NVML_ERROR_NOT_FOUND; i++)
		if (v.processes[i].pid == pid)
			r = nvml_text(name, length, v.processes[i].name);
	free_vgpu_status(&v);
	return r;
}
