/* Clones of graphs. Each executable graph has its own. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

static int clone_kernel(const struct kernel_params *k, struct kernel_params *out)
{
	out->bytes = malloc(k->size + 1);
	out->pointers = calloc(k->count + 1, sizeof *out->pointers);
	if (!out->bytes || !out->pointers) {
		free(out->bytes);
		free(out->pointers);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(out->bytes, k->bytes, k->size);
	for (uint32_t i = 0; i < k->count; i++)
		out->pointers[i] = out->bytes + ((uint8_t *)k->pointers[i] - k->bytes);
	return 0;
}

int params_clone(const struct node_params *p, bool visible, struct node_params *out)
{
	*out = *p;
	if (p->kind == CU_GRAPH_NODE_TYPE_KERNEL)
		return clone_kernel(&p->kernel, &out->kernel);
	if (is_memory(p->kind)) {
		if (visible)
			return CUDA_ERROR_NOT_SUPPORTED; /* CUDA: such a graph cannot be a child or be cloned */
		graph_memory_get(p->memory);
	}
	if (p->kind == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return visible ? CUDA_ERROR_NOT_SUPPORTED : choice_clone(&p->choice, &out->choice); /* the same */
	if (p->kind == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		return batch_copy_array(&out->batch);
	if (p->kind == CU_GRAPH_NODE_TYPE_GRAPH) {
		TRY(graph_clone(p->child, visible, &out->child));
		out->child->child = true;
	}
	return 0;
}

static int clone_nodes(const struct graph *g, bool visible, struct graph *to)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		struct graph_node *from = g->nodes.at[i], *n;
		struct node_params p;

		TRY(params_clone(&from->p, visible, &p));
		TRY(node_add(to, NULL, 0, &p, &n));
		n->origin = from->o.id;
		n->disabled = from->disabled;
		from->place = i; /* its index, for the edges */
	}
	for (size_t i = 0; i < g->nodes.n; i++)
		for (size_t k = 0; k < g->nodes.at[i]->in.n; k++)
			TRY(edge_add(to->nodes.at[g->nodes.at[i]->in.at[k]->place], to->nodes.at[i]));
	return 0;
}

int graph_clone(const struct graph *g, bool visible, struct graph **out)
{
	struct graph *to = graph_new(visible);
	int err;

	if (!to)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->origin = g->o.id;
	if ((err = clone_nodes(g, visible, to)) == 0)
		err = user_references_clone(g->users, &to->users);
	if (err) {
		graph_drop(to);
		return err;
	}
	*out = to;
	return 0;
}

static int clone_graph(CUgraph *out, CUgraph h)
{
	struct graph *g = graph_find(h), *to;

	if (!out || !g)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(graph_clone(g, true, &to));
	*out = handle_of(to->o.id);
	return 0;
}

CUDA_API CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	GRAPH_LOCKED(clone_graph(phGraphClone, originalGraph));
}

static int find_in_clone(CUgraphNode *out, CUgraphNode original, CUgraph h)
{
	const struct graph *g = graph_find(h);

	if (!out || !g || !original)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->nodes.n; i++) {
		if (g->nodes.at[i]->origin == (uintptr_t)original) {
			*out = handle_of(g->nodes.at[i]->o.id);
			return 0;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	GRAPH_LOCKED(find_in_clone(phNode, hOriginalNode, hClonedGraph));
}
