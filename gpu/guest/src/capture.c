#include "capture.h"

#include <stdlib.h>
#include <string.h>

#include "capture_state.h"

_Atomic unsigned int capture_count;
struct capture *captures;
struct captured_stream *captured_streams;

#define NO_STREAM 0 /* the ID in a captured_stream whose stream the program has destroyed */

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

const void *capture_thread(void)
{
	return &thread_mode;
}

int handles_add(struct handle_list *l, CUgraphNode h)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i] == h)
			return 0;
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 4;
		CUgraphNode *at = realloc(l->at, room * sizeof *at);

		if (!at)
			return CUDA_ERROR_OUT_OF_MEMORY;
		l->at = at;
		l->room = room;
	}
	l->at[l->n++] = h;
	return 0;
}

struct captured_stream *captured_find(uint64_t stream)
{
	struct captured_stream *st = captured_streams;

	while (st && st->stream != stream)
		st = st->next;
	return st;
}

struct captured_stream *captured_blocking(uint64_t context)
{
	struct captured_stream *st = captured_streams;

	while (st && !(st->blocking && st->context == context))
		st = st->next;
	return st;
}

int captured_join(struct capture *c, uint64_t stream, uint64_t context, bool blocking, struct captured_stream **out)
{
	struct captured_stream *st = calloc(1, sizeof *st);

	if (!st)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*st = (struct captured_stream){.next = captured_streams, .c = c, .stream = stream, .context = context, .blocking = blocking};
	captured_streams = st;
	*out = st;
	return 0;
}

static void leave(struct captured_stream **at)
{
	struct captured_stream *st = *at;

	*at = st->next;
	free(st->deps.at);
	free(st->edges);
	free(st);
}

void capture_end(struct capture *c)
{
	for (struct captured_stream **at = &captured_streams; *at;) {
		if ((*at)->c == c)
			leave(at);
		else
			at = &(*at)->next;
	}
	for (struct capture **at = &captures; *at; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	c->graph->captures--;
	free(c);
	atomic_fetch_sub(&capture_count, 1);
}

/* Finds the stream, if it is capturing. Returns an error if the capture is already
 * invalidated, or if the call would enqueue work in the legacy stream that depends on a
 * capturing stream. */
static int find_capturing(CUstream h, struct captured_stream **st)
{
	struct captured_stream *other;
	uint64_t stream, context;
	bool blocking;

	TRY(stream_find(h, &stream, &context, &blocking));
	*st = captured_find(stream);
	if (*st)
		return (*st)->c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
	if (stream == context && (other = captured_blocking(context)) != NULL) {
		other->c->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return 0;
}

/* Adds a node that depends on what the stream has captured so far. */
static int append(struct captured_stream *st, int made, struct node_params *p)
{
	struct graph_node *n;

	if (made)
		return made;
	if (p->context && p->context != st->context) {
		params_free(p);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	TRY(node_add(st->c->graph, st->deps.at, st->deps.n, p, &n));
	st->deps.n = 0;
	return handles_add(&st->deps, handle_of(n->o.id));
}

/* The body of a function that captures a node. The expression made creates its parameters p. */
#define CAPTURE(made)                                                                                                  \
	do {                                                                                                           \
		struct captured_stream *st = NULL;                                                                     \
		struct node_params p;                                                                                  \
		int err;                                                                                               \
                                                                                                                       \
		pthread_mutex_lock(&graph_lock);                                                                       \
		err = find_capturing(h, &st);                                                                                   \
		if (err == 0 && st)                                                                                    \
			err = append(st, made, &p);                                                                    \
		*done = st != NULL;                                                                                    \
		pthread_mutex_unlock(&graph_lock);                                                                     \
		return err;                                                                                            \
	} while (0)

static int kernel(CUstream h, const CUDA_KERNEL_NODE_PARAMS *k, unsigned int flags, struct node_params *p)
{
	int err;

	TRY(params_kernel(k, p));
	p->kernel.flags = flags;
	if ((err = kernel_attributes_of_stream(h, &p->kernel)) != 0)
		params_free(p);
	return err;
}

int capture_kernel(CUstream h, const CUDA_KERNEL_NODE_PARAMS *k, unsigned int flags, bool *done)
{
	CAPTURE(kernel(h, k, flags, &p));
}

int capture_copy(CUstream h, const CUDA_MEMCPY3D *c, bool *done)
{
	if (!c->WidthInBytes || !c->Height || !c->Depth)
		return 0; /* the call does nothing */
	CAPTURE(params_copy(c, st->context, &p));
}

int capture_memset(CUstream h, const CUDA_MEMSET_NODE_PARAMS *m, bool *done)
{
	CAPTURE(params_memset(m, st->context, &p));
}

static int batch(const struct captured_stream *st, CUDA_BATCH_MEM_OP_NODE_PARAMS *b, struct node_params *p)
{
	b->ctx = handle_of(st->context);
	return params_batch(b, p);
}

int capture_batch(CUstream h, CUstreamBatchMemOpParams *ops, unsigned int count, bool *done)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS b = {.count = count, .paramArray = ops};

	if (!count)
		return 0; /* the call does nothing */
	CAPTURE(batch(st, &b, &p));
}

int capture_write32(CUstream h, CUdeviceptr address, cuuint32_t value, unsigned int flags, bool *done)
{
	CUstreamBatchMemOpParams write = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = address, .value = value, .flags = flags}};

	return capture_batch(h, &write, 1, done);
}

