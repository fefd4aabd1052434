/* Functions that add nodes of each kind, and that query and change their parameters. */
#include "graph.h"

/* Adds a node with the parameters *p that a params_… function has created. made is that
 * function's result, which is returned if it is an error. */
static int add_node(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, int made, struct node_params *p)
{
	struct graph *g = graph_find(h);
	struct graph_node *node;

	if (made)
		return made;
	if (!g || !out) {
		params_free(p);
		return CUDA_ERROR_INVALID_VALUE;
	}
	TRY(node_add(g, deps, n, p, &node));
	*out = handle_of(node->o.id);
	return 0;
}

#define ADD(make)                                                                                                      \
	do {                                                                                                           \
		struct node_params p;                                                                                  \
		GRAPH_LOCKED(add_node(phGraphNode, hGraph, dependencies, numDependencies, make, &p));                     \
	} while (0)

static CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	return (CUDA_KERNEL_NODE_PARAMS){p->func, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY,
					 p->blockDimZ, p->sharedMemBytes, p->kernelParams, p->extra, NULL, NULL};
}

CUDA_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					  size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	ADD(params_kernel(nodeParams, &p));
}

CUDA_API CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				       size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	k = newer(nodeParams);
	return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &k);
}

CUDA_API CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				       size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	ADD(params_copy(copyParams, (uintptr_t)ctx, &p));
}

CUDA_API CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				       size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	ADD(params_memset(memsetParams, (uintptr_t)ctx, &p));
}

CUDA_API CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				     size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	ADD(params_host(nodeParams, &p));
}

CUDA_API CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					   size_t numDependencies, CUgraph childGraph)
{
	ADD(params_child(childGraph, &p));
}

static int params_empty(struct node_params *p)
{
	*p = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_EMPTY};
	return 0;
}

CUDA_API CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				      size_t numDependencies)
{
	ADD(params_empty(&p));
}

CUDA_API CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					    size_t numDependencies, CUevent event)
{
	ADD(params_event(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p));
}

CUDA_API CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					  size_t numDependencies, CUevent event)
{
	ADD(params_event(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p));
}

static int added_memory(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, int made, struct node_params *p)
{
	struct node_params given;

	TRY(made);
	given = *p;
	TRY(add_node(out, h, deps, n, 0, p));
	graph_memory_belongs(&given, graph_find(h));
	return 0;
}

CUDA_API CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					 size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	struct node_params p;

	TRY(graph_memory_new(nodeParams, &p));
	GRAPH_LOCKED(added_memory(phGraphNode, hGraph, dependencies, numDependencies, 0, &p));
}

CUDA_API CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					size_t numDependencies, CUdeviceptr dptr)
{
	struct node_params p;

	GRAPH_LOCKED(added_memory(phGraphNode, hGraph, dependencies, numDependencies, graph_memory_freed(dptr, &p), &p));
}

CUDA_API CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
					   size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	ADD(params_batch(nodeParams, &p));
}

static int added_choice(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUDA_CONDITIONAL_NODE_PARAMS *c)
{
	struct node_params p;

	TRY(add_node(out, h, deps, n, params_choice(c, &p), &p));
	c->phGraph_out = p.choice.handles; /* the node owns the array */
	return 0;
}

CUDA_API CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				 size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return cuGraphAddMemAllocNode(phGraphNode, hGraph, dependencies, numDependencies, &nodeParams->alloc);
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return cuGraphAddMemFreeNode(phGraphNode, hGraph, dependencies, numDependencies, nodeParams->free);
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		GRAPH_LOCKED(added_choice(phGraphNode, hGraph, dependencies, numDependencies, &nodeParams->conditional));
	ADD(params_any(nodeParams, &p));
}

CUDA_API CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				    const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	if (!edges_plain(dependencyData, numDependencies))
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

/* Finds a node of a kind. Returns an error if h is not one, or if out is NULL. */
static int node_of_kind(CUgraphNode h, int kind, const void *out, struct graph_node **n)
{
	*n = node_find(h);
	return !out || !*n || (*n)->p.kind != kind ? CUDA_ERROR_INVALID_VALUE : 0;
}

static int get_kernel(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_KERNEL, out, &n));
	const struct kernel_params *k = &n->p.kernel;

	*out = (CUDA_KERNEL_NODE_PARAMS){k->handle, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2],
					 k->shared, k->count ? k->pointers : NULL, NULL, NULL, handle_of(n->p.context)};
	return 0;
}

CUDA_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	GRAPH_LOCKED(get_kernel(hNode, nodeParams));
}

CUDA_API CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuGraphKernelNodeGetParams_v2(hNode, &k));
	*nodeParams = (CUDA_KERNEL_NODE_PARAMS_v1){k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY,
						   k.blockDimZ, k.sharedMemBytes, k.kernelParams, k.extra};
	return 0;
}

