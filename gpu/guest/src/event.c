#include <string.h>

#include "capture.h"

CUDA_API CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct bslt_event_create a = {.flags = Flags};
	struct event *e;
	int err;

	SESSION(s);
	if (!phEvent || Flags & ~7u || (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS && !device_attribute(IPC_EVENT_SUPPORTED))
		return CUDA_ERROR_NOT_SUPPORTED;
	TRY(context_working(&a.ctx));
	a.event = object_ids(1);
	if (!(e = object_new(sizeof *e, KIND_EVENT, a.event, a.ctx)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = Flags;
	if ((err = ring_put(s, BSLT_OP_EVENT_CREATE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0)) != 0) {
		object_put(e);
		return err;
	}
	object_add(e);
	*phEvent = handle_of(a.event);
	return 0;
}

CUDA_API CUresult cuEventDestroy_v2(CUevent hEvent)
{
	struct bslt_event_destroy a = {(uintptr_t)hEvent};

	SESSION(s);
	if (!object_remove(a.event, KIND_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	return ring_put(s, BSLT_OP_EVENT_DESTROY, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

/* Enqueues the record of an event. If the event is shared, it waits until the worker has
 * counted the record, so that a process that learns of it by any means finds it. */
static int put_record(struct session *s, const struct event *e, const struct bslt_event_record *a)
{
	uint32_t slot;
	int err;

	if (!e->shared)
		return stream_put(s, a->stream, BSLT_OP_EVENT_RECORD, 0, BSLT_NO_SLOT, a, sizeof *a, NULL, 0);
	TRY(slot_take(s, &slot));
	if ((err = stream_put(s, a->stream, BSLT_OP_EVENT_RECORD, 0, slot, a, sizeof *a, NULL, 0)) == 0)
		return slot_wait(s, slot).result;
	slot_give(s, slot);
	return err;
}

static int record(CUevent hEvent, CUstream hStream, bool external)
{
	struct bslt_event_record a;
	bool done = false;
	uint64_t context;
	struct event *e;
	int err;

	SESSION(s);
	if (!(e = object_get(hEvent, KIND_EVENT)))
		return CUDA_ERROR_INVALID_HANDLE;
	a.event = e->o.id;
	err = capturing() || e->captured ? capture_record(hStream, e, external, &done) : 0;
	if (err || done) {
		object_put(e);
		return err;
	}
	if ((err = stream_resolve(hStream, &a.stream, &context)) == 0 && (context != e->o.context || external))
		err = external ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	if (err == 0 && (err = put_record(s, e, &a)) == 0)
		e->recorded = true;
	object_put(e);
	return err;
}

CUDA_API CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return record(hEvent, hStream, false);
}

CUDA_API CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	return flags & ~1u ? CUDA_ERROR_INVALID_VALUE : record(hEvent, hStream, flags & CU_EVENT_RECORD_EXTERNAL);
}

/* Queries or waits for an event. An event that was never recorded counts as done. */
static int query_event(CUevent h, uint16_t op)
{
	struct bslt_event_query a;
	struct event *e;
	uint64_t context;
	bool recorded;
	int err;

	SESSION(s);
	if (!(e = object_get(h, KIND_EVENT)))
		return CUDA_ERROR_INVALID_HANDLE;
	a.event = e->o.id;
	context = e->o.context;
	recorded = e->recorded || e->shared;
	err = capturing() || e->captured ? capture_event(e) : 0;
	object_put(e);
	TRY(err);
	TRY(context_fault(context));
	err = recorded ? call(s, op, &a, sizeof a).result : 0;
	if (op == BSLT_OP_EVENT_SYNCHRONIZE)
		output_show(s, context);
	return err;
}

CUDA_API CUresult cuEventSynchronize(CUevent hEvent)
{
	return query_event(hEvent, BSLT_OP_EVENT_SYNCHRONIZE);
}

CUDA_API CUresult cuEventQuery(CUevent hEvent)
{
	return query_event(hEvent, BSLT_OP_EVENT_QUERY);
}

