/* Asynchronous errors. After one, every call that enqueues work in the context, or queries
 * it, returns the error at once, even if the call needs no answer. */
#include "state.h"

/* Returns the asynchronous error of a context, or 0. The worker counts the contexts that have
 * failed (async_count, which is always 0 with a worker that does not count them). Only if the
 * count has grown does this function ask the worker whether this context has failed. */
int context_fault(uint64_t context)
{
	struct bslt_stream_query a = {context}; /* its default stream has its number */
	struct context *c;
	uint32_t count;
	int err;

	SESSION(s);
	if (atomic_load_explicit(word32(s, BSLT_OFF_ASYNC_ERROR), memory_order_acquire) == 0)
		return 0;
	if (!(c = object_get(handle_of(context), KIND_CONTEXT)))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	count = atomic_load_explicit(word32(s, BSLT_OFF_ASYNC_COUNT), memory_order_acquire);
	err = atomic_load(&c->fault);
	if (err == 0 && (count == 0 || atomic_load(&c->no_fault_at) != count)) {
		err = call(s, BSLT_OP_STREAM_QUERY, &a, sizeof a).result;
		if (err == CUDA_ERROR_NOT_READY)
			err = 0;
		if (err) {
			atomic_store(&c->fault, err);
			output_show(s, context); /* it may contain the message of an assertion */
		} else {
			atomic_store(&c->no_fault_at, count);
		}
	}
	object_put(c);
	return err;
}
