/* Stream capture: calls that would put work into a stream add nodes to a graph.
 * Every function that puts work into a stream, waits for one, or may wait inside
 * the driver asks capturing() first, which costs one load; the rest is behind it.
 * Where *done is set, the call has been captured: nothing more is to be done. */
#ifndef BASALT_CAPTURE_H
#define BASALT_CAPTURE_H

#include "state.h"

extern _Atomic unsigned int capture_count; /* captures under way */

static inline bool capturing(void)
{
	return atomic_load_explicit(&capture_count, memory_order_relaxed) != 0;
}

struct exec;

int capture_kernel(CUstream h, const CUDA_KERNEL_NODE_PARAMS *k, unsigned int flags, bool *done);
int capture_copy(CUstream h, const CUDA_MEMCPY3D *c, bool *done);
/* A copy of n bytes in one piece; synchronous ones cannot be captured. */
int capture_copy_bytes(CUstream h, unsigned int dst_type, uint64_t dst, unsigned int src_type, uint64_t src, size_t n, bool sync,
		       bool *done);
int capture_memset(CUstream h, const CUDA_MEMSET_NODE_PARAMS *m, bool *done);
int capture_host(CUstream h, CUhostFn fn, void *data, bool *done);
/* What cuMemAllocAsync and cuMemFreeAsync do in a capture. */
int capture_allocate(CUstream h, size_t size, CUdeviceptr *address, bool *done);
int capture_free(CUstream h, CUdeviceptr address, bool *done);
int capture_graph(CUstream h, struct exec *e, bool *done);
int capture_record(CUstream h, struct event *e, bool external, bool *done);
int capture_wait(CUstream h, struct event *e, bool external, bool *done);

/* For calls that a capturing stream does not allow: an error, and the capture is
 * lost, if that stream captures or the call would make the legacy stream depend on one. */
int capture_refuse(CUstream h);
/* For calls that wait for all of a context. */
int capture_refuse_context(uint64_t context);
/* For calls that may wait inside the driver: an error where the modes of this
 * thread and of the captures forbid it. */
int capture_unsafe(void);
/* For calls that ask about an event: an error if it was last recorded in a capture. */
int capture_event(struct event *e);
/* A stream goes; a context with all its streams does. */
void capture_stream_gone(uint64_t stream);
void capture_context_gone(uint64_t context);
void captures_abandon(void);

#endif
