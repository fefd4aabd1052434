/* Contexts: the primary one, each thread's stack of current ones, and the
 * per-thread default streams. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "context_storage.h"

#define STACK_LIMIT 128
#define DEFAULT_STREAMS 8 /* contexts in which one thread has its own stream */

struct thread {
	unsigned generation;
	uint32_t depth;
	uint64_t stack[STACK_LIMIT];
	struct {
		uint64_t context, stream;
	} streams[DEFAULT_STREAMS];
	bool registered;
};

static __thread struct thread thread_state;
static pthread_key_t thread_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t primary;         /* guarded by primary_lock */
static unsigned int primary_refs, primary_flags;

/* This thread's state; a child of fork starts with none. */
static struct thread *self(void)
{
	unsigned g = atomic_load_explicit(&generation, memory_order_relaxed);
	struct thread *t = &thread_state;

	if (t->generation != g) {
		bool registered = t->registered;

		memset(t, 0, sizeof *t);
		t->generation = g;
		t->registered = registered;
	}
	return t;
}

int context_current(uint64_t *context)
{
	struct thread *t = self();
	void *c;

	if (t->depth == 0 || t->stack[t->depth - 1] == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = t->stack[t->depth - 1];
	c = object_get(handle_of(*context), KIND_CONTEXT);
	object_put(c);
	return c ? 0 : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int context_object(struct context **c)
{
	struct thread *t = self();

	if (t->depth == 0 || t->stack[t->depth - 1] == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*c = object_get(handle_of(t->stack[t->depth - 1]), KIND_CONTEXT);
	return *c ? 0 : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static int push(uint64_t context)
{
	struct thread *t = self();

	if (t->depth == STACK_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	t->stack[t->depth++] = context;
	return 0;
}

/* At a thread's end its default streams go. */
static void thread_ends(void *p)
{
	struct thread *t = p;
	struct session *s;

	if (t->generation != atomic_load(&generation) || library_session(&s) != 0)
		return;
	for (int i = 0; i < DEFAULT_STREAMS; i++) {
		struct bslt_stream_destroy a = {t->streams[i].stream};
		void *c = object_get(handle_of(t->streams[i].context), KIND_CONTEXT);

		if (capturing() && a.stream)
			capture_stream_gone(a.stream);
		if (c && a.stream)
			(void)ring_put(s, BSLT_OP_STREAM_DESTROY, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
		if (a.stream)
			object_stream_end(a.stream);
		object_put(c);
	}
}

static void make_key(void)
{
	(void)pthread_key_create(&thread_key, thread_ends);
}

int stream_per_thread(uint64_t context, uint64_t *stream)
{
	struct thread *t = self();
	struct bslt_stream_create a = {.ctx = context};
	int place = -1, err;

	for (int i = 0; i < DEFAULT_STREAMS; i++) {
		if (t->streams[i].context == context && context) {
			*stream = t->streams[i].stream;
			return 0;
		}
		void *c = t->streams[i].context ? object_get(handle_of(t->streams[i].context), KIND_CONTEXT) : NULL;

		if (!c && place < 0)
			place = i;
		object_put(c);
	}
	if (place < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	SESSION(s);
	a.stream = object_stream_id();
	if ((err = ring_put(s, BSLT_OP_STREAM_CREATE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0)) != 0) {
		object_stream_end(a.stream);
		return err;
	}
	if (t->streams[place].stream)
		object_stream_end(t->streams[place].stream); /* its context is gone */
	t->streams[place].context = context;
	t->streams[place].stream = *stream = a.stream;
	if (!t->registered) {
		pthread_once(&key_once, make_key);
		t->registered = pthread_setspecific(thread_key, t) == 0;
	}
	return 0;
}

int stream_find(CUstream h, uint64_t *stream, uint64_t *context, bool *blocking)
{
	struct stream *o;

	*blocking = true;
	if (h == NULL || h == CU_STREAM_LEGACY) {
		TRY(context_current(context));
		*stream = *context;
		return 0;
	}
	if (h == CU_STREAM_PER_THREAD) {
		TRY(context_current(context));
		return stream_per_thread(*context, stream);
	}
	if (!(o = object_get(h, KIND_STREAM)))
		return CUDA_ERROR_INVALID_HANDLE;
	*stream = o->o.id;
	*context = o->o.context;
	*blocking = !(o->flags & CU_STREAM_NON_BLOCKING);
	object_put(o);
	return 0;
}

int stream_resolve(CUstream h, uint64_t *stream, uint64_t *context)
{
	bool blocking;

	TRY(stream_find(h, stream, context, &blocking));
	TRY(callbacks_wait(*stream, *context, blocking)); /* they hear of the error, too */
	return context_fault(*context);
}

static int create(unsigned int flags, unsigned int api, bool is_primary, uint64_t *id)
{
	struct bslt_ctx_create a = {.flags = flags};
	struct context *c;

	SESSION(s);
	a.ctx = object_stream_id();
	if (!(c = object_new(sizeof *c, KIND_CONTEXT, a.ctx, 0))) {
		object_stream_end(a.ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->o.destroy = object_stream_gone;
	c->flags = flags;
	c->api = api;
	c->primary = is_primary;
	c->limits[0] = 1024;     /* CU_LIMIT_STACK_SIZE */
	c->limits[1] = 1u << 20; /* CU_LIMIT_PRINTF_FIFO_SIZE */
	c->limits[2] = 8u << 20; /* CU_LIMIT_MALLOC_HEAP_SIZE */
	c->limits[3] = 2;        /* CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH */
	c->limits[4] = 2048;     /* CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT */
	c->limits[5] = 128;      /* CU_LIMIT_MAX_L2_FETCH_GRANULARITY */
	int err = call(s, BSLT_OP_CTX_CREATE, &a, sizeof a).result;
	if (err) {
		object_put(c);
		return err;
	}
	object_add(c);
	*id = a.ctx;
	return 0;
}

static int destroy(uint64_t id)
{
	struct bslt_ctx_destroy a = {id};

	SESSION(s);
	if (capturing())
		capture_context_gone(id);
	TRY(callbacks_wait(0, id, true));
	if (!object_remove(id, KIND_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	object_remove_context(id);
	ranges_drop_context(id, pool_give);
	return call(s, BSLT_OP_CTX_DESTROY, &a, sizeof a).result;
}

int primary_retain(CUcontext *out)
{
	int err = 0;

	pthread_mutex_lock(&primary_lock);
	if (primary == 0)
		err = create(primary_flags, 3020, true, &primary);
	if (err == 0) {
		primary_refs++;
		*out = handle_of(primary);
	}
	pthread_mutex_unlock(&primary_lock);
	return err;
}

int primary_release(void)
{
	uint64_t gone = 0;
	int err = 0;

	pthread_mutex_lock(&primary_lock);
	if (primary_refs == 0) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (--primary_refs == 0) {
		gone = primary;
		err = destroy(primary);
		primary = 0;
	}
	pthread_mutex_unlock(&primary_lock);
	context_storage_end(gone);
	return err;
}

bool primary_active(void)
{
	bool active;

	pthread_mutex_lock(&primary_lock);
	active = primary != 0;
	pthread_mutex_unlock(&primary_lock);
	return active;
}

void primary_abandon(void)
{
	pthread_mutex_init(&primary_lock, NULL);
	primary = 0;
	primary_refs = primary_flags = 0;
}

CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	SESSION(s);
	(void)s;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	return primary_retain(pctx);
}

CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	SESSION(s);
	(void)s;
	return dev != 0 ? CUDA_ERROR_INVALID_DEVICE : primary_release();
}

/* Frees everything in it; who has retained it keeps his reference, and the
 * next retain makes it anew. */
CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	uint64_t gone;
	int err = 0;

	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	gone = primary;
	if (primary)
		err = destroy(primary);
	primary = 0;
	primary_refs = 0;
	pthread_mutex_unlock(&primary_lock);
	context_storage_end(gone);
	return err;
}

CUDA_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	primary_flags = flags;
	pthread_mutex_unlock(&primary_lock);
	return 0;
}

CUDA_API CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	*flags = primary_flags;
	*active = primary != 0;
	pthread_mutex_unlock(&primary_lock);
	return 0;
}

CUDA_API CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	uint64_t id;

	SESSION(s);
	(void)s;
	if (!pctx || flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(create(flags, 3020, false, &id));
	*pctx = handle_of(id);
	return push(id);
}

/* Execution affinity divides a card among clients of one server: a vGPU has
 * one share already. */
CUDA_API CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev)
{
	(void)paramsArray;
	return numParams ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(pctx, flags, dev);
}

CUDA_API CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	/* CUctxCreateParams: pointer, int count, pointer; zero means none. */
	static const char none[24];

	if (ctxCreateParams && memcmp(ctxCreateParams, none, sizeof none) != 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUDA_API CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	struct thread *t = self();
	struct context *c;
	bool is_primary;
	int err;

	SESSION(s);
	(void)s;
	if (!(c = object_get(ctx, KIND_CONTEXT)))
		return CUDA_ERROR_INVALID_CONTEXT;
	is_primary = c->primary;
	object_put(c);
	if (is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (t->depth && t->stack[t->depth - 1] == (uintptr_t)ctx)
		t->depth--;
	err = destroy((uintptr_t)ctx);
	context_storage_end((uintptr_t)ctx);
	return err;
}

static bool is_context(CUcontext ctx)
{
	void *c = object_get(ctx, KIND_CONTEXT);

	object_put(c);
	return c != NULL;
}

CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	SESSION(s);
	(void)s;
	return is_context(ctx) ? push((uintptr_t)ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	struct thread *t = self();

	SESSION(s);
	(void)s;
	if (t->depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	t->depth--;
	if (pctx)
		*pctx = handle_of(t->stack[t->depth]);
	return 0;
}

CUDA_API CUresult cuCtxSetCurrent(CUcontext ctx)
{
	struct thread *t = self();

	SESSION(s);
	(void)s;
	if (!ctx) {
		if (t->depth)
			t->depth--;
		return 0;
	}
	if (!is_context(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (t->depth == 0)
		return push((uintptr_t)ctx);
	t->stack[t->depth - 1] = (uintptr_t)ctx;
	return 0;
}

CUDA_API CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	struct thread *t = self();

	SESSION(s);
	(void)s;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = t->depth ? handle_of(t->stack[t->depth - 1]) : NULL;
	return 0;
}

CUDA_API CUresult cuCtxGetDevice(CUdevice *dev)
{
	uint64_t c;

	SESSION(s);
	(void)s;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_current(&c));
	*dev = 0;
	return 0;
}

CUDA_API CUresult cuCtxSynchronize(void)
{
	struct bslt_ctx_synchronize a;

	SESSION(s);
	TRY(context_current(&a.ctx));
	if (capturing()) {
		TRY(capture_refuse_context(a.ctx));
		TRY(capture_unsafe());
	}
	TRY(callbacks_wait(0, a.ctx, true));
	return call(s, BSLT_OP_CTX_SYNCHRONIZE, &a, sizeof a).result;
}
