/* Events of all work of a context: an event is recorded after the work of every stream, or
 * every stream waits for it. Blocking streams are ordered with the default stream, so it
 * represents them, including those that are created later. A stream called gate represents
 * the other streams that are created later. */
#include <stdlib.h>

#include "capture.h"
#include "green.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the creation of gates */
static _Atomic bool any_gate;

/* Orders later work of the stream to after the current work of the stream from. */
static int order(CUstream from, CUstream to)
{
	CUevent e;
	int err;

	TRY(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	if ((err = cuEventRecord(e, from)) == 0)
		err = cuStreamWaitEvent(to, e, 0);
	(void)cuEventDestroy_v2(e);
	return err;
}

static bool is_of(const struct stream *o, uint64_t context, uint64_t green)
{
	return o->o.context == context && o->green == green && o->flags & CU_STREAM_NON_BLOCKING && !o->gate;
}

/* Calls f for the default stream of a context, which is current, and for its streams that are
 * not ordered with that stream. If green is not 0, it does so for a green context. */
static int for_each_stream(uint64_t context, uint64_t green, int (*f)(CUstream h, void *data), void *data)
{
	size_t most = object_list(KIND_STREAM, NULL, 0) + 64, n;
	uint64_t *ids = calloc(most, sizeof *ids);
	int err;

	if (!ids)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n = object_list(KIND_STREAM, ids, most);
	err = f(CU_STREAM_LEGACY, data);
	for (size_t i = 0; i < n && i < most && !err; i++) {
		struct stream *o = object_get(handle_of(ids[i]), KIND_STREAM);
		bool is = o && is_of(o, context, green);

		object_put(o);
		if (is)
			err = f(handle_of(ids[i]), data);
	}
	free(ids);
	return err;
}

static int refuse_captured(CUstream h, void *data)
{
	(void)data;
	return capture_refuse(h);
}

static int order_after_stream(CUstream h, void *to)
{
	return order(h, to);
}

static int record_all(uint64_t context, uint64_t green, CUevent event)
{
	CUstream all;
	int err;

	TRY(cuStreamCreateWithPriority(&all, CU_STREAM_NON_BLOCKING, 0));
	if ((err = for_each_stream(context, green, order_after_stream, all)) == 0)
		err = cuEventRecord(event, all);
	(void)cuStreamDestroy_v2(all);
	return err;
}

static int wait_one(CUstream h, void *event)
{
	return cuStreamWaitEvent(h, event, 0);
}

/* Finds or creates the gate in *place, of the current context. */
static int gate_at(_Atomic uint64_t *place, uint64_t *gate)
{
	struct stream *o;
	CUstream h;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (*place == 0 && (err = cuStreamCreateWithPriority(&h, CU_STREAM_NON_BLOCKING, 0)) == 0) {
		if ((o = object_get(h, KIND_STREAM)) != NULL)
			o->gate = true;
		object_put(o);
		*place = (uintptr_t)h;
		any_gate = true;
	}
	*gate = *place;
	pthread_mutex_unlock(&lock);
	return err;
}

/* Returns where a context or green context stores its gate, or NULL if it was destroyed. The
 * caller calls object_put(*holder). */
static _Atomic uint64_t *gate_place(uint64_t context, uint64_t green, void **holder)
{
	struct green *g = green ? object_get(handle_of(green), KIND_GREEN) : NULL;
	struct context *c = green ? NULL : object_get(handle_of(context), KIND_CONTEXT);

	*holder = green ? (void *)g : c;
	return g ? &g->gate : c ? &c->gate : NULL;
}

static int wait_all(uint64_t context, uint64_t green, CUevent event)
{
	_Atomic uint64_t *place;
	void *holder;
	uint64_t gate;
	int err = CUDA_ERROR_INVALID_CONTEXT;

	TRY(for_each_stream(context, green, wait_one, event));
	if ((place = gate_place(context, green, &holder)) != NULL && (err = gate_at(place, &gate)) == 0)
		err = cuStreamWaitEvent(handle_of(gate), event, 0);
	object_put(holder);
	return err;
}

int context_gate(CUstream h, uint64_t context, uint64_t green)
{
	_Atomic uint64_t *place;
	uint64_t gate = 0;
	void *holder;

	if (!any_gate)
		return 0;
	if ((place = gate_place(context, green, &holder)) != NULL)
		gate = *place;
	object_put(holder);
	return gate ? order(handle_of(gate), h) : 0;
}

/* Calls f for a context or green context, while the context is current. */
static int for_all(const void *h, CUevent event, int (*f)(uint64_t context, uint64_t green, CUevent event))
{
	struct green *g = object_get(h, KIND_GREEN);
	struct context *c = g ? NULL : object_get(h, KIND_CONTEXT);
	struct event *e = object_get(event, KIND_EVENT);
	uint64_t context, green = g ? g->o.id : 0;
	int err = !c && !g ? CUDA_ERROR_INVALID_CONTEXT : !e ? CUDA_ERROR_INVALID_HANDLE : 0;

	context = g ? g->o.context : c ? c->o.id : 0;
	if (!err && f == record_all && e->o.context != context)
		err = CUDA_ERROR_INVALID_HANDLE;
	if (!err && (err = current_push(context)) == 0) {
		if (capturing())
			err = for_each_stream(context, green, refuse_captured, NULL);
		if (!err)
			err = f(context, green, event);
		current_leave(context);
	}
	object_put(e);
	object_put(c);
	object_put(g);
	return err;
}

CUDA_API CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	SESSION(s);
	(void)s;
	return for_all(hCtx, hEvent, record_all);
}

CUDA_API CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	SESSION(s);
	(void)s;
	return for_all(hCtx, hEvent, wait_all);
}

CUDA_API CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	SESSION(s);
	(void)s;
	return is_green(hCtx) ? for_all(hCtx, hEvent, record_all) : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA_API CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	SESSION(s);
	(void)s;
	return is_green(hCtx) ? for_all(hCtx, hEvent, wait_all) : CUDA_ERROR_INVALID_CONTEXT;
}
