/* Device memory. */
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
		return managed_free(s, dptr);
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
