/* Asynchronous errors: after one, every call that gives its context work, or
 * asks about it, returns it at once, whether it needs an answer or not. */
#include "state.h"

/* The worker counts the contexts that have failed (async_count; a worker that
 * does not count leaves it 0). Only when that has grown is the worker asked
 * whether this context is one of them. */
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
	if (err == 0 && (count == 0 || atomic_load(&c->well_at) != count)) {
		err = call(s, BSLT_OP_STREAM_QUERY, &a, sizeof a).result;
		if (err == CUDA_ERROR_NOT_READY)
			err = 0;
		if (err) {
			atomic_store(&c->fault, err);
			output_show(s, context); /* perhaps the line of an assertion */
		} else {
			atomic_store(&c->well_at, count);
		}
	}
	object_put(c);
	return err;
}
