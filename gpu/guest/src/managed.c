/* Managed memory: host memory that kernels and the program use in place. It does not move, so
 * both may use it at any time. Prefetches move nothing, and advice is only stored and
 * reported. */
#include <string.h>

#include "capture.h"

enum { ATTRIBUTE_MANAGED_MEMORY = 83 };

CUDA_API CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct range r = {.size = bytesize, .flags = flags, .owned = true, .managed = true};

	SESSION(s);
	if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_attribute(ATTRIBUTE_MANAGED_MEMORY))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&r.context));
	TRY(host_allocate(s, &r, true));
	*dptr = r.address;
	return 0;
}

static int free_at(struct session *s, uint64_t address, bool variables)
{
	struct range r;

	if (!range_find(SPACE_HOST, address, &r) || r.variables != variables)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(host_release(s, address, true));
	advice_forget(address, address + r.size);
	return 0;
}

int managed_free(struct session *s, uint64_t address)
{
	return free_at(s, address, false);
}

int managed_variables_free(struct session *s, uint64_t address)
{
	return free_at(s, address, true);
}

int managed_variables_allocate(struct session *s, uint64_t context, uint64_t size, uint64_t *address)
{
	struct range r = {.size = size ? size : 1, .flags = CU_MEM_ATTACH_GLOBAL, .context = context, .owned = true, .managed = true, .variables = true};

	TRY(host_allocate(s, &r, true));
	*address = r.address;
	return 0;
}

void managed_variables_drop(struct session *s, uint64_t context)
{
	uint64_t address;

	while ((address = range_variables(context)) != 0)
		if (managed_variables_free(s, address) != 0)
			return;
}

bool managed_range(uint64_t address, size_t n)
{
	struct range r;

	return n && range_find(SPACE_HOST, address, &r) && r.managed && n <= r.size - (address - r.address);
}

/* Reports whether a location exists: device 0 or the processor. */
static bool place_exists(int device)
{
	return device == 0 || device == CU_DEVICE_CPU;
}

int device_at(CUmemLocation l)
{
	switch (l.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: return l.id == 0 ? 0 : CU_DEVICE_INVALID;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CU_DEVICE_CPU;
	default: return CU_DEVICE_INVALID;
	}
}

static int prefetch(CUdeviceptr p, size_t count, int device, CUstream h)
{
	uint64_t stream, context;

	SESSION(s);
	(void)s;
	if (!managed_range(p, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (!place_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(stream_resolve(h, &stream, &context));
	return advice_prefetched(p, p + count, device);
}

CUDA_API CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return prefetch(devPtr, count, dstDevice, hStream);
}

CUDA_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
					CUstream hStream)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : prefetch(devPtr, count, device_at(location), hStream);
}

CUDA_API CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	bool wants_device = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
			    advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;

	SESSION(s);
	(void)s;
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY || !managed_range(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (wants_device && !place_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return advice_set(devPtr, devPtr + count, advice, device);
}

CUDA_API CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	return cuMemAdvise(devPtr, count, advice, device_at(location));
}

/* Stores one attribute of a range, in size bytes. */
static int attribute(void *data, size_t size, int which, const struct advice *a)
{
	int *list = data, value, n = 0;

	if (!data || size == 0 || size % sizeof(int) || (which != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && size != sizeof(int)))
		return CUDA_ERROR_INVALID_VALUE;
	switch (which) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: value = a->read_mostly; break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: value = a->preferred; break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: value = a->prefetched; break;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		for (size_t i = 0; i < size / sizeof(int); i++)
			list[i] = CU_DEVICE_INVALID;
		if (a->by_device)
			list[n++] = 0;
		if (a->by_host && (size_t)n < size / sizeof(int))
			list[n] = CU_DEVICE_CPU;
		return 0;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(data, &value, sizeof value);
	return 0;
}

CUDA_API CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute_, CUdeviceptr devPtr,
					 size_t count)
{
	struct advice a;

	SESSION(s);
	(void)s;
	if (!managed_range(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	advice_get(devPtr, devPtr + count, &a);
	return attribute(data, dataSize, attribute_, &a);
}

CUDA_API CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
					  size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	struct advice a;

	SESSION(s);
	(void)s;
	if (!data || !dataSizes || !attributes || numAttributes == 0 || !managed_range(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	advice_get(devPtr, devPtr + count, &a);
	for (size_t i = 0; i < numAttributes; i++)
		TRY(attribute(data[i], dataSizes[i], attributes[i], &a));
	return 0;
}

/* Has no effect: all may use the memory at any time. */
CUDA_API CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	uint64_t stream, context;
	struct range r;

	SESSION(s);
	(void)s;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!range_find(SPACE_HOST, dptr, &r) || !r.managed || r.address != dptr || (length && length != r.size))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_MEM_ATTACH_SINGLE && (!hStream || hStream == CU_STREAM_LEGACY))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(hStream, &stream, &context);
}
