/* The vGPU's memory: its limit, and the usage of all its processes. */
#include "status.h"

static unsigned long long unused(const struct vgpu_status *v)
{
	return v->vram_used < v->vram_limit ? v->vram_limit - v->vram_used : 0;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	STATUS(device, memory, v);
	memory->total = v.vram_limit;
	memory->used = v.vram_used;
	memory->free = unused(&v);
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	VERSIONED(device, memory, VERSION_nvmlMemory_v2_v2);
	STATUS(device, memory, v);
	memory->total = v.vram_limit;
	memory->reserved = 0; /* programs can use all of a vGPU's memory */
	memory->used = v.vram_used;
	memory->free = unused(&v);
	free_vgpu_status(&v);
	return NVML_SUCCESS;
}
