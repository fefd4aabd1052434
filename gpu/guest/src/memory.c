/* Device and pinned host memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture.h"

static int allocate(struct session *s, uint64_t context, size_t size, CUdeviceptr *out)
{
	struct bslt_mem_alloc a = {context, size};
	struct answer r = call(s, BSLT_OP_MEM_ALLOC, &a, sizeof a);
	struct range range = {.address = r.value0, .size = size, .context = context};

	if (r.result)
		return r.result;
	if (range_add(SPACE_DEVICE, &range) != 0) {
		struct bslt_mem_free f = {r.value0};

		(void)call(s, BSLT_OP_MEM_FREE, &f, sizeof f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = r.value0;
	return 0;
}

CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	uint64_t context;

	SESSION(s);
	if (!dptr || bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&context));
	return allocate(s, context, bytesize, dptr);
}

CUDA_API CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
				     unsigned int ElementSizeBytes)
{
	size_t pitch = (WidthInBytes + 511) & ~(size_t)511;

	if (!pPitch || (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (WidthInBytes == 0 || Height == 0 || pitch < WidthInBytes || Height > SIZE_MAX / pitch)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuMemAlloc_v2(dptr, pitch * Height));
	*pPitch = pitch;
	return 0;
}

CUDA_API CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	struct bslt_mem_free a = {dptr};
	struct range r;

	SESSION(s);
	if (dptr == 0)
		return 0;
	if (capturing())
		TRY(capture_unsafe());
	if (!range_take(SPACE_DEVICE, dptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return call(s, BSLT_OP_MEM_FREE, &a, sizeof a).result;
}

/* The stream order holds: allocation is at once, and memory is freed when the
 * work enqueued so far is done. */
CUDA_API CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	uint64_t stream, context;

	SESSION(s);
	if (!dptr || bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing()) /* graphs have no memory nodes */
		TRY(capture_refuse(hStream));
	TRY(stream_resolve(hStream, &stream, &context));
	return allocate(s, context, bytesize, dptr);
}

CUDA_API CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	uint64_t stream, context;

	if (capturing())
		TRY(capture_refuse(hStream));
	TRY(stream_resolve(hStream, &stream, &context));
	return cuMemFree_v2(dptr);
}

CUDA_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct answer r;
	uint64_t context;

	SESSION(s);
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_working(&context));
	r = call(s, BSLT_OP_MEM_INFO, NULL, 0);
	if (r.result == 0) {
		*free_bytes = r.value0;
		*total = r.value1;
	}
	return r.result;
}

CUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct range r;

	SESSION(s);
	(void)s;
	if (!range_find(SPACE_DEVICE, dptr, &r) && !range_find(SPACE_HOST, dptr, &r))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = r.address;
	if (psize)
		*psize = r.size;
	return 0;
}

/* Pinned memory is a region that the worker copies from and to directly; when
 * there can be no more regions it is ordinary memory, which is only slower. */
CUDA_API CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct range r = {.size = bytesize, .flags = Flags, .owned = true};
	int err;

	SESSION(s);
	if (!pp || bytesize == 0 || Flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&r.context));
	if (session_region(s, bytesize, &r.region) == 0) {
		r.address = (uintptr_t)r.region.base;
	} else {
		void *p = mmap(NULL, bytesize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		r.address = (uintptr_t)p;
	}
	if ((err = range_add(SPACE_HOST, &r)) != 0) {
		if (r.region.base)
			session_region_free(s, &r.region);
		else
			munmap((void *)(uintptr_t)r.address, bytesize);
		return err;
	}
	*pp = (void *)(uintptr_t)r.address;
	return 0;
}

CUDA_API CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

CUDA_API CUresult cuMemFreeHost(void *p)
{
	struct range r;

	SESSION(s);
	if (!range_find(SPACE_HOST, (uintptr_t)p, &r) || r.address != (uintptr_t)p || !r.owned)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	if (!range_take(SPACE_HOST, (uintptr_t)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	if (r.region.base)
		session_region_free(s, &r.region);
	else
		munmap(p, r.size);
	return 0;
}

/* Registered memory is copied through the arena like any other: correct, and
 * no slower than before. What would need the device to reach into it is refused. */
CUDA_API CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct range r = {.address = (uintptr_t)p, .size = bytesize, .flags = Flags};

	SESSION(s);
	(void)s;
	if (!p || bytesize == 0 || bytesize > UINTPTR_MAX - (uintptr_t)p)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & ~3u)
		return CUDA_ERROR_NOT_SUPPORTED; /* I/O memory, read-only */
	if (capturing())
		TRY(capture_unsafe());
	if (in_window((uintptr_t)p, bytesize))
		return CUDA_ERROR_INVALID_VALUE; /* device addresses, not the program's */
	TRY(context_working(&r.context));
	return range_add(SPACE_HOST, &r);
}

CUDA_API CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUDA_API CUresult cuMemHostUnregister(void *p)
{
	struct range r;

	SESSION(s);
	(void)s;
	if (!range_find(SPACE_HOST, (uintptr_t)p, &r) || r.owned || !range_take(SPACE_HOST, (uintptr_t)p, &r))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	return 0;
}

CUDA_API CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct range r;

	SESSION(s);
	(void)s;
	if (!pFlags || !range_find(SPACE_HOST, (uintptr_t)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = r.flags;
	return 0;
}

/* A kernel on another machine's card cannot read this process's memory. */
CUDA_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	(void)pdptr, (void)p, (void)Flags;
	SESSION(s);
	(void)s;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUDA_API CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	(void)dptr, (void)bytesize, (void)flags;
	SESSION(s);
	(void)s;
	return CUDA_ERROR_NOT_SUPPORTED;
}