int capture_write64(CUstream h, CUdeviceptr address, cuuint64_t value, unsigned int flags, bool *done)
{
	CUstreamBatchMemOpParams write = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = address, .value64 = value, .flags = flags}};

	return capture_batch(h, &write, 1, done);
}

static int append_memory(struct captured_stream *st, struct node_params *p)
{
	const struct node_params given = *p;

	TRY(append(st, 0, p));
	graph_memory_belongs(&given, st->c->graph);
	return 0;
}

int capture_allocate(CUstream h, size_t size, CUdeviceptr *address, bool *done)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
					.bytesize = size};
	struct captured_stream *st = NULL;
	struct node_params p;
	int err;

	pthread_mutex_lock(&graph_lock);
	err = find_capturing(h, &st);
	pthread_mutex_unlock(&graph_lock);
	*done = st != NULL;
	if (err || !st)
		return err;
	TRY(graph_memory_new(&a, &p)); /* without the lock, because it may wait */
	pthread_mutex_lock(&graph_lock);
	if ((err = find_capturing(h, &st)) == 0 && !st)
		err = CUDA_ERROR_ILLEGAL_STATE; /* another thread has ended the capture */
	if (err)
		params_free(&p);
	else
		err = append_memory(st, &p);
	pthread_mutex_unlock(&graph_lock);
	if (err == 0)
		*address = a.dptr;
	return err;
}

int capture_free(CUstream h, CUdeviceptr address, bool *done)
{
	struct captured_stream *st = NULL;
	struct node_params p;
	int err;

	pthread_mutex_lock(&graph_lock);
	if ((err = find_capturing(h, &st)) == 0 && st && (err = graph_memory_freed(address, &p)) == 0)
		err = append_memory(st, &p);
	*done = st != NULL;
	pthread_mutex_unlock(&graph_lock);
	return err;
}

int capture_host(CUstream h, CUhostFn fn, void *data, bool *done)
{
	CUDA_HOST_NODE_PARAMS host = {fn, data};

	CAPTURE(params_host(&host, &p));
}

static int child(const struct exec *e, struct node_params *p)
{
	*p = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_GRAPH};
	TRY(graph_clone(e->own, true, &p->child));
	p->child->child = true;
	return 0;
}

int capture_graph(CUstream h, struct exec *e, bool *done)
{
	CAPTURE(child(e, &p));
}

int capture_copy_bytes(CUstream h, unsigned int dst_type, uint64_t dst, unsigned int src_type, uint64_t src, size_t n, bool sync,
		       bool *done)
{
	CUDA_MEMCPY3D c = {.WidthInBytes = n, .Height = 1, .Depth = 1, .srcMemoryType = src_type, .dstMemoryType = dst_type};

	if (sync) {
		TRY(capture_refuse(h));
		return capture_unsafe();
	}
	c.srcDevice = src;
	c.dstDevice = dst;
	if (src_type == CU_MEMORYTYPE_HOST)
		c.srcHost = (const void *)(uintptr_t)src;
	if (dst_type == CU_MEMORYTYPE_HOST)
		c.dstHost = (void *)(uintptr_t)dst;
	return capture_copy(h, &c, done);
}

