/* Stream capture: calls that would enqueue work in a stream add nodes to a graph. Every
 * function that enqueues work in a stream, waits for one, or may wait inside the driver
 * calls capturing() first, which costs one load, and one of the functions below only if it
 * returns true. If such a function sets *done, the call has been captured, and its caller
 * returns. */
#ifndef BASALT_CAPTURE_H
#define BASALT_CAPTURE_H

#include "state.h"

extern _Atomic unsigned int capture_count; /* number of captures that have not ended */

static inline bool capturing(void)
{
	return atomic_load_explicit(&capture_count, memory_order_relaxed) != 0;
}

struct exec;

int capture_kernel(CUstream h, const CUDA_KERNEL_NODE_PARAMS *k, unsigned int flags, bool *done);
int capture_copy(CUstream h, const CUDA_MEMCPY3D *c, bool *done);
/* Captures a copy of n contiguous bytes. A synchronous copy (sync) is an error. */
int capture_copy_bytes(CUstream h, unsigned int dst_type, uint64_t dst, unsigned int src_type, uint64_t src, size_t n, bool sync,
		       bool *done);
int capture_memset(CUstream h, const CUDA_MEMSET_NODE_PARAMS *m, bool *done);
/* Captures memory operations, of cuStreamBatchMemOp and of the functions for single ones. */
int capture_batch(CUstream h, CUstreamBatchMemOpParams *ops, unsigned int count, bool *done);
int capture_write32(CUstream h, CUdeviceptr address, cuuint32_t value, unsigned int flags, bool *done);
int capture_write64(CUstream h, CUdeviceptr address, cuuint64_t value, unsigned int flags, bool *done);
int capture_host(CUstream h, CUhostFn fn, void *data, bool *done);
/* Implement cuMemAllocAsync and cuMemFreeAsync in a capture. */
int capture_allocate(CUstream h, size_t size, CUdeviceptr *address, bool *done);
int capture_free(CUstream h, CUdeviceptr address, bool *done);
int capture_graph(CUstream h, struct exec *e, bool *done);
int capture_record(CUstream h, struct event *e, bool external, bool *done);
int capture_wait(CUstream h, struct event *e, bool external, bool *done);

/* For calls that are not allowed in a capturing stream. Returns an error and invalidates the
 * capture if the stream is capturing, or if the call would make the legacy stream depend on a
 * capturing one. */
int capture_refuse(CUstream h);
/* The same for calls that wait for all work of a context. */
int capture_refuse_context(uint64_t context);
/* For calls that may wait inside the driver. Returns an error if the capture modes of this
 * thread and of the captures forbid such calls. */
int capture_unsafe(void);
/* For calls that query an event. Returns an error if it was last recorded in a capture. */
int capture_event(struct event *e);
/* Called when a stream, or a context with all its streams, is destroyed. */
void capture_stream_gone(uint64_t stream);
void capture_context_gone(uint64_t context);
void captures_abandon(void);

#endif
