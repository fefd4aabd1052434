/* Beginning, ending and querying captures. None of it needs the worker. */
#include <stdlib.h>

#include "capture_state.h"

static int start(CUstream h, struct graph *g, const CUgraphNode *deps, size_t n, CUstreamCaptureMode mode, bool given)
{
	struct captured_stream *st;
	uint64_t stream, context;
	struct capture *c;
	bool blocking;
	int err = 0;

	TRY(stream_find(h, &stream, &context, &blocking));
	if (stream == context)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (captured_find(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	TRY(context_fault(context));
	if (!(c = calloc(1, sizeof *c)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*c = (struct capture){.next = captures, .id = object_ids(1), .origin = stream, .graph = g, .given = given, .mode = mode,
			      .thread = capture_thread()};
	if ((err = captured_join(c, stream, context, blocking, &st)) != 0) {
		free(c);
		return err;
	}
	captures = c;
	g->captures++;
	default_streams_tell(capture_stream_gone);
	atomic_fetch_add(&capture_count, 1);
	for (size_t i = 0; i < n && !err; i++)
		err = handles_add(&st->deps, deps[i]);
	if (err)
		capture_end(c);
	return err;
}

static int begin(CUstream h, CUstreamCaptureMode mode)
{
	struct graph *g;
	int err;

	if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(g = graph_new(true)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = start(h, g, NULL, 0, mode, false)) != 0)
		graph_drop(g);
	return err;
}

CUDA_API CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	GRAPH_LOCKED(begin(hStream, mode));
}

CUDA_API CUresult cuStreamBeginCapture(CUstream hStream)
{
	GRAPH_LOCKED(begin(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static int begin_to(CUstream h, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
		    CUstreamCaptureMode mode)
{
	struct graph *g = graph_find(graph);

	if (!g || (n && !deps) || mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!edges_plain(data, n))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < n; i++) {
		const struct graph_node *node = node_find(deps[i]);

		if (!node || node->graph != g)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return start(h, g, deps, n, mode, true);
}

CUDA_API CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
					      const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode)
{
	GRAPH_LOCKED(begin_to(hStream, hGraph, dependencies, dependencyData, numDependencies, mode));
}

/* Marks (place = 1) all nodes that the stream's next node would depend on. */
static int mark_dependencies(const struct captured_stream *st)
{
	struct node_list todo = {0};
	int err = 0;

	for (size_t i = 0; i < st->c->graph->nodes.n; i++)
		st->c->graph->nodes.at[i]->place = 0;
	for (size_t i = 0; i < st->deps.n && !err; i++) {
		struct graph_node *n = node_find(st->deps.at[i]);

		if (n && !n->place) {
			n->place = 1;
			err = list_add(&todo, n);
		}
	}
	while (todo.n && !err) {
		const struct graph_node *n = todo.at[--todo.n];

		for (size_t i = 0; i < n->in.n && !err; i++) {
			if (!n->in.at[i]->place) {
				n->in.at[i]->place = 1;
				err = list_add(&todo, n->in.at[i]);
			}
		}
	}
	free(todo.at);
	return err;
}

/* Checks that the first stream depends on everything that the other streams have captured. */
static int joined(const struct captured_stream *origin)
{
	TRY(mark_dependencies(origin));
	for (const struct captured_stream *st = captured_streams; st; st = st->next) {
		if (st->c != origin->c || st == origin)
			continue;
		for (size_t i = 0; i < st->deps.n; i++) {
			const struct graph_node *n = node_find(st->deps.at[i]);

			if (n && !n->place)
				return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		}
	}
	return 0;
}

static int end(CUstream h, CUgraph *out)
{
	struct captured_stream *st;
	uint64_t stream, context;
	struct graph *g;
	bool blocking, given;
	int err;

	TRY(stream_find(h, &stream, &context, &blocking));
	st = captured_find(stream);
	if (!out && (!st || !st->c->given)) /* a graph that the program gave belongs to the program */
		return CUDA_ERROR_INVALID_VALUE;
	if (!st)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (st->c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && st->c->thread != capture_thread())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (st->c->origin != stream) {
		st->c->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	err = st->c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : joined(st);
	g = st->c->graph;
	given = st->c->given;
	capture_end(st->c);
	if (out)
		*out = err ? NULL : handle_of(g->o.id);
	if (err && !given)
		graph_drop(g);
	return err;
}

CUDA_API CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	GRAPH_LOCKED(end(hStream, phGraph));
}

struct info {
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
	const CUgraphNode *deps;
	const CUgraphEdgeData *edges;
	size_t n;
};

static int query_capture(CUstream h, struct info *out)
{
	struct captured_stream *st;
	uint64_t stream, context;
	CUgraphEdgeData *edges;
	bool blocking;

	*out = (struct info){0};
	TRY(stream_find(h, &stream, &context, &blocking));
	if (!(st = captured_find(stream)))
		return stream == context && captured_blocking(context) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : 0;
	if (!(edges = calloc(st->deps.n + 1, sizeof *edges)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	free(st->edges);
	st->edges = edges;
	*out = (struct info){st->c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE,
			     st->c->id, handle_of(st->c->graph->o.id), st->deps.at, edges, st->deps.n};
	return 0;
}

static int locked_look(CUstream h, struct info *out)
{
	uint64_t stream, context;
	bool blocking;

	*out = (struct info){0};
	if (!capturing()) {
		SESSION(s);
		(void)s;
		return stream_find(h, &stream, &context, &blocking);
	}
	GRAPH_LOCKED(query_capture(h, out));
}

CUDA_API CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	struct info i;

	if (!captureStatus)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(locked_look(hStream, &i));
	*captureStatus = i.status;
	return 0;
}

CUDA_API CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
					    CUgraph *graph_out, const CUgraphNode **dependencies_out,
					    const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	struct info i;

	if (!captureStatus_out)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(locked_look(hStream, &i));
	*captureStatus_out = i.status;
	if (i.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return 0;
	if (id_out)
		*id_out = i.id;
	if (graph_out)
		*graph_out = i.graph;
	if (dependencies_out)
		*dependencies_out = i.deps;
	if (edgeData_out)
		*edgeData_out = i.edges;
	if (numDependencies_out)
		*numDependencies_out = i.n;
	return 0;
}

CUDA_API CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
					    CUgraph *graph_out, const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}

CUDA_API CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

static int update(CUstream h, const CUgraphNode *deps, size_t n, unsigned int flags)
{
	struct captured_stream *st;
	uint64_t stream, context;
	bool blocking;

	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(stream_find(h, &stream, &context, &blocking));
	if (!(st = captured_find(stream)))
		return CUDA_ERROR_ILLEGAL_STATE;
	if (st->c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	for (size_t i = 0; i < n; i++) {
		const struct graph_node *node = node_find(deps[i]);

		if (!node || node->graph != st->c->graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		st->deps.n = 0;
	for (size_t i = 0; i < n; i++)
		TRY(handles_add(&st->deps, deps[i]));
	return 0;
}

CUDA_API CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
						    unsigned int flags)
{
	GRAPH_LOCKED(update(hStream, dependencies, numDependencies, flags));
}

CUDA_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
						       const CUgraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags)
{
	if (!edges_plain(dependencyData, numDependencies))
		return CUDA_ERROR_NOT_SUPPORTED;
	GRAPH_LOCKED(update(hStream, dependencies, numDependencies, flags));
}
