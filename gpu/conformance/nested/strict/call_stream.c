/* Launches, streams and events. */
#include <time.h>

#include "call.h"

/* Launches. */
static void starts(const char *function, u f, u st, const unsigned int *size, void **params, void **extra)
{
	acquire();
	struct object *stream = stream_find(function, st);
	object_current(function, f, FUNCTION);
	for (int i = 0; i < 6; i++)
		if (!size[i])
			broken(function, "grid %u %u %u, block %u %u %u", size[0], size[1], size[2], size[3], size[4], size[5]);
	if (params && extra)
		broken(function, "kernelParams and extra are both given");
	if (extra && ((u)extra[0] != 1 || (u)extra[2] != 2 || extra[4]))
		broken(function, "extra is not a buffer, its size and the end");
	put(stream, 1);
	release();
}

EXPORT int cuLaunchKernel(u f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			  u st, void **params, void **extra)
{
	starts(__func__, f, st, (const unsigned int[]){gx, gy, gz, bx, by, bz}, params, extra);
	return CALL(cuLaunchKernel, f, gx, gy, gz, bx, by, bz, shared, st, params, extra);
}

EXPORT int cuLaunchKernelEx(const void *config, u f, void **params, void **extra)
{
	enum { STREAM_AT = 32, ATTRIBUTES_AT = 40, COUNT_AT = 48 }; /* CUlaunchConfig */

	if (M(unsigned int, config, COUNT_AT) && !M(void *, config, ATTRIBUTES_AT))
		BROKEN("%u attributes at NULL", M(unsigned int, config, COUNT_AT));
	starts(__func__, f, M(u, config, STREAM_AT), config, params, extra);
	return CALL(cuLaunchKernelEx, config, f, params, extra);
}

/* Streams. */
EXPORT int cuStreamCreateWithPriority(u *s, unsigned int flags, int priority)
{
	in_context(__func__);
	if (flags & ~1u)
		BROKEN("flags are %#x: CU_STREAM_NON_BLOCKING alone is known", flags);
	int r = CALL(cuStreamCreateWithPriority, s, flags, priority);
	if (r == 0)
		made(*s, STREAM, flags, 0);
	return r;
}

EXPORT int cuStreamDestroy_v2(u s)
{
	ends(__func__, s, STREAM);
	return CALL(cuStreamDestroy_v2, s);
}

EXPORT int cuStreamSynchronize(u s)
{
	acquire();
	struct object *stream = stream_find(__func__, s);
	uint64_t upto = stream->put;
	int64_t left = stream->ready - now();
	release();
	int r = CALL(cuStreamSynchronize, s);
	if (left > 0)
		nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
	if (r == 0) {
		acquire();
		over(stream, upto);
		release();
	}
	return r;
}

EXPORT int cuStreamWaitEvent(u s, u e, unsigned int flags)
{
	acquire();
	struct object *stream = stream_find(__func__, s), *event = object_find(__func__, e, EVENT);
	if (flags)
		BROKEN("flags are %#x, want 0 outside of a capture", flags);
	if (event->ready > stream->ready)
		stream->ready = event->ready;
	put(stream, 0);
	release();
	return CALL(cuStreamWaitEvent, s, e, flags);
}

static void writes(const char *function, u s, u address, size_t size)
{
	acquire();
	struct object *stream = stream_find(function, s);
	if (address % size)
		broken(function, "%#zx is not a multiple of %zu", address, size);
	memory_check(function, address, size, false);
	put(stream, 0);
	release();
}

EXPORT int cuStreamWriteValue32_v2(u s, u p, uint32_t v, unsigned int flags) { writes(__func__, s, p, 4); return CALL(cuStreamWriteValue32_v2, s, p, v, flags); }
EXPORT int cuStreamWriteValue64_v2(u s, u p, uint64_t v, unsigned int flags) { writes(__func__, s, p, 8); return CALL(cuStreamWriteValue64_v2, s, p, v, flags); }

/* Events. */
#define DISABLE_TIMING 2u

EXPORT int cuEventCreate(u *e, unsigned int flags)
{
	in_context(__func__);
	if (flags & ~7u || (flags & 4u && !(flags & DISABLE_TIMING)))
		BROKEN("flags %#x: 7 are known, and INTERPROCESS goes with DISABLE_TIMING", flags);
	int r = CALL(cuEventCreate, e, flags);
	if (r == 0)
		made(*e, EVENT, flags, 0);
	return r;
}

EXPORT int cuEventDestroy_v2(u e)
{
	ends(__func__, e, EVENT);
	return CALL(cuEventDestroy_v2, e);
}

EXPORT int cuEventRecord(u e, u s)
{
	acquire();
	struct object *stream = stream_find(__func__, s), *event = object_current(__func__, e, EVENT);
	int64_t t = now();
	event->stream = stream->handle;
	event->covers = stream->put;
	event->ready = stream->ready > t ? stream->ready : t;
	event->recorded = true;
	release();
	return CALL(cuEventRecord, e, s);
}

/* The stream of an event, if it still exists. */
struct search {
	u handle;
	struct object *found;
};

static void is_it(struct object *x, void *arg)
{
	struct search *s = arg;

	if (x->handle == s->handle)
		s->found = x;
}

static struct object *recorded_in(struct object *event)
{
	struct search s = {event->stream, NULL};

	each_stream(event->context, is_it, &s);
	return s.found;
}

EXPORT int cuEventQuery(u e)
{
	acquire();
	struct object *event = object_current(__func__, e, EVENT);
	release();
	int r = CALL(cuEventQuery, e);
	if (r != 0 || !event->recorded)
		return r;
	acquire();
	struct object *stream = recorded_in(event);
	if (now() < event->ready)
		r = NOT_READY;
	else if (stream)
		over(stream, event->covers);
	release();
	return r;
}

/* Its caller has other work to do until the event has passed. */
EXPORT int cuEventSynchronize(u e)
{
	acquire();
	struct object *event = object_current(__func__, e, EVENT), *stream = recorded_in(event);
	if (event->recorded && stream && stream->over < event->covers && !object_find(__func__, event->context, CONTEXT)->failed)
		BROKEN("the event is after work that is not known to be over");
	release();
	return CALL(cuEventSynchronize, e);
}

EXPORT int cuEventElapsedTime(float *ms, u a, u b)
{
	acquire();
	struct object *start = object_current(__func__, a, EVENT), *end = object_current(__func__, b, EVENT);
	if (!start->recorded || !end->recorded)
		BROKEN("an event was never recorded");
	if ((start->flags | end->flags) & DISABLE_TIMING)
		BROKEN("an event was made without timing");
	float at_least = (float)(end->ready - start->ready) / 1e6f;
	release();
	int r = CALL(cuEventElapsedTime, ms, a, b);
	if (r == 0 && kernel_nanos() && at_least > 0 && at_least > *ms)
		*ms = at_least;
	return r;
}
