/* Queries of graphs: nodes, roots, edges, neighbors. */
#include "graph.h"

/* Stores the handle of node i, if there is room for it. If the program's array is longer than
 * the list, the rest is filled with NULL. */
static void store_handle(const struct graph_node *n, size_t i, CUgraphNode *out, size_t room)
{
	if (out && i < room)
		out[i] = n ? handle_of(n->o.id) : NULL;
}

static int fill(const struct node_list *l, bool roots, CUgraphNode *out, size_t *count)
{
	size_t n = 0;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < l->n; i++)
		if (!roots || l->at[i]->in.n == 0)
			store_handle(l->at[i], n++, out, *count);
	if (out) {
		for (size_t i = n; i < *count; i++)
			store_handle(NULL, i, out, *count);
		n = n < *count ? n : *count;
	}
	*count = n;
	return 0;
}

static int of_graph(CUgraph h, bool roots, CUgraphNode *out, size_t *count)
{
	const struct graph *g = graph_find(h);

	return g ? fill(&g->nodes, roots, out, count) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	GRAPH_LOCKED(of_graph(hGraph, false, nodes, numNodes));
}

CUDA_API CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	GRAPH_LOCKED(of_graph(hGraph, true, rootNodes, numRootNodes));
}

static int of_node(CUgraphNode h, bool in, CUgraphNode *out, CUgraphEdgeData *data, size_t *count)
{
	const struct graph_node *n = node_find(h);

	if (!n || (data && !out))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(fill(in ? &n->in : &n->out, false, out, count));
	for (size_t i = 0; data && i < *count; i++)
		data[i] = (CUgraphEdgeData){0};
	return 0;
}

CUDA_API CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	GRAPH_LOCKED(of_node(hNode, true, dependencies, NULL, numDependencies));
}

CUDA_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
						size_t *numDependencies)
{
	GRAPH_LOCKED(of_node(hNode, true, dependencies, edgeData, numDependencies));
}

CUDA_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	GRAPH_LOCKED(of_node(hNode, false, dependentNodes, NULL, numDependentNodes));
}

CUDA_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
						  size_t *numDependentNodes)
{
	GRAPH_LOCKED(of_node(hNode, false, dependentNodes, edgeData, numDependentNodes));
}

static int edges(CUgraph h, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	const struct graph *g = graph_find(h);
	size_t n = 0;

	if (!g || !count || !from != !to || (data && !from))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct graph_node *a = g->nodes.at[i];

		for (size_t k = 0; k < a->out.n; k++, n++) {
			store_handle(a, n, from, *count);
			store_handle(a->out.at[k], n, to, *count);
		}
	}
	if (from) {
		for (size_t i = n; i < *count; i++) {
			store_handle(NULL, i, from, *count);
			store_handle(NULL, i, to, *count);
		}
		n = n < *count ? n : *count;
	}
	for (size_t i = 0; data && i < n; i++)
		data[i] = (CUgraphEdgeData){0};
	*count = n;
	return 0;
}

CUDA_API CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	GRAPH_LOCKED(edges(hGraph, from, to, NULL, numEdges));
}

CUDA_API CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
				     size_t *numEdges)
{
	GRAPH_LOCKED(edges(hGraph, from, to, edgeData, numEdges));
}

static int type(CUgraphNode h, CUgraphNodeType *out)
{
	const struct graph_node *n = node_find(h);

	if (!n || !out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = n->p.kind;
	return 0;
}

CUDA_API CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type_out)
{
	GRAPH_LOCKED(type(hNode, type_out));
}
