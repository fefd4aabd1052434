/* Prints a graph as text for Graphviz. */
#include <stdio.h>

#include "graph.h"

#define ALL (~0u)

static const char *const kinds[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "WAIT_EVENT", "EVENT_RECORD",
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "MEM_ALLOC", [CU_GRAPH_NODE_TYPE_MEM_FREE] = "MEM_FREE",
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "BATCH_MEM_OP", [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "CONDITIONAL"};

/* Prints a name from the program's module. Characters that would end the label become '_'. */
static void name(FILE *f, const char *s)
{
	fprintf(f, "\\n");
	for (; *s; s++)
		fputc(*s == '"' || *s == '\\' ? '_' : *s, f);
}

static void label(FILE *f, const struct graph_node *n, unsigned int flags)
{
	fprintf(f, "%s", kinds[n->p.kind]);
	if (flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)
		fprintf(f, "\\nnode %#llx", (unsigned long long)n->o.id);
	if (n->p.kind == CU_GRAPH_NODE_TYPE_KERNEL) {
		const struct kernel_params *k = &n->p.kernel;
		struct function *fn = object_get(handle_of(k->function), KIND_FUNCTION);

		if (fn)
			name(f, fn->info.name);
		object_put(fn);
		if (flags & CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)
			fprintf(f, "\\ngrid %u %u %u\\nblock %u %u %u\\nshared %u", k->grid[0], k->grid[1], k->grid[2], k->block[0],
				k->block[1], k->block[2], k->shared);
	} else if (n->p.kind == CU_GRAPH_NODE_TYPE_MEMCPY && flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS) {
		fprintf(f, "\\n%zu x %zu x %zu", n->p.copy.WidthInBytes, n->p.copy.Height, n->p.copy.Depth);
	} else if (n->p.kind == CU_GRAPH_NODE_TYPE_MEMSET && flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS) {
		fprintf(f, "\\n%#llx, value %#x, %zu x %zu of %u", n->p.set.dst, n->p.set.value, n->p.set.width, n->p.set.height,
			n->p.set.elementSize);
	}
}

static void print(FILE *f, const struct graph *g, unsigned int flags);

/* Prints a graph that is inside a node. */
static void cluster(FILE *f, const struct graph_node *n, unsigned int number, const struct graph *inside, unsigned int flags)
{
	fprintf(f, "\tsubgraph cluster_%llu_%u {\n", (unsigned long long)n->o.id, number);
	print(f, inside, flags);
	fprintf(f, "\t}\n");
}

static void print(FILE *f, const struct graph *g, unsigned int flags)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct graph_node *n = g->nodes.at[i];

		fprintf(f, "\tn%llu [label=\"", (unsigned long long)n->o.id);
		label(f, n, flags);
		fprintf(f, "\"];\n");
		for (size_t k = 0; k < n->out.n; k++)
			fprintf(f, "\tn%llu -> n%llu;\n", (unsigned long long)n->o.id, (unsigned long long)n->out.at[k]->o.id);
		for (unsigned int k = 0; n->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.choice.size; k++)
			cluster(f, n, k, n->p.choice.bodies[k], flags);
		if (n->p.kind == CU_GRAPH_NODE_TYPE_GRAPH)
			cluster(f, n, 0, n->p.child, flags);
	}
}

static int dot(CUgraph h, const char *path, unsigned int flags)
{
	const struct graph *g = graph_find(h);
	FILE *f;
	int failed;

	if (!g || !path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(f = fopen(path, "w")))
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(f, "digraph graph_%llu {\n", (unsigned long long)g->o.id);
	print(f, g, flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE ? ALL : flags);
	fprintf(f, "}\n");
	failed = ferror(f);
	return fclose(f) || failed ? CUDA_ERROR_OPERATING_SYSTEM : 0;
}

CUDA_API CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	GRAPH_LOCKED(dot(hGraph, path, flags));
}
