/* Devices and contexts. */
#include <time.h>

#include "call.h"

/* Devices. */
static bool initialized;

EXPORT int cuInit(unsigned int flags)
{
	int r;

	if (flags)
		BROKEN("flags are %u, want 0", flags);
	if ((r = CALL(cuInit, flags)) == 0)
		initialized = true;
	return r;
}

void ready(const char *function)
{
	if (!initialized)
		broken(function, "called before cuInit");
}

EXPORT int cuDriverGetVersion(int *v) { return CALL(cuDriverGetVersion, v); }
EXPORT int cuDeviceGetCount(int *n) { ready(__func__); return CALL(cuDeviceGetCount, n); }
EXPORT int cuDeviceGet(int *d, int i) { ready(__func__); return CALL(cuDeviceGet, d, i); }
EXPORT int cuDeviceGetName(char *s, int n, int d) { ready(__func__); return CALL(cuDeviceGetName, s, n, d); }
EXPORT int cuDeviceGetUuid_v2(void *p, int d) { ready(__func__); return CALL(cuDeviceGetUuid_v2, p, d); }
EXPORT int cuDeviceTotalMem_v2(size_t *n, int d) { ready(__func__); return CALL(cuDeviceTotalMem_v2, n, d); }
EXPORT int cuDeviceGetAttribute(int *v, int a, int d) { ready(__func__); return CALL(cuDeviceGetAttribute, v, a, d); }

/* Contexts. */
EXPORT int cuCtxCreate_v2(u *c, unsigned int flags, int d)
{
	unsigned int scheduling = flags & 7;
	int r;

	if (flags & ~0x1fu || (scheduling & (scheduling - 1)))
		BROKEN("flags %#x: at most one of SCHED_SPIN, _YIELD and _BLOCKING_SYNC, MAP_HOST and LMEM_RESIZE_TO_MAX are known", flags);
	if ((r = CALL(cuCtxCreate_v2, c, flags, d)) == 0) {
		current = *c;
		made(*c, CONTEXT, 0, 0);
	}
	return r;
}

EXPORT int cuCtxDestroy_v2(u c)
{
	acquire();
	object_find(__func__, c, CONTEXT);
	release();
	int r = CALL(cuCtxDestroy_v2, c); /* it is destroyed even if its work failed */
	acquire();
	memory_drop(c, 0);
	mapped_left(__func__, c, r != 0 || object_find(__func__, c, CONTEXT)->failed);
	object_end(object_find(__func__, c, CONTEXT));
	release();
	if (current == c)
		current = 0;
	return r;
}

EXPORT int cuCtxSetCurrent(u c)
{
	acquire();
	if (c)
		object_find(__func__, c, CONTEXT);
	release();
	int r = CALL(cuCtxSetCurrent, c);
	if (r == 0)
		current = c;
	return r;
}

static void all_over(struct object *stream, void *arg)
{
	(void)arg;
	over(stream, stream->put);
}

static void latest(struct object *stream, void *arg)
{
	int64_t *at = arg;

	if (stream->ready > *at)
		*at = stream->ready;
}

/* No other thread may enqueue work in the meantime. */
EXPORT int cuCtxSynchronize(void)
{
	int64_t left = 0;

	acquire();
	context_of(__func__);
	each_stream(current, latest, &left);
	left -= now();
	release();
	int r = CALL(cuCtxSynchronize);
	if (left > 0)
		nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
	if (r == 0) {
		acquire();
		each_stream(current, all_over, NULL);
		release();
	}
	return r;
}

/* A guest chooses the buffer of printf only. */
EXPORT int cuCtxSetLimit(int limit, size_t value)
{
	in_context(__func__);
	if (limit != 1)
		BROKEN("limit is %d, want PRINTF_FIFO_SIZE", limit);
	return CALL(cuCtxSetLimit, limit, value);
}
