/* Allocation of device memory. */
#include "capture.h"

/* Allocates the memory of a range, and adds the range. */
static int allocate_range(struct session *s, struct range range, CUdeviceptr *out)
{
	struct bslt_mem_alloc a = {range.context, range.size};

	if (!kept_take(s, range.context, range.size, &range.address)) {
		struct answer r = call(s, BSLT_OP_MEM_ALLOC, &a, sizeof a);

		TRY(r.result);
		range.address = r.value0;
	}
	if (range_add(SPACE_DEVICE, &range) != 0) {
		struct bslt_mem_free f = {range.address};

		(void)call(s, BSLT_OP_MEM_FREE, &f, sizeof f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = range.address;
	return 0;
}

int device_allocate(struct session *s, uint64_t context, uint64_t pool, size_t size, CUdeviceptr *out)
{
	return allocate_range(s, (struct range){.size = size, .context = context, .pool = pool}, out);
}

int graph_allocate(struct session *s, uint64_t context, uint64_t size, CUdeviceptr *out)
{
	return allocate_range(s, (struct range){.size = size, .context = context, .graph = true}, out);
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
	return device_allocate(s, context, 0, bytesize, dptr);
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

/* Frees memory. It waits until no work of the context can use it any more, so that it need not
 * wait for the worker to free it. An error of that, which only a broken worker returns, comes
 * with the context's next answer. */
static int release(struct session *s, const struct range *r)
{
	struct context *c = object_get(handle_of(r->context), KIND_CONTEXT);
	struct bslt_mem_free a = {r->address};
	int err;

	if (!c)
		return call(s, BSLT_OP_MEM_FREE, &a, sizeof a).result;
	err = context_fault(r->context);
	if (err == 0 && !context_quiet(s, c))
		err = context_drain(s, c);
	if (err || r->exported || !context_untouched(s, c) || !kept_put(s, r)) {
		int put = ring_put(s, BSLT_OP_MEM_FREE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);

		err = err ? err : put;
	}
	object_put(c);
	return err;
}

/* Frees memory of a graph: the program must not use it any more, but the graph keeps it. */
static int release_graphs(struct session *s, const struct range *r, CUdeviceptr dptr)
{
	struct context *c = object_get(handle_of(r->context), KIND_CONTEXT);
	int err = context_fault(r->context);

	if (err == 0 && c && !context_quiet(s, c))
		err = context_drain(s, c);
	if (c)
		object_put(c);
	return err ? err : graph_memory_free(dptr);
}

CUDA_API CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	struct range r;

	SESSION(s);
	if (dptr == 0)
		return 0;
	if (capturing())
		TRY(capture_unsafe());
	if (range_find(SPACE_DEVICE, dptr, &r) && r.graph)
		return release_graphs(s, &r, dptr);
	if (range_find(SPACE_DEVICE, dptr, &r) && r.opened && r.pool)
		return ipc_close(s, dptr, true);
	if (range_find(SPACE_DEVICE, dptr, &r) && (r.memory || r.opened))
		return r.memory ? external_free(dptr) : CUDA_ERROR_INVALID_VALUE; /* others are freed by cuMemUnmap or cuIpcCloseMemHandle */
	if (!range_take(SPACE_DEVICE, dptr, &r))
		return managed_free(s, dptr);
	pool_give(&r);
	return release(s, &r);
}

/* Allocates memory at once, which is earlier than the stream's order requires. If there is not
 * enough, the worker waits for memory that streams are freeing. */
static int allocate_in(CUmemoryPool pool, CUdeviceptr *dptr, size_t size, CUstream h)
{
	uint64_t stream, context;
	struct range r = {.size = size};
	int err;

	SESSION(s);
	if (!dptr || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing()) {
		bool done = false;

		TRY(capture_allocate(h, size, dptr, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(h, &stream, &context));
	TRY(pool_take(pool, size, &r.pool));
	if ((err = device_allocate(s, context, r.pool, size, dptr)) != 0)
		pool_give(&r);
	else
		pool_taken(r.pool);
	return err;
}

CUDA_API CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return allocate_in(NULL, dptr, bytesize, hStream);
}

CUDA_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return pool ? allocate_in(pool, dptr, bytesize, hStream) : CUDA_ERROR_INVALID_VALUE;
}

/* Frees memory in the order of a stream. The first call finds out whether the worker supports
 * the command. If not, the memory is freed when all work of the context is done. */
static int free_in(struct session *s, uint64_t stream, CUdeviceptr dptr)
{
	enum { UNKNOWN, SERVED, REFUSED };
	static _Atomic int served; /* valid after a fork too, because the workers of one machine are the same */
	struct bslt_mem_free_async a = {stream, dptr};
	struct bslt_mem_free f = {dptr};
	int err;

	switch (atomic_load_explicit(&served, memory_order_relaxed)) {
	case SERVED: return stream_put(s, stream, BSLT_OP_MEM_FREE_ASYNC, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	case UNKNOWN:
		err = call(s, BSLT_OP_MEM_FREE_ASYNC, &a, sizeof a).result;
		if (err != CUDA_ERROR_NOT_SUPPORTED) {
			atomic_store(&served, SERVED);
			return err;
		}
		atomic_store(&served, REFUSED);
	}
	return call(s, BSLT_OP_MEM_FREE, &f, sizeof f).result;
}

CUDA_API CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	uint64_t stream, context;
	struct range r;

	SESSION(s);
	if (capturing()) {
		bool done = false;

		TRY(capture_free(hStream, dptr, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(hStream, &stream, &context));
	if (range_find(SPACE_DEVICE, dptr, &r) && r.opened && r.pool)
		return ipc_close(s, dptr, true); /* it waits for all work of the context */
	if (dptr == 0 || !range_find(SPACE_DEVICE, dptr, &r) || r.memory || r.opened)
		return CUDA_ERROR_INVALID_VALUE;
	if (r.graph)
		return graph_memory_free(dptr);
	if (r.context != context) /* another context's work may use it */
		return cuMemFree_v2(dptr);
	if (!range_take(SPACE_DEVICE, dptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	pool_give(&r);
	return free_in(s, stream, dptr);
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
