/* Graphs: nodes, and the dependencies between them. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

void graphs_abandon(void)
{
	pthread_mutex_init(&graph_lock, NULL);
}

int list_add(struct node_list *l, struct graph_node *n)
{
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 4;
		struct graph_node **at = realloc(l->at, room * sizeof *at);

		if (!at)
			return CUDA_ERROR_OUT_OF_MEMORY;
		l->at = at;
		l->room = room;
	}
	l->at[l->n++] = n;
	return 0;
}

static size_t list_find(const struct node_list *l, const struct graph_node *n)
{
	size_t i = l->n;

	while (i > 0 && l->at[i - 1] != n) /* recent nodes are searched most often */
		i--;
	return i; /* its index plus one, or 0 */
}

bool list_has(const struct node_list *l, const struct graph_node *n)
{
	return list_find(l, n) != 0;
}

bool list_remove(struct node_list *l, const struct graph_node *n)
{
	size_t i = list_find(l, n);

	if (i == 0)
		return false;
	memmove(l->at + i - 1, l->at + i, (l->n - i) * sizeof *l->at);
	l->n--;
	return true;
}

/* Finds an object. It stays valid while graph_lock is held, because objects are removed only
 * with that lock. */
static void *find(const void *h, enum kind kind)
{
	void *o = object_get(h, kind);

	object_put(o);
	return o;
}

struct graph *graph_find(CUgraph h)
{
	return find(h, KIND_GRAPH);
}

struct graph_node *node_find(CUgraphNode h)
{
	return find(h, KIND_GRAPH_NODE);
}

static void node_destroy(struct object *o)
{
	struct graph_node *n = (struct graph_node *)o;

	params_free(&n->p);
	free(n->in.at);
	free(n->out.at);
}

static void node_drop(struct graph_node *n)
{
	if (n->o.id)
		(void)object_remove(n->o.id, KIND_GRAPH_NODE);
	else
		object_put(n);
}

static void graph_destroy(struct object *o)
{
	struct graph *g = (struct graph *)o;

	for (size_t i = 0; i < g->nodes.n; i++)
		node_drop(g->nodes.at[i]);
	free(g->nodes.at);
	user_references_free(g->users);
	conditions_free(g);
}

struct graph *graph_new(bool visible)
{
	struct graph *g = object_new(sizeof *g, KIND_GRAPH, visible ? object_ids(1) : 0, 0);

	if (!g)
		return NULL;
	g->o.destroy = graph_destroy;
	if (visible)
		object_add(g);
	return g;
}

void graph_drop(struct graph *g)
{
	if (!g)
		return;
	if (g->o.id)
		(void)object_remove(g->o.id, KIND_GRAPH);
	else
		object_put(g);
}

int edge_add(struct graph_node *from, struct graph_node *to)
{
	if (from == to || from->graph != to->graph || list_has(&to->in, from))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(list_add(&to->in, from));
	if (list_add(&from->out, to) != 0) {
		to->in.n--;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return 0;
}

static void edge_remove(struct graph_node *from, struct graph_node *to)
{
	(void)list_remove(&to->in, from);
	(void)list_remove(&from->out, to);
}

static void detach(struct graph_node *n)
{
	while (n->in.n)
		edge_remove(n->in.at[0], n);
	while (n->out.n)
		edge_remove(n, n->out.at[0]);
	(void)list_remove(&n->graph->nodes, n);
}

int node_add(struct graph *g, const CUgraphNode *deps, size_t n, struct node_params *p, struct graph_node **out)
{
	struct graph_node *node = NULL, *from;
	int err = n && !deps ? CUDA_ERROR_INVALID_VALUE : 0;

	if (!err && !(node = object_new(sizeof *node, KIND_GRAPH_NODE, g->o.id ? object_ids(1) : 0, 0)))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (err) {
		params_free(p);
		return err;
	}
	node->o.destroy = node_destroy;
	node->graph = g;
	node->p = *p;
	if ((err = list_add(&g->nodes, node)) == 0)
		for (size_t i = 0; i < n && !err; i++)
			err = (from = node_find(deps[i])) ? edge_add(from, node) : CUDA_ERROR_INVALID_VALUE;
	if (err) {
		detach(node);
		object_put(node);
		return err;
	}
	if (node->o.id)
		object_add(node);
	*out = node;
	return 0;
}

static int create(CUgraph *out, unsigned int flags)
{
	struct graph *g;

	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(g = graph_new(true)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = handle_of(g->o.id);
	return 0;
}

CUDA_API CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	GRAPH_LOCKED(create(phGraph, flags));
}

static int destroy(CUgraph h)
{
	struct graph *g = graph_find(h);

	if (!g || g->child || g->captures)
		return CUDA_ERROR_INVALID_VALUE;
	graph_drop(g);
	return 0;
}

CUDA_API CUresult cuGraphDestroy(CUgraph hGraph)
{
	GRAPH_LOCKED(destroy(hGraph));
}

static int destroy_node(CUgraphNode h)
{
	struct graph_node *n = node_find(h);

	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph_has_memory(n->graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	detach(n);
	node_drop(n);
	return 0;
}

CUDA_API CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	GRAPH_LOCKED(destroy_node(hNode));
}

/* An edge with data allows a kernel to begin before the other has ended, which is not
 * supported. */
bool edges_plain(const CUgraphEdgeData *data, size_t n)
{
	static const CUgraphEdgeData none;

	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &none, sizeof none) != 0)
			return false;
	return true;
}

/* Adds or removes edges: all of them, or none if there is an error. */
static int change(CUgraph h, const CUgraphNode *from, const CUgraphNode *to, size_t n, bool add)
{
	struct graph *g = graph_find(h);
	int err = 0;

	if (!g || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!add && n && graph_has_memory(g))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < n; i++) {
		struct graph_node *a = node_find(from[i]), *b = node_find(to[i]);

		if (!a || !b || a->graph != g || b->graph != g || list_has(&b->in, a) == add)
			err = CUDA_ERROR_INVALID_VALUE;
		else if (add)
			err = edge_add(a, b);
		else
			edge_remove(a, b);
		if (err) {
			while (i-- > 0) {
				if (add)
					edge_remove(node_find(from[i]), node_find(to[i]));
				else
					(void)edge_add(node_find(from[i]), node_find(to[i]));
			}
			return err;
		}
	}
	return 0;
}

CUDA_API CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
	GRAPH_LOCKED(change(hGraph, from, to, numDependencies, true));
}

CUDA_API CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
					    const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	if (!edges_plain(edgeData, numDependencies))
		return CUDA_ERROR_NOT_SUPPORTED;
	GRAPH_LOCKED(change(hGraph, from, to, numDependencies, true));
}

CUDA_API CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
					    size_t numDependencies)
{
	GRAPH_LOCKED(change(hGraph, from, to, numDependencies, false));
}

CUDA_API CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
					       const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	if (!edges_plain(edgeData, numDependencies))
		return CUDA_ERROR_INVALID_VALUE;
	GRAPH_LOCKED(change(hGraph, from, to, numDependencies, false));
}

void params_free(struct node_params *p)
{
	if (p->kind == CU_GRAPH_NODE_TYPE_KERNEL) {
		free(p->kernel.bytes);
		free(p->kernel.pointers);
	} else if (p->kind == CU_GRAPH_NODE_TYPE_GRAPH) {
		graph_drop(p->child);
	} else if (is_memory(p->kind)) {
		graph_memory_put(p->memory);
	} else if (p->kind == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		choice_free(&p->choice);
	} else if (p->kind == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		free(p->batch.paramArray);
	}
	*p = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_EMPTY};
}