static int get_copy(CUgraphNode h, CUDA_MEMCPY3D *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_MEMCPY, out, &n));
	*out = n->p.copy;
	return 0;
}

CUDA_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	GRAPH_LOCKED(get_copy(hNode, nodeParams));
}

static int get_memset(CUgraphNode h, CUDA_MEMSET_NODE_PARAMS *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_MEMSET, out, &n));
	*out = n->p.set;
	return 0;
}

CUDA_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	GRAPH_LOCKED(get_memset(hNode, nodeParams));
}

static int get_host(CUgraphNode h, CUDA_HOST_NODE_PARAMS *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_HOST, out, &n));
	*out = n->p.host;
	return 0;
}

CUDA_API CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	GRAPH_LOCKED(get_host(hNode, nodeParams));
}

static int get_child(CUgraphNode h, CUgraph *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_GRAPH, out, &n));
	*out = handle_of(n->p.child->o.id);
	return 0;
}

CUDA_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	GRAPH_LOCKED(get_child(hNode, phGraph));
}

static int get_event(CUgraphNode h, int k, CUevent *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, k, out, &n));
	*out = handle_of(n->p.event);
	return 0;
}

CUDA_API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	GRAPH_LOCKED(get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out));
}

CUDA_API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	GRAPH_LOCKED(get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out));
}

static int get_allocation(CUgraphNode h, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_MEM_ALLOC, out, &n));
	graph_memory_params(n->p.memory, out);
	return 0;
}

CUDA_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	GRAPH_LOCKED(get_allocation(hNode, params_out));
}

static int get_freed(CUgraphNode h, CUdeviceptr *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_MEM_FREE, out, &n));
	*out = graph_memory_address(n->p.memory);
	return 0;
}

CUDA_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	GRAPH_LOCKED(get_freed(hNode, dptr_out));
}

static int get_batch(CUgraphNode h, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, out, &n));
	*out = n->p.batch;
	return 0;
}

/* The array belongs to the node, and is valid until the node's parameters change. */
CUDA_API CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	GRAPH_LOCKED(get_batch(hNode, nodeParams_out));
}

/* Replaces the parameters of a node by others of the same kind. */
static int set_params(CUgraphNode h, int made, struct node_params *p)
{
	struct graph_node *n = node_find(h);

	if (made)
		return made;
	if (!n || n->p.kind != p->kind) {
		params_free(p);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (p->kind == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel_attributes_copy(&p->kernel, &n->p.kernel);
	if (p->context == 0)
		p->context = n->p.context;
	params_free(&n->p);
	n->p = *p;
	return 0;
}

#define SET(make)                                                                                                      \
	do {                                                                                                           \
		struct node_params p;                                                                                  \
		GRAPH_LOCKED(set_params(hNode, make, &p));                                                                    \
	} while (0)

CUDA_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	SET(params_kernel(nodeParams, &p));
}

CUDA_API CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	k = newer(nodeParams);
	return cuGraphKernelNodeSetParams_v2(hNode, &k);
}

CUDA_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	SET(params_copy(nodeParams, 0, &p));
}

CUDA_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	SET(params_memset(nodeParams, 0, &p));
}

CUDA_API CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	SET(params_host(nodeParams, &p));
}

CUDA_API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	SET(params_event(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p));
}

CUDA_API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	SET(params_event(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p));
}

CUDA_API CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	SET(params_batch(nodeParams, &p));
}

CUDA_API CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	SET(params_any(nodeParams, &p));
}

static int get_attribute(CUgraphNode h, int attr, CUkernelNodeAttrValue *out)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_KERNEL, out, &n));
	return kernel_attribute_get(&n->p.kernel, attr, out);
}

CUDA_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, int attr, CUkernelNodeAttrValue *value_out)
{
	GRAPH_LOCKED(get_attribute(hNode, attr, value_out));
}

static int set_attribute(CUgraphNode h, int attr, const CUkernelNodeAttrValue *value)
{
	struct graph_node *n;

	TRY(node_of_kind(h, CU_GRAPH_NODE_TYPE_KERNEL, value, &n));
	return kernel_attribute_set(&n->p.kernel, attr, value);
}

CUDA_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, int attr, const CUkernelNodeAttrValue *value)
{
	GRAPH_LOCKED(set_attribute(hNode, attr, value));
}

static int copy_attributes(CUgraphNode dst, CUgraphNode src)
{
	struct graph_node *to, *from;

	TRY(node_of_kind(src, CU_GRAPH_NODE_TYPE_KERNEL, &src, &from));
	TRY(node_of_kind(dst, CU_GRAPH_NODE_TYPE_KERNEL, &dst, &to));
	kernel_attributes_copy(&to->p.kernel, &from->p.kernel);
	return 0;
}

CUDA_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	GRAPH_LOCKED(copy_attributes(dst, src));
}