static struct capture *capture_of(uint64_t id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

static void event_gone(struct object *o)
{
	struct event *e = (struct event *)o;

	if (e->fork)
		free(e->fork->at);
	free(e->fork);
}

/* Records in the event what the stream has captured so far. */
static int record_in_capture(struct event *e, const struct captured_stream *st)
{
	if (!e->fork && !(e->fork = calloc(1, sizeof *e->fork)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->o.destroy = event_gone;
	e->fork->n = 0;
	for (size_t i = 0; i < st->deps.n; i++)
		TRY(handles_add(e->fork, st->deps.at[i]));
	e->captured = st->c->id;
	return 0;
}

static int record(CUstream h, struct event *e, bool external, bool *done)
{
	struct captured_stream *st;
	struct node_params p;

	TRY(find_capturing(h, &st));
	*done = st != NULL;
	if (!st) {
		e->captured = 0;
		return 0;
	}
	if (!external)
		return record_in_capture(e, st);
	return append(st, params_event(handle_of(e->o.id), CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p), &p);
}

int capture_record(CUstream h, struct event *e, bool external, bool *done)
{
	int err;

	pthread_mutex_lock(&graph_lock);
	err = record(h, e, external, done);
	pthread_mutex_unlock(&graph_lock);
	return err;
}

/* Makes a stream wait for an event that was recorded in a capture: the stream joins the
 * capture. */
static int join_capture(CUstream h, struct captured_stream *st, const struct event *e)
{
	struct capture *c = capture_of(e->captured);
	uint64_t stream, context;
	bool blocking;

	if (!c)
		return CUDA_ERROR_CAPTURED_EVENT; /* it was recorded in a capture that has ended */
	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (st && st->c != c) {
		st->c->invalid = c->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	TRY(stream_find(h, &stream, &context, &blocking));
	if (stream == context || context != e->o.context) {
		c->invalid = true;
		return stream == context ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (!st)
		TRY(captured_join(c, stream, context, blocking, &st));
	for (size_t i = 0; i < e->fork->n; i++)
		TRY(handles_add(&st->deps, e->fork->at[i]));
	return 0;
}

static int wait(CUstream h, struct event *e, bool external, bool *done)
{
	struct captured_stream *st;
	struct node_params p;

	TRY(find_capturing(h, &st));
	*done = st != NULL;
	if (external && st)
		return append(st, params_event(handle_of(e->o.id), CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p), &p);
	if (e->captured) {
		*done = true;
		return join_capture(h, st, e);
	}
	if (st && e->recorded) { /* it was recorded outside of the capture */
		st->c->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	return 0;
}

int capture_wait(CUstream h, struct event *e, bool external, bool *done)
{
	int err;

	pthread_mutex_lock(&graph_lock);
	err = wait(h, e, external, done);
	pthread_mutex_unlock(&graph_lock);
	return err;
}

int capture_refuse(CUstream h)
{
	struct captured_stream *st;
	int err;

	pthread_mutex_lock(&graph_lock);
	if ((err = find_capturing(h, &st)) == 0 && st) {
		st->c->invalid = true;
		err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&graph_lock);
	return err;
}

int capture_refuse_context(uint64_t context)
{
	int err = 0;

	pthread_mutex_lock(&graph_lock);
	for (struct captured_stream *st = captured_streams; st; st = st->next) {
		if (st->context == context) {
			st->c->invalid = true;
			err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&graph_lock);
	return err;
}

int capture_unsafe(void)
{
	int err = 0;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return 0;
	pthread_mutex_lock(&graph_lock);
	for (struct capture *c = captures; c; c = c->next) {
		bool mine = c->thread == capture_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
		bool global = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

		if (mine || global) {
			c->invalid = true;
			err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&graph_lock);
	return err;
}

int capture_event(struct event *e)
{
	struct capture *c;

	if (e->captured) {
		pthread_mutex_lock(&graph_lock);
		if ((c = capture_of(e->captured)) != NULL)
			c->invalid = true;
		pthread_mutex_unlock(&graph_lock);
		return CUDA_ERROR_CAPTURED_EVENT;
	}
	return capturing() ? capture_unsafe() : 0;
}

/* Discards a capture whose first stream was destroyed, because it can never end. Its graph is
 * destroyed too. */
static void discard_capture(struct capture *c)
{
	struct graph *g = c->given ? NULL : c->graph;

	capture_end(c);
	graph_drop(g);
}

void capture_stream_gone(uint64_t stream)
{
	pthread_mutex_lock(&graph_lock);
	for (struct captured_stream **at = &captured_streams; *at; at = &(*at)->next) {
		struct capture *c = (*at)->c;

		if ((*at)->stream != stream)
			continue;
		if (c->origin == stream) {
			discard_capture(c);
		} else { /* its captured work must still be joined */
			(*at)->stream = NO_STREAM;
			(*at)->blocking = false;
		}
		break;
	}
	pthread_mutex_unlock(&graph_lock);
}

void capture_context_gone(uint64_t context)
{
	struct captured_stream *st;

	pthread_mutex_lock(&graph_lock);
	do {
		for (st = captured_streams; st && st->context != context; st = st->next)
			;
		if (st)
			discard_capture(st->c);
	} while (st);
	pthread_mutex_unlock(&graph_lock);
}

void captures_abandon(void)
{
	captures = NULL;
	captured_streams = NULL;
	atomic_store(&capture_count, 0);
	thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	graphs_abandon();
	graph_memory_abandon();
	conditions_abandon();
	user_objects_abandon();
}

CUDA_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;

	SESSION(s);
	(void)s;
	if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return 0;
}
