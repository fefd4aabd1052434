/* Changes the parameters of an executable graph: those of one node, or all, to those of
 * another graph of the same structure. Earlier launches are not affected. */
#include <stdlib.h>

#include "graph.h"

struct graph_node *exec_node(struct graph *own, uint64_t origin)
{
	for (size_t i = 0; i < own->nodes.n; i++) {
		struct graph_node *n = own->nodes.at[i], *inside;

		if (n->origin == origin)
			return n;
		if (n->p.kind == CU_GRAPH_NODE_TYPE_GRAPH && (inside = exec_node(n->p.child, origin)) != NULL)
			return inside;
		for (unsigned int k = 0; n->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.choice.size; k++)
			if ((inside = exec_node(n->p.choice.bodies[k], origin)) != NULL)
				return inside;
	}
	return NULL;
}

/* Finds the graph, and waits until no launch of it needs steps of this process any more,
 * because running launches must not use the new parameters. The caller calls object_put. */
static int open_exec(CUgraphExec h, struct exec **e)
{
	SESSION(s);
	(void)s;
	if (!(*e = object_get(h, KIND_GRAPH_EXEC)))
		return CUDA_ERROR_INVALID_VALUE;
	if (exec_stepwise(*e)) {
		int err = callbacks_wait(0, (*e)->o.context, true);

		if (err) {
			object_put(*e);
			return err;
		}
	}
	return 0;
}

static int send(const struct order *o, size_t step, const size_t *changed, size_t n)
{
	SESSION(s);
	return n ? wire_update(s, o, &o->steps[step], changed, n) : 0;
}

/* Sends one node to the worker, if the worker performs it. */
static int send_one(const struct graph_node *n)
{
	const struct flat *f = &n->order->flat[n->first];

	return f->guest ? 0 : send(n->order, f->step, &n->first, 1);
}

/* Reports whether two batches have the same operations. Values, addresses and flags may differ. */
static bool same_operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS *a, const CUDA_BATCH_MEM_OP_NODE_PARAMS *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned int i = 0; i < a->count; i++)
		if (a->paramArray[i].operation != b->paramArray[i].operation)
			return false;
	return true;
}

/* Reports whether the node's parameters can be replaced without changing the steps. */
static bool fits(const struct exec *e, const struct graph_node *n, const struct node_params *p)
{
	struct lowered l;

	if (n->p.kind != p->kind || (p->context && p->context != e->o.context))
		return false;
	if (p->kind == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		return same_operations(&n->p.batch, &p->batch);
	if (p->kind != CU_GRAPH_NODE_TYPE_MEMCPY)
		return true;
	return copy_lower(&p->copy, &l) == 0 && l.guest == n->order->flat[n->first].guest;
}

static int set_node(struct exec *e, CUgraphNode h, int made, struct node_params *p)
{
	struct graph_node *n = exec_node(e->own, (uintptr_t)h);
	struct node_params before;
	int err;

	if (made)
		return made;
	if (!h || !n || !fits(e, n, p)) {
		params_free(p);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (p->kind == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel_attributes_copy(&p->kernel, &n->p.kernel);
	before = n->p;
	n->p = *p;
	if ((err = send_one(n)) != 0) {
		*p = n->p;
		n->p = before;
		params_free(p);
		return err;
	}
	params_free(&before);
	return 0;
}

#define EXEC_SET(make)                                                                                                 \
	do {                                                                                                           \
		struct node_params p;                                                                                  \
		struct exec *e;                                                                                        \
		int err;                                                                                               \
                                                                                                                       \
		TRY(open_exec(hGraphExec, &e));                                                                        \
		pthread_mutex_lock(&graph_lock);                                                                       \
		err = set_node(e, hNode, make, &p);                                                                    \
		pthread_mutex_unlock(&graph_lock);                                                                     \
		object_put(e);                                                                                         \
		return err;                                                                                            \
	} while (0)

CUDA_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
						    const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	EXEC_SET(params_kernel(nodeParams, &p));
}

CUDA_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						 const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	const CUDA_KERNEL_NODE_PARAMS_v1 *v = nodeParams;
	CUDA_KERNEL_NODE_PARAMS k;

	if (!v)
		return CUDA_ERROR_INVALID_VALUE;
	k = (CUDA_KERNEL_NODE_PARAMS){v->func, v->gridDimX, v->gridDimY, v->gridDimZ, v->blockDimX, v->blockDimY, v->blockDimZ,
				      v->sharedMemBytes, v->kernelParams, v->extra, NULL, NULL};
	return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &k);
}

