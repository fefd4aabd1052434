/* Creation, launch and destruction of executable graphs. */
#include <stdlib.h>

#include "capture.h"
#include "graph.h"
#include "reference.h"

/* Finds the context of all nodes. They must belong to one context; nodes without a context use
 * the current one. */
static int context_of(const struct graph *g, uint64_t *context, const struct graph_node **wrong)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct graph_node *n = g->nodes.at[i];

		if (n->p.kind == CU_GRAPH_NODE_TYPE_GRAPH)
			TRY(context_of(n->p.child, context, wrong));
		for (unsigned int k = 0; n->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.choice.size; k++)
			TRY(context_of(n->p.choice.bodies[k], context, wrong));
		if (n->p.context == 0)
			continue;
		if (*context && *context != n->p.context) {
			*wrong = n;
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		*context = n->p.context;
	}
	return 0;
}

static void unwanted(void *references, int err)
{
	(void)err;
	user_references_free(references);
}

/* Destroys the worker's executable graphs of an order. The worker completes a running launch;
 * what the program needs until then (user objects) is released afterwards. */
static int destroy_parts(struct order *o, void *session)
{
	for (size_t i = 0; i < o->step_count; i++) {
		struct bslt_graph_destroy a = {o->steps[i].part};

		if (a.exec)
			(void)ring_put(session, BSLT_OP_GRAPH_DESTROY, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	}
	return 0;
}

static void exec_destroy(struct object *o)
{
	struct exec *e = (struct exec *)o;
	struct session *s;

	if (library_session(&s) == 0)
		(void)order_each(&e->order, destroy_parts, s);
	order_free(&e->order);
	if (e->memory)
		graph_memory_uninstantiate(e->own);
	if (e->own && e->own->users && e->launched && callbacks_after(e->o.context, unwanted, e->own->users) == 0)
		e->own->users = NULL;
	graph_drop(e->own);
}

struct maker {
	struct session *session;
	uint64_t context;
	int err;
};

/* Creates the worker's executable graphs of an order. After an error, the worker does not have
 * the rest. */
static int make_parts(struct order *o, void *arg)
{
	struct maker *m = arg;

	for (size_t i = 0; i < o->step_count; i++) {
		struct step *st = &o->steps[i];

		if (!st->part)
			continue;
		if (!m->err) {
			st->part = object_ids(1);
			m->err = wire_instantiate(m->session, o, st, m->context);
		}
		if (m->err)
			st->part = 0;
	}
	return 0;
}

static int instantiate(CUgraphExec *out, CUgraph h, unsigned long long flags, CUDA_GRAPH_INSTANTIATE_PARAMS *said)
{
	struct graph *g = graph_find(h);
	const struct graph_node *wrong = NULL;
	struct maker maker = {0};
	struct exec *e;
	uint64_t context = 0;
	int err;

	SESSION(s);
	if (!out || !g || flags & ~15ull)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if ((err = context_of(g, &context, &wrong)) != 0) {
		said->result_out = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
		said->hErrNode_out = handle_of(wrong->o.id);
		return err;
	}
	if (context == 0)
		TRY(context_current(&context));
	TRY(context_fault(context));
	if (!(e = object_new(sizeof *e, KIND_GRAPH_EXEC, object_ids(1), context)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->o.destroy = exec_destroy;
	e->flags = flags;
	if ((err = graph_clone(g, false, &e->own)) == 0 && (err = order_make(e->own, &e->order)) != 0)
		said->result_out = err == CUDA_ERROR_INVALID_VALUE ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE : said->result_out;
	if (err == 0 && graph_has_memory(e->own)) {
		err = graph_memory_instantiate(e->own);
		e->memory = err == 0;
	}
	if (err == 0) {
		maker = (struct maker){s, context, 0};
		(void)order_each(&e->order, make_parts, &maker);
		err = maker.err;
	}
	if (err) {
		object_put(e);
		return err;
	}
	object_add(e);
	*out = handle_of(e->o.id);
	said->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return 0;
}

/* Instantiates a graph with graph_lock held. That is possible because sending a graph to the
 * worker waits for an answer, but not for a stream. */
static int instantiate_locked(CUgraphExec *out, CUgraph h, unsigned long long flags, CUDA_GRAPH_INSTANTIATE_PARAMS *said)
{
	said->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	said->hErrNode_out = NULL;
	GRAPH_LOCKED(instantiate(out, h, flags, said));
}

CUDA_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS said;

	return instantiate_locked(phGraphExec, hGraph, flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, &said);
}

CUDA_API CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
					       CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate_locked(phGraphExec, hGraph, instantiateParams->flags, instantiateParams);
}

CUDA_API CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
					size_t bufferSize)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS said;
	int err = instantiate_locked(phGraphExec, hGraph, 0, &said);

	if (logBuffer && bufferSize)
		*logBuffer = 0;
	if (phErrorNode)
		*phErrorNode = err ? said.hErrNode_out : NULL;
	return err;
}

CUDA_API CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
				     size_t bufferSize)
{
	return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUDA_API CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	GRAPH_LOCKED(object_remove((uintptr_t)hGraphExec, KIND_GRAPH_EXEC) ? 0 : CUDA_ERROR_INVALID_VALUE);
}

CUDA_API CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	struct exec *e;

	SESSION(s);
	(void)s;
	if (!flags || !(e = object_get(hGraphExec, KIND_GRAPH_EXEC)))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = e->flags;
	object_put(e);
	return 0;
}

/* Launches an executable graph and takes ownership of *e. Most graphs have one part: they need
 * one command and not graph_lock. */
static int launch(struct session *s, struct exec *e, CUstream h)
{
	struct bslt_graph_launch a;
	uint64_t context;
	bool blocking;
	int err;

	if ((err = stream_find(h, &a.stream, &context, &blocking)) == 0 &&
	    (err = callbacks_wait(a.stream, context, blocking)) == 0 && (err = context_fault(context)) == 0 &&
	    context != e->o.context)
		err = CUDA_ERROR_INVALID_HANDLE;
	if (err == 0)
		err = references_ready(s, context, 0);
	if (err == 0 && e->memory)
		err = graph_memory_launch(e->own, e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	if (err == 0 && exec_stepwise(e))
		return exec_run(s, e, a.stream, context, blocking);
	if (err == 0) {
		a.exec = e->order.steps[0].part;
		err = stream_enter(s, a.stream, exec_units(e));
	}
	if (err == 0)
		err = ring_put(s, BSLT_OP_GRAPH_LAUNCH, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	object_put(e);
	return err;
}

CUDA_API CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	struct exec *e;
	bool done = false;

	SESSION(s);
	if (!(e = object_get(hGraphExec, KIND_GRAPH_EXEC)))
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing()) {
		int err = capture_graph(hStream, e, &done);

		if (err || done) {
			object_put(e);
			return err;
		}
	}
	atomic_store_explicit(&e->launched, true, memory_order_relaxed);
	return launch(s, e, hStream);
}

/* Does nothing but check: the worker has the whole graph since it was instantiated. */
CUDA_API CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	uint64_t stream, context;
	struct exec *e;

	SESSION(s);
	(void)s;
	e = object_get(hGraphExec, KIND_GRAPH_EXEC);
	object_put(e);
	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_refuse(hStream));
	return stream_resolve(hStream, &stream, &context);
}
