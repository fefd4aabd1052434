/* The functions of libcuda that gpu/cuda calls, each with its rules, in the order of
 * the reference. A call that fails changes nothing. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "strict.h"

#define EXPORT __attribute__((visibility("default")))
#define CALL(name, ...) ended(((__typeof__(&name))next_function(#name))(__VA_ARGS__))
#define M(type, p, offset) (*(const type *)((const char *)(p) + (offset)))

enum { INVALID_VALUE = 1, NOT_READY = 600 };

/* After a sticky error nothing is known to be over any more. */
static int ended(int result)
{
	if (result >= 700 && result < 800 && current) {
		acquire();
		object_find("libcuda", current, CONTEXT)->failed = true;
		release();
	}
	return result;
}

static void in_context(const char *function)
{
	acquire();
	context_of(function);
	release();
}

static void of_context(const char *function, u handle, enum kind kind)
{
	acquire();
	context_of(function);
	object_current(function, handle, kind);
	release();
}

static void made(u handle, enum kind kind, unsigned int flags, u owner)
{
	acquire();
	struct object *o = object_new(handle, kind);
	o->flags = flags;
	o->owner = owner;
	release();
}

static void ends(const char *function, u handle, enum kind kind)
{
	acquire();
	object_end(object_current(function, handle, kind));
	release();
}

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

static void ready(const char *function)
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

/* Modules. */
EXPORT int cuModuleLoadDataEx(u *m, const void *image, unsigned int n, int *options, void **values)
{
	in_context(__func__);
	if (!image || (n && (!options || !values)))
		BROKEN("image %p, %u options at %p", image, n, (void *)options);
	int r = CALL(cuModuleLoadDataEx, m, image, n, options, values);
	if (r == 0)
		made(*m, MODULE, 0, 0);
	return r;
}

EXPORT int cuModuleUnload(u m)
{
	acquire();
	object_current(__func__, m, MODULE);
	nothing_runs(__func__, current);
	release();
	int r = CALL(cuModuleUnload, m);
	if (r == 0) {
		acquire();
		memory_drop(current, m);
		object_end(object_find(__func__, m, MODULE));
		release();
	}
	return r;
}

EXPORT int cuModuleGetFunction(u *f, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetFunction, f, m, name);
	if (r == 0)
		made(*f, FUNCTION, 0, m);
	return r;
}

EXPORT int cuModuleGetFunctionCount(unsigned int *n, u m) { of_context(__func__, m, MODULE); return CALL(cuModuleGetFunctionCount, n, m); }

EXPORT int cuModuleEnumerateFunctions(u *f, unsigned int n, u m)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleEnumerateFunctions, f, n, m);
	for (unsigned int i = 0; r == 0 && i < n; i++)
		made(f[i], FUNCTION, 0, m);
	return r;
}

EXPORT int cuModuleGetGlobal_v2(u *p, size_t *n, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetGlobal_v2, p, n, m, name);
	if (r == 0) {
		acquire();
		memory_add(*p, *n, current, m, false);
		release();
	}
	return r;
}

EXPORT int cuFuncGetName(const char **s, u f) { of_context(__func__, f, FUNCTION); return CALL(cuFuncGetName, s, f); }
EXPORT int cuFuncGetParamInfo(u f, size_t i, size_t *offset, size_t *size) { of_context(__func__, f, FUNCTION); return CALL(cuFuncGetParamInfo, f, i, offset, size); }
EXPORT int cuFuncGetAttribute(int *v, int a, u f) { of_context(__func__, f, FUNCTION); return CALL(cuFuncGetAttribute, v, a, f); }
EXPORT int cuFuncSetAttribute(u f, int a, int v) { of_context(__func__, f, FUNCTION); return CALL(cuFuncSetAttribute, f, a, v); }

EXPORT int cuLinkCreate_v2(unsigned int n, int *options, void **values, u *l)
{
	in_context(__func__);
	int r = CALL(cuLinkCreate_v2, n, options, values, l);
	if (r == 0)
		made(*l, LINK, 0, 0);
	return r;
}

EXPORT int cuLinkAddData_v2(u l, int type, void *data, size_t size, const char *name, unsigned int n, int *options, void **values)
{
	of_context(__func__, l, LINK);
	return CALL(cuLinkAddData_v2, l, type, data, size, name, n, options, values);
}

EXPORT int cuLinkComplete(u l, void **image, size_t *size) { of_context(__func__, l, LINK); return CALL(cuLinkComplete, l, image, size); }

