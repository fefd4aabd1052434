/* cuPointerGetAttribute and related functions, which use the tables of ranges. */
#include <string.h>

#include "state.h"

/* CUpointer_attribute */
enum {
	ATTRIBUTE_CONTEXT = 1,
	ATTRIBUTE_MEMORY_TYPE = 2,
	ATTRIBUTE_DEVICE_POINTER = 3,
	ATTRIBUTE_HOST_POINTER = 4,
	ATTRIBUTE_SYNC_MEMOPS = 6,
	ATTRIBUTE_BUFFER_ID = 7,
	ATTRIBUTE_IS_MANAGED = 8,
	ATTRIBUTE_DEVICE_ORDINAL = 9,
	ATTRIBUTE_IS_LEGACY_IPC_CAPABLE = 10,
	ATTRIBUTE_RANGE_START = 11,
	ATTRIBUTE_RANGE_SIZE = 12,
	ATTRIBUTE_MAPPED = 13,
	ATTRIBUTE_ACCESS_FLAGS = 16,
	ATTRIBUTE_MEMPOOL_HANDLE = 17,
	ATTRIBUTE_MAPPING_SIZE = 18,
	ATTRIBUTE_MAPPING_BASE_ADDR = 19,
	ATTRIBUTE_MEMORY_BLOCK_ID = 20,
};

#define GIVE(type, value)                                                                                              \
	do {                                                                                                           \
		type give_value = (type)(value);                                                                       \
		memcpy(data, &give_value, sizeof give_value);                                                          \
		return 0;                                                                                              \
	} while (0)

/* Returns the range for RANGE_START and RANGE_SIZE: the whole reservation, if the program has
 * reserved the addresses. */
static struct range reserved_range(const struct range *r)
{
	struct range all = *r;

	if (r->memory)
		(void)reservation_find(r->address, &all.address, &all.size);
	return all;
}

