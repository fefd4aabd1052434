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

int memory_operations_check(const CUstreamBatchMemOpParams *p, unsigned int count, unsigned int flags)
{
	if (count >= BATCH_LIMIT || (count && !p) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++)
		TRY(check(&p[i]));
	return 0;
}

static int put_write32(struct session *s, uint64_t stream, const CUstreamBatchMemOpParams *p)
{
	struct bslt_stream_write_value32 a = {.stream = stream, .addr = p->writeValue.address, .value = p->writeValue.value};

	return stream_put(s, stream, BSLT_OP_STREAM_WRITE_VALUE32, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

static int put_write64(struct session *s, uint64_t stream, const CUstreamBatchMemOpParams *p)
{
	struct bslt_stream_write_value64 a = {.stream = stream, .addr = p->writeValue.address, .value = p->writeValue.value64};

	return stream_put(s, stream, BSLT_OP_STREAM_WRITE_VALUE64, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

static int put_wait(struct session *s, uint64_t stream, const CUstreamBatchMemOpParams *p, bool wide)
{
	struct bslt_stream_wait_value a = {.stream = stream, .address = p->waitValue.address, .value = wide ? p->waitValue.value64 : p->waitValue.value,
					   .width = wide ? 8 : 4, .flags = p->waitValue.flags};

	return stream_put(s, stream, BSLT_OP_STREAM_WAIT_VALUE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

/* A barrier orders earlier work of the stream before later work. Nothing is enqueued for it:
 * each write has a barrier of its own, and other later work of a stream observes the earlier
 * writes anyway. */
int memory_operations_put(struct session *s, uint64_t stream, const CUstreamBatchMemOpParams *p, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		switch (p[i].operation) {
		case CU_STREAM_MEM_OP_WRITE_VALUE_32: TRY(put_write32(s, stream, &p[i])); break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64: TRY(put_write64(s, stream, &p[i])); break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_32: TRY(put_wait(s, stream, &p[i], false)); break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_64: TRY(put_wait(s, stream, &p[i], true)); break;
		default: break;
		}
	}
	return 0;
}

CUDA_API CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	uint64_t wire, context;

	SESSION(s);
	if (count >= BATCH_LIMIT || (count && !paramArray) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing()) {
		bool done = false;

		TRY(capture_batch(stream, paramArray, count, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(stream, &wire, &context));
	TRY(memory_operations_check(paramArray, count, flags));
	return memory_operations_put(s, wire, paramArray, count);
}

CUDA_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	CUstreamBatchMemOpParams wait = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = addr, .value = value, .flags = flags}};

	return cuStreamBatchMemOp_v2(stream, 1, &wait, 0);
}

CUDA_API CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	CUstreamBatchMemOpParams wait = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = addr, .value64 = value, .flags = flags}};

	return cuStreamBatchMemOp_v2(stream, 1, &wait, 0);
}