EXPORT int cuLinkDestroy(u l)
{
	ends(__func__, l, LINK);
	return CALL(cuLinkDestroy, l);
}

/* Memory. */
EXPORT int cuMemAlloc_v2(u *p, size_t n)
{
	in_context(__func__);
	int r = CALL(cuMemAlloc_v2, p, n);
	if (r == 0) {
		acquire();
		memory_add(*p, n, current, 0, false);
		release();
	}
	return r;
}

EXPORT int cuMemFree_v2(u p)
{
	acquire();
	context_of(__func__);
	memory_check(__func__, p, 1, false);
	nothing_runs(__func__, current);
	memory_remove(__func__, p, false); /* before another thread can get the same address */
	release();
	return CALL(cuMemFree_v2, p);
}

EXPORT int cuMemHostAlloc(void **p, size_t n, unsigned int flags)
{
	in_context(__func__);
	if (flags & ~7u)
		BROKEN("flags are %#x, and 7 are known", flags);
	int r = CALL(cuMemHostAlloc, p, n, flags);
	if (r == 0) {
		acquire();
		memory_add((u)*p, n, current, 0, true);
		release();
	}
	return r;
}

EXPORT int cuMemFreeHost(void *p)
{
	acquire();
	context_of(__func__);
	nothing_runs(__func__, current);
	memory_remove(__func__, (u)p, true);
	release();
	return CALL(cuMemFreeHost, p);
}

/* Virtual memory management. Addresses are of no context; memory is created in one. */
EXPORT int cuMemGetAllocationGranularity(size_t *n, const void *prop, int option)
{
	ready(__func__);
	int r = CALL(cuMemGetAllocationGranularity, n, prop, option);
	if (r == 0 && option == 0) {
		acquire();
		mapped_granule(*n);
		release();
	}
	return r;
}

EXPORT int cuMemAddressReserve(u *p, size_t n, size_t alignment, u at, unsigned long long flags)
{
	ready(__func__);
	acquire();
	reserve_check(__func__, at, n, alignment, flags);
	int r = CALL(cuMemAddressReserve, p, n, alignment, at, flags);
	if (r == 0)
		reserved_add(*p, n);
	release();
	return r;
}

EXPORT int cuMemAddressFree(u p, size_t n)
{
	ready(__func__);
	acquire();
	reserved_remove(__func__, p, n); /* before another thread can get the same addresses */
	release();
	return CALL(cuMemAddressFree, p, n);
}

EXPORT int cuMemCreate(u *h, size_t n, const void *prop, unsigned long long flags)
{
	enum { HANDLES_AT = 4 }; /* CUmemAllocationProp.requestedHandleTypes */

	ready(__func__); /* memory is of a device, and needs no context */
	acquire();
	memory_size_check(__func__, n);
	if (flags)
		BROKEN("flags are %#llx, want 0", flags);
	release();
	int r = CALL(cuMemCreate, h, n, prop, flags);
	if (r == 0) {
		acquire();
		memory_new(*h, n, M(unsigned int, prop, HANDLES_AT));
		release();
	}
	return r;
}

EXPORT int cuMemRelease(u h)
{
	acquire();
	memory_release(__func__, h);
	release();
	return CALL(cuMemRelease, h);
}

EXPORT int cuMemMap(u p, size_t n, size_t offset, u h, unsigned long long flags)
{
	acquire();
	map_check(__func__, p, n, offset, h, flags);
	release();
	int r = CALL(cuMemMap, p, n, offset, h, flags);
	if (r == 0) {
		acquire();
		mapped_add(p, n, h);
		release();
	}
	return r;
}

EXPORT int cuMemUnmap(u p, size_t n)
{
	acquire();
	context_of(__func__);
	unmap_check(__func__, p, n);
	nothing_runs(__func__, current);
	release();
	int r = CALL(cuMemUnmap, p, n);
	if (r == 0) {
		acquire();
		mapped_remove(p, n);
		release();
	}
	return r;
}

EXPORT int cuMemSetAccess(u p, size_t n, const void *desc, size_t count)
{
	acquire();
	access_check(__func__, p, n, desc, count);
	release();
	int r = CALL(cuMemSetAccess, p, n, desc, count);
	if (r == 0) {
		acquire();
		access_set(p, n, ((const int *)desc)[2]);
		release();
	}
	return r;
}

EXPORT int cuMemExportToShareableHandle(void *out, u h, unsigned int type, unsigned long long flags)
{
	acquire();
	memory_exports(__func__, h, type, flags);
	release();
	return CALL(cuMemExportToShareableHandle, out, h, type, flags);
}

