/* References of graphs to user objects. */
#include "graph.h"

static int retain(CUgraph h, CUuserObject object, unsigned int n, unsigned int flags)
{
	struct graph *g = graph_find(h);

	if (!g || (flags && flags != CU_GRAPH_USER_OBJECT_MOVE))
		return CUDA_ERROR_INVALID_VALUE;
	return user_references_add(&g->users, object, n, flags != 0);
}

CUDA_API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	GRAPH_LOCKED(retain(graph, object, count, flags));
}

static int release(CUgraph h, CUuserObject object, unsigned int n)
{
	struct graph *g = graph_find(h);

	return g ? user_references_take(&g->users, object, n) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	GRAPH_LOCKED(release(graph, object, count));
}
