/* Graph nodes of any type, and conditions. Converts cudaGraphNodeParams to CUgraphNodeParams. */
#include <string.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

#if CUDART_MAJOR >= 12

/* CUgraphNodeParams. The other types of nodes have the runtime's layout. */
struct driver_node {
	int type, reserved0[3];
	union {
		long long reserved1[29];
		struct driver_kernel kernel;
		struct {
			int flags, reserved;
			void *context;
			struct driver_box box;
		} copy;
		struct {
			struct cudaMemsetParamsV2 params;
			void *context;
		} set;
		struct {
			struct cudaConditionalNodeParams params;
			void *context;
		} conditional;
		struct cudaMemAllocNodeParamsV2 alloc;
	};
	long long reserved2;
};
_Static_assert(sizeof(struct driver_node) == 256 && sizeof(struct cudaGraphNodeParams) == 256, "parameters of a node");

static cudaError_t node_kernel(const struct cudaKernelNodeParamsV2 *p, struct driver_kernel *d)
{
	struct cudaKernelNodeParams k = {p->func, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra};

	return kernel_params(&k, d);
}

static cudaError_t driver_node(const struct cudaGraphNodeParams *p, struct driver_node *d)
{
	cudaError_t err;
	void *context;

	memset(d, 0, sizeof *d);
	if (!p)
		return cudaErrorInvalidValue;
	if ((err = current_context(&context)) != 0)
		return err;
	d->type = (int)p->type;
	switch (p->type) {
	case cudaGraphNodeTypeKernel: return node_kernel(&p->kernel, &d->kernel);
	case cudaGraphNodeTypeMemcpy:
		d->copy.flags = p->memcpy.flags;
		d->copy.context = context;
		return driver_box(&p->memcpy.copyParams, &d->copy.box);
	case cudaGraphNodeTypeMemset:
		d->set.params = p->memset;
		d->set.context = context;
		return cudaSuccess;
	case cudaGraphNodeTypeConditional:
		d->conditional.params = p->conditional;
		d->conditional.context = context;
		return cudaSuccess;
	default: memcpy(d->reserved1, p->reserved1, sizeof d->reserved1); return cudaSuccess;
	}
}

/* Copies the values that the driver returns for a new node. */
static void copy_results(const struct driver_node *d, struct cudaGraphNodeParams *p)
{
	if (p->type == cudaGraphNodeTypeMemAlloc)
		p->alloc.dptr = d->alloc.dptr;
	else if (p->type == cudaGraphNodeTypeConditional)
		p->conditional.phGraph_out = d->conditional.params.phGraph_out;
}

static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
			    size_t n, struct cudaGraphNodeParams *p)
{
	struct driver_node d;
	cudaError_t err = driver_node(p, &d);

	if (!err)
		err = from_driver(edges ? call_cuGraphAddNode_v2(node, graph, after, edges, n, &d) : call_cuGraphAddNode(node, graph, after, n, &d));
	if (!err)
		copy_results(&d, p);
	return err;
}

#if CUDART_MAJOR == 12
cudaError_t own_cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
				 size_t numDependencies, struct cudaGraphNodeParams *nodeParams)
{
	return add_node(pGraphNode, graph, pDependencies, NULL, numDependencies, nodeParams);
}

cudaError_t own_cudaGraphAddNode_v2(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
				    const cudaGraphEdgeData *dependencyData, size_t numDependencies, struct cudaGraphNodeParams *nodeParams)
#else
cudaError_t own_cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
				 const cudaGraphEdgeData *dependencyData, size_t numDependencies, struct cudaGraphNodeParams *nodeParams)
#endif
{
	return add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}

cudaError_t own_cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	struct driver_node d;
	cudaError_t err = driver_node(nodeParams, &d);

	return err ? err : from_driver(call_cuGraphNodeSetParams(node, &d));
}

cudaError_t own_cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	struct driver_node d;
	cudaError_t err = driver_node(nodeParams, &d);

	return err ? err : from_driver(call_cuGraphExecNodeSetParams(graphExec, node, &d));
}

cudaError_t own_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out, cudaGraph_t graph,
						 unsigned int defaultLaunchValue, unsigned int flags)
{
	void *context;
	cudaError_t err = current_context(&context);

	return err ? err : from_driver(call_cuGraphConditionalHandleCreate(pHandle_out, graph, context, defaultLaunchValue, flags));
}

#endif