EXPORT int cuMemImportFromShareableHandle(u *h, void *from, unsigned int type)
{
	in_context(__func__);
	int r = CALL(cuMemImportFromShareableHandle, h, from, type);
	if (r == 0) {
		acquire();
		memory_new(*h, SIZE_MAX, 0);
		release();
	}
	return r;
}

EXPORT int cuMemcpyHtoDAsync_v2(u d, const void *s, size_t n, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	memory_check(__func__, d, n, false);
	memory_check(__func__, (u)s, n, true); /* otherwise it waits until the bytes are staged */
	release();
	int r = CALL(cuMemcpyHtoDAsync_v2, d, s, n, st);
	if (r == 0) {
		acquire();
		put_copy(stream, s, n);
		release();
	}
	return r;
}

/* The destination is overwritten with garbage at once, so that reading it too early fails. */
EXPORT int cuMemcpyDtoHAsync_v2(void *d, u s, size_t n, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	memory_check(__func__, s, n, false);
	memory_check(__func__, (u)d, n, true);
	put(stream, 0);
	release();
	memset(d, 0xa5, n);
	return CALL(cuMemcpyDtoHAsync_v2, d, s, n, st);
}

EXPORT int cuMemcpyDtoDAsync_v2(u d, u s, size_t n, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	memory_check(__func__, d, n, false);
	memory_check(__func__, s, n, false);
	put(stream, 0);
	release();
	return CALL(cuMemcpyDtoDAsync_v2, d, s, n, st);
}

static void fill(const char *function, u d, size_t n, size_t width, u st)
{
	acquire();
	struct object *stream = stream_find(function, st);
	if (d % width)
		broken(function, "%#zx is not a multiple of the element's %zu bytes", d, width);
	memory_check(function, d, n * width, false);
	put(stream, 0);
	release();
}

EXPORT int cuMemsetD8Async(u d, unsigned char v, size_t n, u st) { fill(__func__, d, n, 1, st); return CALL(cuMemsetD8Async, d, v, n, st); }
EXPORT int cuMemsetD16Async(u d, unsigned short v, size_t n, u st) { fill(__func__, d, n, 2, st); return CALL(cuMemsetD16Async, d, v, n, st); }
EXPORT int cuMemsetD32Async(u d, unsigned int v, size_t n, u st) { fill(__func__, d, n, 4, st); return CALL(cuMemsetD32Async, d, v, n, st); }

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

/* Arrays and textures. */
EXPORT int cuArray3DCreate_v2(u *h, const void *d)
{
	in_context(__func__);
	int r = CALL(cuArray3DCreate_v2, h, d);
	if (r == 0)
		made(*h, ARRAY, 0, 0);
	return r;
}

EXPORT int cuMipmappedArrayCreate(u *h, const void *d, unsigned int levels)
{
	in_context(__func__);
	int r = CALL(cuMipmappedArrayCreate, h, d, levels);
	if (r == 0)
		made(*h, MIPMAP, 0, 0);
	return r;
}

EXPORT int cuMipmappedArrayGetLevel(u *h, u m, unsigned int level)
{
	of_context(__func__, m, MIPMAP);
	int r = CALL(cuMipmappedArrayGetLevel, h, m, level);
	if (r == 0)
		made(*h, ARRAY, 0, m);
	return r;
}

EXPORT int cuArrayDestroy(u h) { ends(__func__, h, ARRAY); return CALL(cuArrayDestroy, h); }
EXPORT int cuMipmappedArrayDestroy(u h) { ends(__func__, h, MIPMAP); return CALL(cuMipmappedArrayDestroy, h); }

/* One side of CUDA_MEMCPY3D: its type, its device address, its array. */
static void side(const char *function, unsigned int type, u device, u array)
{
	if (type == 3)
		object_current(function, array, ARRAY);
	else if (type == 2)
		memory_check(function, device, 1, false);
	else
		broken(function, "memory type %u: gpu/cuda copies between arrays and device memory", type);
}

EXPORT int cuMemcpy3DAsync_v2(const void *c, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	side(__func__, M(unsigned int, c, 32), M(u, c, 48), M(u, c, 56));
	side(__func__, M(unsigned int, c, 120), M(u, c, 136), M(u, c, 144));
	put(stream, 0);
	release();
	return CALL(cuMemcpy3DAsync_v2, c, st);
}

EXPORT int cuTexObjectCreate(u *o, const void *r, const void *t, const void *v)
{
	in_context(__func__);
	int result = CALL(cuTexObjectCreate, o, r, t, v);
	if (result == 0)
		made(*o, TEXTURE, 0, 0);
	return result;
}

