/* Waits of a stream for a value in memory, and batches of memory operations. Flushing remote
 * writes is not supported. */
#include <stddef.h>

#include "capture.h"

#define BATCH_LIMIT 256 /* CUDA: a batch has fewer operations */
#define CAN_WAIT 92     /* CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 */
#define BARRIER_GPU 1u   /* CU_STREAM_MEMORY_BARRIER_TYPE_GPU; 0 is CU_STREAM_MEMORY_BARRIER_TYPE_SYS */

_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48 && offsetof(CUstreamBatchMemOpParams, writeValue.address) == 8 &&
		       offsetof(CUstreamBatchMemOpParams, writeValue.value64) == 16 &&
		       offsetof(CUstreamBatchMemOpParams, writeValue.flags) == 24 &&
		       offsetof(CUstreamBatchMemOpParams, memoryBarrier.flags) == 4,
	       "CUDA driver API, CUstreamBatchMemOpParams");

/* Checks the arguments of a wait for a value of size bytes. */
static int check_wait(CUdeviceptr address, size_t size, unsigned int flags)
{
	if (!device_attribute(CAN_WAIT))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags & CU_STREAM_WAIT_VALUE_FLUSH && !(flags & ~(CU_STREAM_WAIT_VALUE_FLUSH | CU_STREAM_WAIT_VALUE_NOR)))
		return CUDA_ERROR_NOT_SUPPORTED;
	return flags > CU_STREAM_WAIT_VALUE_NOR || address % size || !device_range(address, size) ? CUDA_ERROR_INVALID_VALUE : 0;
}

static int wait_value(CUstream h, CUdeviceptr address, uint64_t value, unsigned int size, unsigned int flags)
{
	struct bslt_stream_wait_value a = {.address = address, .value = value, .width = size, .flags = flags};
	uint64_t context;

	SESSION(s);
	if (capturing())
		TRY(capture_refuse(h));
	TRY(stream_resolve(h, &a.stream, &context));
	TRY(check_wait(address, size, flags));
	return stream_put(s, a.stream, BSLT_OP_STREAM_WAIT_VALUE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

CUDA_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return wait_value(stream, addr, value, 4, flags);
}

CUDA_API CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return wait_value(stream, addr, value, 8, flags);
}

/* Checks an operation, because a batch is enqueued as a whole or not at all. */
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
	case CU_STREAM_MEM_OP_WAIT_VALUE_32: return check_wait(address, 4, p->writeValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64: return check_wait(address, 8, p->writeValue.flags);
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static int enqueue_operation(CUstream stream, const CUstreamBatchMemOpParams *p, unsigned int flags)
{
	CUdeviceptr address = p->writeValue.address;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32: return cuStreamWriteValue32_v2(stream, address, p->writeValue.value, 0);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64: return cuStreamWriteValue64_v2(stream, address, p->writeValue.value64, 0);
	case CU_STREAM_MEM_OP_WAIT_VALUE_32: return cuStreamWaitValue32_v2(stream, address, p->writeValue.value, flags);
	default: return cuStreamWaitValue64_v2(stream, address, p->writeValue.value64, flags);
	}
}

/* A barrier orders earlier work of the stream before later work. It is implemented by the next
 * write, which has a barrier of its own unless its flag excludes that. Other later work of a
 * stream observes the earlier writes anyway. */
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
		bool write = p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;

		if (p->operation == CU_STREAM_MEM_OP_BARRIER) {
			barrier = true;
			continue;
		}
		TRY(enqueue_operation(stream, p, barrier && write ? 0 : p->writeValue.flags));
		barrier = barrier && !write;
	}
	return 0;
}