static int get(void *data, int attribute, const struct range *r, bool on_device, CUdeviceptr ptr)
{
	bool reached = on_device || r->mapped || r->other;
	CUdeviceptr other = r->other + (ptr - r->address); /* if r->other is set */

	switch (attribute) {
	case ATTRIBUTE_CONTEXT: GIVE(CUcontext, handle_of(r->context));
	case ATTRIBUTE_MEMORY_TYPE: GIVE(unsigned int, on_device || r->managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
	case ATTRIBUTE_DEVICE_POINTER:
		if (!reached)
			return CUDA_ERROR_INVALID_VALUE;
		GIVE(CUdeviceptr, r->other && !r->mapped ? other : ptr);
	case ATTRIBUTE_HOST_POINTER:
		if (on_device)
			return CUDA_ERROR_INVALID_VALUE;
		GIVE(void *, (uintptr_t)(r->other && r->mapped ? other : ptr));
	case ATTRIBUTE_SYNC_MEMOPS: GIVE(unsigned int, r->sync);
	case ATTRIBUTE_BUFFER_ID: GIVE(unsigned long long, r->other && r->mapped ? r->other : r->address);
	case ATTRIBUTE_IS_MANAGED: GIVE(unsigned char, r->managed);
	case ATTRIBUTE_DEVICE_ORDINAL: GIVE(int, 0);
	case ATTRIBUTE_IS_LEGACY_IPC_CAPABLE: GIVE(unsigned char, on_device && ipc_capable(r));
	case ATTRIBUTE_RANGE_START: GIVE(void *, (uintptr_t)reserved_range(r).address);
	case ATTRIBUTE_RANGE_SIZE: GIVE(size_t, reserved_range(r).size);
	case ATTRIBUTE_MAPPED: GIVE(unsigned char, reached);
	case ATTRIBUTE_ACCESS_FLAGS: GIVE(int, r->memory ? r->access : reached ? 3u : 0u); /* READWRITE */
	case ATTRIBUTE_MEMPOOL_HANDLE: GIVE(CUmemoryPool, handle_of(r->pool));
	case ATTRIBUTE_MAPPING_SIZE: GIVE(size_t, r->size);
	case ATTRIBUTE_MAPPING_BASE_ADDR: GIVE(void *, (uintptr_t)r->address);
	case ATTRIBUTE_MEMORY_BLOCK_ID: GIVE(unsigned long long, r->memory ? r->memory : r->address);
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* Returns an attribute of addresses that are reserved but not mapped. */
static int get_reserved(void *data, int attribute, CUdeviceptr ptr)
{
	uint64_t base, size;

	if (!reservation_find(ptr, &base, &size))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case ATTRIBUTE_RANGE_START: GIVE(void *, (uintptr_t)base);
	case ATTRIBUTE_RANGE_SIZE: GIVE(size_t, size);
	case ATTRIBUTE_MAPPED: GIVE(unsigned char, 0);
	case ATTRIBUTE_ACCESS_FLAGS: GIVE(int, 0);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUDA_API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr)
{
	struct range r;

	SESSION(s);
	(void)s;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (range_find(SPACE_DEVICE, ptr, &r))
		return get(data, attribute, &r, true, ptr);
	if (range_find(SPACE_HOST, ptr, &r))
		return get(data, attribute, &r, false, ptr);
	return get_reserved(data, attribute, ptr);
}

/* Waits until earlier asynchronous copies and memsets are done. */
CUDA_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	unsigned int set;
	struct range r;

	SESSION(s);
	(void)s;
	if (!value || attribute != ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&set, value, sizeof set);
	if (!range_sync(ptr, set != 0, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return set && r.context ? cuCtxSynchronize_v2(handle_of(r.context)) : 0;
}

/* Unlike cuPointerGetAttribute it succeeds for unknown pointers, with zeros. */
CUDA_API CUresult cuPointerGetAttributes(unsigned int numAttributes, int *attributes, void **data, CUdeviceptr ptr)
{
	struct range r;
	bool dev, known;

	SESSION(s);
	(void)s;
	if (numAttributes && (!attributes || !data))
		return CUDA_ERROR_INVALID_VALUE;
	dev = range_find(SPACE_DEVICE, ptr, &r);
	known = dev || range_find(SPACE_HOST, ptr, &r);
	for (unsigned int i = 0; i < numAttributes; i++) {
		int err = known ? get(data[i], attributes[i], &r, dev, ptr) : get_reserved(data[i], attributes[i], ptr);

		if (err == 0)
			continue;
		if (err == CUDA_ERROR_NOT_SUPPORTED)
			return err;
		switch (attributes[i]) {
		case ATTRIBUTE_CONTEXT:
		case ATTRIBUTE_DEVICE_POINTER:
		case ATTRIBUTE_HOST_POINTER:
		case ATTRIBUTE_BUFFER_ID:
		case ATTRIBUTE_MEMPOOL_HANDLE:
		case ATTRIBUTE_RANGE_START:
		case ATTRIBUTE_RANGE_SIZE:
		case ATTRIBUTE_MAPPING_SIZE:
		case ATTRIBUTE_MAPPING_BASE_ADDR:
		case ATTRIBUTE_MEMORY_BLOCK_ID: memset(data[i], 0, 8); break;
		case ATTRIBUTE_ACCESS_FLAGS:
		case ATTRIBUTE_MEMORY_TYPE:
		case ATTRIBUTE_SYNC_MEMOPS: memset(data[i], 0, 4); break;
		case ATTRIBUTE_DEVICE_ORDINAL: memcpy(data[i], &(int){-2}, 4); break; /* CU_DEVICE_INVALID */
		case ATTRIBUTE_IS_MANAGED:
		case ATTRIBUTE_IS_LEGACY_IPC_CAPABLE:
		case ATTRIBUTE_MAPPED: memset(data[i], 0, 1); break;
		default: return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return 0;
}
