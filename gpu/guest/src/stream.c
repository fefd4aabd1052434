#include "capture.h"
#include "green.h"

CUDA_API CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct bslt_stream_create a = {.flags = flags, .priority = priority};
	struct stream *o;
	uint64_t green;
	int err;

	SESSION(s);
	if (!phStream || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_working(&a.ctx));
	a.stream = object_stream_id();
	if (!(o = object_new(sizeof *o, KIND_STREAM, a.stream, a.ctx))) {
		object_stream_end(a.stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	o->o.destroy = object_stream_gone;
	o->flags = flags;
	o->green = green_current();
	o->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	a.priority = o->priority;
	if ((err = ring_put(s, BSLT_OP_STREAM_CREATE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0)) != 0) {
		object_put(o);
		return err;
	}
	green = o->green;
	object_add(o);
	*phStream = handle_of(a.stream);
	return flags & CU_STREAM_NON_BLOCKING ? context_gate(*phStream, a.ctx, green) : 0;
}

CUDA_API CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUDA_API CUresult cuStreamDestroy_v2(CUstream hStream)
{
	struct bslt_stream_destroy a = {(uintptr_t)hStream};
	uint64_t context;
	bool blocking;
	int err;

	SESSION(s);
	if (a.stream <= (uintptr_t)CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	TRY(stream_find(hStream, &a.stream, &context, &blocking));
	TRY(callbacks_wait(a.stream, context, blocking));
	err = context_fault(context); /* the stream is destroyed nevertheless */
	if (!object_remove(a.stream, KIND_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	if (capturing())
		capture_stream_gone(a.stream);
	TRY(err);
	return ring_put(s, BSLT_OP_STREAM_DESTROY, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

CUDA_API CUresult cuStreamSynchronize(CUstream hStream)
{
	return output_after(hStream, stream_wait(hStream));
}

CUDA_API CUresult cuStreamQuery(CUstream hStream)
{
	struct bslt_stream_query a;
	uint64_t context;
	bool blocking;

	SESSION(s);
	if (capturing())
		TRY(capture_refuse(hStream));
	TRY(stream_find(hStream, &a.stream, &context, &blocking));
	if (callbacks_pending(a.stream, context, blocking))
		return CUDA_ERROR_NOT_READY;
	return call(s, BSLT_OP_STREAM_QUERY, &a, sizeof a).result;
}

CUDA_API CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct bslt_stream_wait_event a;
	uint64_t context;
	struct event *e;
	bool done = false;
	int err;

	SESSION(s);
	if (Flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(e = object_get(hEvent, KIND_EVENT)))
		return CUDA_ERROR_INVALID_HANDLE;
	a.event = e->o.id;
	err = capturing() || e->captured ? capture_wait(hStream, e, Flags & CU_EVENT_WAIT_EXTERNAL, &done) : 0;
	if (err == 0 && !done && Flags & CU_EVENT_WAIT_EXTERNAL)
		err = CUDA_ERROR_INVALID_VALUE; /* the flag is valid in a capture only */
	if (err == 0 && !done && (err = stream_resolve(hStream, &a.stream, &context)) == 0)
		err = e->shared ? ipc_stream_wait(s, hStream, e) : stream_put(s, a.stream, BSLT_OP_STREAM_WAIT_EVENT, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	object_put(e);
	return err;
}

/* Returns flags and priority of a stream. Default streams have none. */
static int info(CUstream h, unsigned int *flags, int *priority)
{
	uint64_t id, context;
	bool blocking;
	struct stream *o;

	SESSION(s);
	(void)s;
	TRY(stream_find(h, &id, &context, &blocking));
	*flags = 0;
	*priority = 0;
	if ((o = object_get(h, KIND_STREAM)) != NULL) {
		*flags = o->flags;
		*priority = o->priority;
		object_put(o);
	}
	return 0;
}

CUDA_API CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	int priority;

	return flags ? info(hStream, flags, &priority) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	unsigned int flags;

	return priority ? info(hStream, &flags, priority) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	uint64_t id, context;
	bool blocking;

	SESSION(s);
	(void)s;
	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(stream_find(hStream, &id, &context, &blocking));
	*streamId = id;
	return 0;
}

/* Green contexts do not matter here: all streams are on the one device. */
CUDA_API CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	CUcontext of;

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuStreamGetCtx(hStream, &of));
	*device = 0;
	return 0;
}
