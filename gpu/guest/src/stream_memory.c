/* Batches of memory operations in a stream. What they do is cuStreamWriteValue's;
 * waiting for a value and flushing remote writes are refused, as by themselves. */
#include <stddef.h>

#include "capture.h"

#define BATCH_LIMIT 256 /* CUDA: a batch has fewer operations */
#define BARRIER_GPU 1u   /* CU_STREAM_MEMORY_BARRIER_TYPE_GPU; 0 is the system's */

_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48 && offsetof(CUstreamBatchMemOpParams, writeValue.address) == 8 &&
		       offsetof(CUstreamBatchMemOpParams, writeValue.value64) == 16 &&
		       offsetof(CUstreamBatchMemOpParams, writeValue.flags) == 24 &&
		       offsetof(CUstreamBatchMemOpParams, memoryBarrier.flags) == 4,
	       "CUDA driver API, CUstreamBatchMemOpParams");

/* Whether an operation can be put: a batch is put as a whole or not at all. */
static int check(const CUstreamBatchMemOpParams *p)
{
	bool wide = p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	CUdeviceptr address = p->writeValue.address;
	size_t size = wide ? 8 : 4;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (p->writeValue.flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER || address % size || !device_range(address, size))
			return CUDA_ERROR_INVALID_VALUE;
		return 0;
	case CU_STREAM_MEM_OP_BARRIER: return p->memoryBarrier.flags > BARRIER_GPU ? CUDA_ERROR_INVALID_VALUE : 0;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* A barrier orders what the stream did before it with what comes after. Here the
 * next write brings it: it has a barrier of its own unless its flag says no. Whatever
 * else comes next in a stream sees the writes before it anyway. */
CUDA_API CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	uint64_t wire, context;
	bool barrier = false;

	SESSION(s);
	(void)s;
	if (count >= BATCH_LIMIT || (count && !paramArray) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_refuse(stream));
	TRY(stream_resolve(stream, &wire, &context));
	for (unsigned int i = 0; i < count; i++)
		TRY(check(&paramArray[i]));
	for (unsigned int i = 0; i < count; i++) {
		const CUstreamBatchMemOpParams *p = &paramArray[i];

		if (p->operation == CU_STREAM_MEM_OP_BARRIER) {
			barrier = true;
			continue;
		}
		flags = barrier ? 0 : p->writeValue.flags;
		barrier = false;
		TRY(p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? cuStreamWriteValue64_v2(stream, p->writeValue.address, p->writeValue.value64, flags)
								    : cuStreamWriteValue32_v2(stream, p->writeValue.address, p->writeValue.value, flags));
	}
	return 0;
}
