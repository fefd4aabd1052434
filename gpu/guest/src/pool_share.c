/* Memory pools that processes share. A pool only counts, so sharing one is passing on its token;
 * its memory is shared allocation by allocation, as for cuIpcGetMemHandle (ipc.c). */
#include <string.h>

#include "state.h"

enum { FILE_DESCRIPTOR = 1 /* CUmemAllocationHandleType */ };

/* The content of CUmemPoolPtrExportData; the rest is zero. */
struct exported {
	uint64_t half[2]; /* the token of the allocation */
	uint64_t kind;
	uint64_t pool[2]; /* the token of its pool */
	uint64_t offset;  /* of the pointer, in the allocation */
};
_Static_assert(sizeof(CUmemPoolPtrExportData) == 64 && sizeof(struct exported) <= 64, "CUDA driver API, CUmemPoolPtrExportData");

/* The descriptor is that of a file that contains the token, as for memory that is mapped. */
CUDA_API CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct answer a = {0};
	uint64_t token[2];

	SESSION(s);
	(void)s;
	if (!handle_out || flags || handleType != FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(pool_token((uintptr_t)pool, false, token));
	a.value0 = token[0];
	a.value1 = token[1];
	return token_file(&a, TOKEN_POOL, handle_out);
}

CUDA_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType, unsigned long long flags)
{
	uint64_t token[2];

	SESSION(s);
	(void)s;
	if (!pool_out || flags || handleType != FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(token_read((int)(intptr_t)handle, TOKEN_POOL, &token[0], &token[1]));
	return pool_import(token, pool_out);
}

CUDA_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	struct exported e = {.kind = TOKEN_POINTER};
	struct answer a;
	struct range r;

	SESSION(s);
	if (!shareData_out || !range_find(SPACE_DEVICE, ptr, &r) || !r.pool || r.opened)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(pool_token(r.pool, false, e.pool));
	a = ipc_share(s, r.address);
	TRY(a.result);
	e.half[0] = a.value0;
	e.half[1] = a.value1;
	e.offset = ptr - r.address;
	memset(shareData_out, 0, sizeof *shareData_out);
	memcpy(shareData_out, &e, sizeof e);
	return 0;
}

CUDA_API CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	struct bslt_mem_open args = {0};
	struct exported e;
	uint64_t token[2];
	CUdeviceptr base;
	struct range r;

	SESSION(s);
	if (!ptr_out || !shareData)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&e, shareData, sizeof e);
	TRY(pool_token((uintptr_t)pool, true, token));
	if (e.kind != TOKEN_POINTER || e.pool[0] != token[0] || e.pool[1] != token[1])
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_working(&args.ctx));
	args.token0 = e.half[0];
	args.token1 = e.half[1];
	TRY(ipc_open(s, &args, (uintptr_t)pool, &base));
	if (!range_find(SPACE_DEVICE, base, &r) || e.offset >= r.size) {
		(void)ipc_close(s, base, true);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ptr_out = base + e.offset;
	return 0;
}