CUDA_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
						 CUcontext ctx)
{
	EXEC_SET(params_copy(copyParams, (uintptr_t)ctx, &p));
}

CUDA_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						 const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	EXEC_SET(params_memset(memsetParams, (uintptr_t)ctx, &p));
}

CUDA_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	EXEC_SET(params_host(nodeParams, &p));
}

CUDA_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	EXEC_SET(params_event(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p));
}

CUDA_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	EXEC_SET(params_event(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p));
}

CUDA_API CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
						     const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	EXEC_SET(params_batch(nodeParams, &p));
}

CUDA_API CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
	EXEC_SET(params_any(nodeParams, &p));
}

/* A change: the nodes of the executable graph and their new parameters. */
struct change {
	struct graph_node **at;
	struct node_params *p;
	size_t n;
	size_t *changed; /* buffer for the list of those of one step */
	const struct graph_node *wrong; /* the node of the other graph that does not fit */
	CUgraphExecUpdateResult why;
};

static int differ(struct change *c, const struct graph_node *n, CUgraphExecUpdateResult why)
{
	c->wrong = n;
	c->why = why;
	return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static bool same_edges(const struct graph *own, const struct graph_node *a, const struct graph_node *b)
{
	if (a->in.n != b->in.n)
		return false;
	for (size_t i = 0; i < b->in.n; i++)
		if (!list_has(&a->in, own->nodes.at[b->in.at[i]->place]))
			return false;
	return true;
}

static int compare(struct exec *e, struct graph *own, const struct graph *g, struct change *c);

/* Compares a conditional node. The bodies are compared like graphs. The condition may differ,
 * because it does if a graph was captured again. */
static int compare_choice(struct exec *e, struct graph_node *a, const struct graph_node *b, struct change *c)
{
	struct node_params *p = &c->p[c->n];

	if (a->p.choice.type != b->p.choice.type || a->p.choice.size != b->p.choice.size)
		return differ(c, b, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	if (a->p.context != b->p.context)
		return differ(c, b, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
	*p = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_CONDITIONAL, .choice = {.condition = condition_get(b->p.choice.condition)}};
	c->at[c->n++] = a;
	for (unsigned int k = 0; k < a->p.choice.size; k++)
		TRY(compare(e, a->p.choice.bodies[k], b->p.choice.bodies[k], c));
	return 0;
}

static int compare(struct exec *e, struct graph *own, const struct graph *g, struct change *c)
{
	if (own->nodes.n != g->nodes.n)
		return differ(c, NULL, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	for (size_t i = 0; i < g->nodes.n; i++)
		g->nodes.at[i]->place = i;
	for (size_t i = 0; i < g->nodes.n; i++) {
		struct graph_node *a = own->nodes.at[i], *b = g->nodes.at[i];

		if (a->p.kind != b->p.kind)
			return differ(c, b, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
		if (!same_edges(own, a, b))
			return differ(c, b, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
		if (a->p.kind == CU_GRAPH_NODE_TYPE_GRAPH) {
			TRY(compare(e, a->p.child, b->p.child, c));
			continue;
		}
		if (a->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			TRY(compare_choice(e, a, b, c));
			continue;
		}
		if (a->p.kind == CU_GRAPH_NODE_TYPE_EMPTY || (is_memory(a->p.kind) && a->p.memory == b->p.memory))
			continue;
		if (is_memory(a->p.kind))
			return differ(c, b, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
		if (!fits(e, a, &b->p))
			return differ(c, b, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
		TRY(params_clone(&b->p, false, &c->p[c->n]));
		c->at[c->n++] = a;
	}
	return 0;
}

static void exchange(struct change *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct node_params p = c->at[i]->p;

		if (p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL) { /* the bodies are kept */
			c->at[i]->p.choice.condition = c->p[i].choice.condition;
			c->p[i].choice.condition = p.choice.condition;
			continue;
		}
		c->at[i]->p = c->p[i];
		c->p[i] = p;
	}
}

/* Sends the changed nodes of one order to the worker, part by part. */
static int send_changes(struct order *o, void *change)
{
	struct change *c = change;

	for (size_t k = 0; k < o->step_count; k++) {
		size_t n = 0;

		if (!o->steps[k].part)
			continue;
		for (size_t i = 0; i < c->n; i++)
			if (c->at[i]->order == o && o->flat[c->at[i]->first].step == k)
				c->changed[n++] = c->at[i]->first;
		TRY(send(o, k, c->changed, n));
	}
	return 0;
}

static int add_nodes(struct order *o, void *sum)
{
	*(size_t *)sum += o->n;
	return 0;
}

static int update(struct exec *e, struct graph *own, const struct graph *g, struct change *c)
{
	size_t n = 1;
	int err = CUDA_ERROR_OUT_OF_MEMORY;

	(void)order_each(&e->order, add_nodes, &n);
	*c = (struct change){.at = calloc(n, sizeof *c->at), .p = calloc(n, sizeof *c->p), .changed = calloc(n, sizeof *c->changed),
			     .why = CU_GRAPH_EXEC_UPDATE_ERROR};
	if (c->changed && c->at && c->p && (err = compare(e, own, g, c)) == 0) {
		exchange(c);
		if ((err = order_each(&e->order, send_changes, c)) != 0) {
			exchange(c);
			(void)order_each(&e->order, send_changes, c); /* restore what was sent */
		}
	}
	for (size_t i = 0; c->p && i < c->n; i++)
		params_free(&c->p[i]); /* the old parameters, or new ones that were not used */
	free(c->changed);
	free(c->at);
	free(c->p);
	if (err == 0)
		c->why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return err;
}

CUDA_API CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	struct change c = {.why = CU_GRAPH_EXEC_UPDATE_ERROR};
	const struct graph *g;
	struct exec *e;
	int err;

	if (!resultInfo)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(open_exec(hGraphExec, &e));
	pthread_mutex_lock(&graph_lock);
	g = graph_find(hGraph);
	err = g ? update(e, e->own, g, &c) : CUDA_ERROR_INVALID_VALUE;
	*resultInfo = (CUgraphExecUpdateResultInfo){c.why, c.wrong ? handle_of(c.wrong->o.id) : NULL, NULL};
	pthread_mutex_unlock(&graph_lock);
	object_put(e);
	return err;
}

CUDA_API CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
				    CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	int err = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	if (updateResult_out)
		*updateResult_out = info.result;
	return err;
}

static int set_child(struct exec *e, CUgraphNode h, CUgraph child)
{
	struct graph_node *n = exec_node(e->own, (uintptr_t)h);
	const struct graph *g = graph_find(child);
	struct change c;
	int err;

	if (!h || !n || !g || n->p.kind != CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	err = update(e, n->p.child, g, &c);
	return err == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : err;
}

CUDA_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	struct exec *e;
	int err;

	TRY(open_exec(hGraphExec, &e));
	pthread_mutex_lock(&graph_lock);
	err = set_child(e, hNode, childGraph);
	pthread_mutex_unlock(&graph_lock);
	object_put(e);
	return err;
}

static bool can_be_disabled(const struct graph_node *n)
{
	return n && (n->p.kind == CU_GRAPH_NODE_TYPE_KERNEL || n->p.kind == CU_GRAPH_NODE_TYPE_MEMCPY ||
		     n->p.kind == CU_GRAPH_NODE_TYPE_MEMSET);
}

static int enable(struct exec *e, CUgraphNode h, bool on)
{
	struct graph_node *n = h ? exec_node(e->own, (uintptr_t)h) : NULL;
	int err;

	if (!can_be_disabled(n))
		return CUDA_ERROR_INVALID_VALUE;
	n->disabled = !on;
	if ((err = send_one(n)) != 0)
		n->disabled = on;
	return err;
}

CUDA_API CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	struct exec *e;
	int err;

	TRY(open_exec(hGraphExec, &e));
	pthread_mutex_lock(&graph_lock);
	err = enable(e, hNode, isEnabled != 0);
	pthread_mutex_unlock(&graph_lock);
	object_put(e);
	return err;
}

CUDA_API CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	const struct graph_node *n;
	struct exec *e;
	int err = CUDA_ERROR_INVALID_VALUE;

	SESSION(s);
	(void)s;
	if (!(e = object_get(hGraphExec, KIND_GRAPH_EXEC)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	n = hNode ? exec_node(e->own, (uintptr_t)hNode) : NULL;
	if (isEnabled && can_be_disabled(n)) {
		*isEnabled = !n->disabled;
		err = 0;
	}
	pthread_mutex_unlock(&graph_lock);
	object_put(e);
	return err;
}
