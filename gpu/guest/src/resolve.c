/* The checks at the beginning of every call that enqueues work in a context or stream. */
#include "state.h"

int context_working(uint64_t *context)
{
	TRY(context_current(context));
	return context_fault(*context);
}

int stream_resolve(CUstream h, uint64_t *stream, uint64_t *context)
{
	bool blocking;

	TRY(stream_find(h, stream, context, &blocking));
	TRY(callbacks_wait(*stream, *context, blocking)); /* host functions are called even if the context has failed */
	return context_fault(*context);
}