EXPORT int cuSurfObjectCreate(u *o, const void *r)
{
	in_context(__func__);
	int result = CALL(cuSurfObjectCreate, o, r);
	if (result == 0)
		made(*o, SURFACE, 0, 0);
	return result;
}

EXPORT int cuTexObjectDestroy(u o) { ends(__func__, o, TEXTURE); return CALL(cuTexObjectDestroy, o); }
EXPORT int cuSurfObjectDestroy(u o) { ends(__func__, o, SURFACE); return CALL(cuSurfObjectDestroy, o); }

/* References of modules: gpu/cuda looks up each name once. */
EXPORT int cuModuleGetTexRef(u *h, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetTexRef, h, m, name);
	if (r == 0)
		made(*h, REFERENCE, 0, m);
	return r;
}

EXPORT int cuModuleGetSurfRef(u *h, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetSurfRef, h, m, name);
	if (r == 0)
		made(*h, REFERENCE, 0, m);
	return r;
}

/* A call binds an array, or (0) device memory, which must exist. */
static void binds(const char *function, u reference, u array, u device)
{
	of_context(function, reference, REFERENCE);
	acquire();
	side(function, array ? 3 : 2, device, array);
	release();
}

EXPORT int cuSurfRefSetArray(u h, u a, unsigned int flags) { binds(__func__, h, a, 0); return CALL(cuSurfRefSetArray, h, a, flags); }
EXPORT int cuTexRefSetArray(u h, u a, unsigned int flags) { binds(__func__, h, a, 0); return CALL(cuTexRefSetArray, h, a, flags); }
EXPORT int cuTexRefSetAddress_v2(size_t *o, u h, u d, size_t n) { binds(__func__, h, 0, d); return CALL(cuTexRefSetAddress_v2, o, h, d, n); }
EXPORT int cuTexRefSetAddress2D_v3(u h, const void *desc, u d, size_t pitch) { binds(__func__, h, 0, d); return CALL(cuTexRefSetAddress2D_v3, h, desc, d, pitch); }

EXPORT int cuTexRefSetMipmappedArray(u h, u m, unsigned int flags)
{
	of_context(__func__, h, REFERENCE);
	of_context(__func__, m, MIPMAP);
	return CALL(cuTexRefSetMipmappedArray, h, m, flags);
}

EXPORT int cuTexRefSetMipmapLevelBias(u h, float bias) { of_context(__func__, h, REFERENCE); return CALL(cuTexRefSetMipmapLevelBias, h, bias); }
EXPORT int cuTexRefSetMipmapLevelClamp(u h, float least, float most) { of_context(__func__, h, REFERENCE); return CALL(cuTexRefSetMipmapLevelClamp, h, least, most); }

#define SAMPLE(name)                                                                                                   \
	EXPORT int name(u h, u a, u b)                                                                                 \
	{                                                                                                              \
		of_context(__func__, h, REFERENCE);                                                                    \
		return CALL(name, h, a, b);                                                                            \
	}
SAMPLE(cuTexRefSetFormat)
SAMPLE(cuTexRefSetFlags)
SAMPLE(cuTexRefSetAddressMode)
SAMPLE(cuTexRefSetFilterMode)
SAMPLE(cuTexRefSetMipmapFilterMode)
SAMPLE(cuTexRefSetMaxAnisotropy)
SAMPLE(cuTexRefSetBorderColor)

/* Functions that are passed on unchanged, with a context. gpu/cuda passes this number of
 * arguments to each of them. */
#define PASS(name)                                                                                                     \
	EXPORT int name(u a, u b, u c, u d, u e, u f, u g, u h, u i, u j, u k, u l, u m, u n, u o)                     \
	{                                                                                                              \
		in_context(__func__);                                                                                  \
		return CALL(name, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);                                        \
	}
PASS(cuCtxGetExecAffinity)
PASS(cuCtxResetPersistingL2Cache)
PASS(cuMulticastGetGranularity)
PASS(cuOccupancyAvailableDynamicSMemPerBlock)
PASS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
PASS(cuOccupancyMaxActiveClusters)
PASS(cuOccupancyMaxPotentialClusterSize)
PASS(cuProfilerStart)
PASS(cuProfilerStop)
PASS(cuStreamCopyAttributes)
PASS(cuStreamGetAttribute)
PASS(cuStreamSetAttribute)
PASS(cuTensorMapEncodeIm2col)
PASS(cuTensorMapEncodeTiled)
PASS(cuTensorMapReplaceAddress)
