/* The state of a thread: its stack of contexts, and its own default streams. */
#include <string.h>

#include "green.h"

#define STACK_LIMIT 128
#define DEFAULT_STREAMS 8 /* number of contexts in which one thread can have its own stream */

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
static _Atomic(void (*)(uint64_t)) stream_gone; /* called for default streams that are destroyed */

/* Returns this thread's state. It is empty at first in a child of fork. */
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
	struct context *c;

	TRY(context_object(&c));
	*context = c->o.id;
	object_put(c);
	return 0;
}

struct context *context_get(const void *h)
{
	struct context *c = object_get(h, KIND_CONTEXT);
	struct object *green;

	if (c || !(green = object_get(h, KIND_GREEN)))
		return c;
	c = object_get(handle_of(green->context), KIND_CONTEXT);
	object_put(green);
	return c;
}

uint64_t green_current(void)
{
	struct thread *t = self();
	uint64_t id = t->depth ? t->stack[t->depth - 1] : 0;

	return id && is_green(handle_of(id)) ? id : 0;
}

int context_object(struct context **c)
{
	struct thread *t = self();

	if (t->depth == 0 || t->stack[t->depth - 1] == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*c = context_get(handle_of(t->stack[t->depth - 1]));
	return *c ? 0 : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int current_push(uint64_t context)
{
	struct thread *t = self();

	if (t->depth == STACK_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	t->stack[t->depth++] = context;
	return 0;
}

void current_leave(uint64_t context)
{
	struct thread *t = self();

	if (t->depth && t->stack[t->depth - 1] == context)
		t->depth--;
}

void default_streams_tell(void (*gone)(uint64_t stream))
{
	atomic_store(&stream_gone, gone);
}

/* Destroys the default streams of a thread that ends. */
static void thread_ends(void *p)
{
	struct thread *t = p;
	struct session *s;

	if (t->generation != atomic_load(&generation) || library_session(&s) != 0)
		return;
	for (int i = 0; i < DEFAULT_STREAMS; i++) {
		struct bslt_stream_destroy a = {t->streams[i].stream};
		void *c = object_get(handle_of(t->streams[i].context), KIND_CONTEXT);

		void (*gone)(uint64_t) = atomic_load(&stream_gone);

		if (gone && a.stream)
			gone(a.stream);
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
		object_stream_end(t->streams[place].stream); /* its context was destroyed */
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

static bool is_context(CUcontext ctx)
{
	void *c = context_get(ctx);

	object_put(c);
	return c != NULL;
}

CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	SESSION(s);
	(void)s;
	return is_context(ctx) ? current_push((uintptr_t)ctx) : CUDA_ERROR_INVALID_CONTEXT;
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
		return current_push((uintptr_t)ctx);
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

/* numba looks up each name with the suffix _v2 first, and calls this function with the one
 * argument of cuCtxGetDevice. What is then in place of ctx is not a context, which means the
 * current one, as NULL does. */
CUDA_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	if (!ctx || !is_context(ctx))
		return cuCtxGetDevice(device);
	SESSION(s);
	(void)s;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = 0;
	return 0;
}
