/* The checks that begin every call which gives a context or a stream work. */
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
	TRY(callbacks_wait(*stream, *context, blocking)); /* they hear of the error, too */
	return context_fault(*context);
}
