/* Graph nodes whose parameters differ between the runtime and the driver. */
#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

cudaError_t kernel_params(const struct cudaKernelNodeParams *p, struct driver_kernel *d)
{
	if (!p)
		return cudaErrorInvalidValue;
	*d = (struct driver_kernel){NULL, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra, NULL, NULL};
	return symbol_function(p->func, &d->function);
}

cudaError_t own_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
				       size_t numDependencies, const struct cudaKernelNodeParams *pNodeParams)
{
	struct driver_kernel d;
	cudaError_t err = kernel_params(pNodeParams, &d);

	return err ? err : from_driver(call_cuGraphAddKernelNode_v2(pGraphNode, graph, pDependencies, numDependencies, &d));
}

/* Returns the parameters in the form in which the program gave them, so that it can set them
 * again. */
cudaError_t own_cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *pNodeParams)
{
	struct driver_kernel d;
	cudaError_t err = pNodeParams ? from_driver(call_cuGraphKernelNodeGetParams_v2(node, &d)) : cudaErrorInvalidValue;
	const void *host;

	if (err)
		return err;
	host = function_symbol(d.function);
	*pNodeParams = (struct cudaKernelNodeParams){host ? (void *)(uintptr_t)host : d.function, d.grid, d.block, d.shared, d.params, d.extra};
	return cudaSuccess;
}

cudaError_t own_cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams)
{
	struct driver_kernel d;
	cudaError_t err = kernel_params(pNodeParams, &d);

	return err ? err : from_driver(call_cuGraphKernelNodeSetParams_v2(node, &d));
}

cudaError_t own_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
						 const struct cudaKernelNodeParams *pNodeParams)
{
	struct driver_kernel d;
	cudaError_t err = kernel_params(pNodeParams, &d);

	return err ? err : from_driver(call_cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &d));
}

static cudaError_t add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n,
			    const struct driver_box *b)
{
	void *context;
	cudaError_t err = current_context(&context);

	return err ? err : from_driver(call_cuGraphAddMemcpyNode(node, graph, after, n, b, context));
}

static cudaError_t line(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, struct driver_box *b)
{
	struct cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)src, count, count, 1}, .dstPtr = {dst, count, count, 1},
				      .extent = {count, 1, 1}, .kind = kind};

	return driver_box(&p, b);
}

cudaError_t own_cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
				       size_t numDependencies, const struct cudaMemcpy3DParms *pCopyParams)
{
	struct driver_box b;
	cudaError_t err = driver_box(pCopyParams, &b);

	return err ? err : add_copy(pGraphNode, graph, pDependencies, numDependencies, &b);
}

cudaError_t own_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
					 size_t numDependencies, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct driver_box b;
	cudaError_t err = line(dst, src, count, kind, &b);

	return err ? err : add_copy(pGraphNode, graph, pDependencies, numDependencies, &b);
}

static cudaError_t place(const void *symbol, size_t count, size_t offset, void **out)
{
	CUdeviceptr p;
	size_t size;
	cudaError_t err = symbol_variable(symbol, &p, &size);

	if (!err && (offset > size || count > size - offset))
		err = cudaErrorInvalidValue;
	if (!err)
		*out = (void *)(uintptr_t)(p + offset);
	return err;
}

cudaError_t own_cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
					       size_t numDependencies, const void *symbol, const void *src, size_t count,
					       size_t offset, enum cudaMemcpyKind kind)
{
	void *p;
	cudaError_t err = place(symbol, count, offset, &p);

	if (err)
		return err;
	return own_cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies, numDependencies, p, src, count, kind);
}

cudaError_t own_cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						 const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
						 const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *p;
	cudaError_t err = place(symbol, count, offset, &p);

	if (err)
		return err;
	return own_cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies, numDependencies, dst, p, count, kind);
}

cudaError_t own_cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams)
{
	struct driver_box b;
	cudaError_t err = driver_box(pNodeParams, &b);

	return err ? err : from_driver(call_cuGraphMemcpyNodeSetParams(node, &b));
}

cudaError_t own_cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src, size_t count,
					       enum cudaMemcpyKind kind)
{
	struct driver_box b;
	cudaError_t err = line(dst, src, count, kind, &b);

	return err ? err : from_driver(call_cuGraphMemcpyNodeSetParams(node, &b));
}

cudaError_t own_cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *src, size_t count,
						     size_t offset, enum cudaMemcpyKind kind)
{
	void *p;
	cudaError_t err = place(symbol, count, offset, &p);

	return err ? err : own_cudaGraphMemcpyNodeSetParams1D(node, p, src, count, kind);
}

cudaError_t own_cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst, const void *symbol, size_t count,
						       size_t offset, enum cudaMemcpyKind kind)
{
	void *p;
	cudaError_t err = place(symbol, count, offset, &p);

	return err ? err : own_cudaGraphMemcpyNodeSetParams1D(node, dst, p, count, kind);
}

cudaError_t own_cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *pNodeParams)
{
	struct driver_box b;
	cudaError_t err = pNodeParams ? from_driver(call_cuGraphMemcpyNodeGetParams(node, &b)) : cudaErrorInvalidValue;

	return err ? err : runtime_box(&b, pNodeParams);
}

static cudaError_t set_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const struct driver_box *b)
{
	void *context;
	cudaError_t err = current_context(&context);

	return err ? err : from_driver(call_cuGraphExecMemcpyNodeSetParams(exec, node, b, context));
}

cudaError_t own_cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
						 const struct cudaMemcpy3DParms *pNodeParams)
{
	struct driver_box b;
	cudaError_t err = driver_box(pNodeParams, &b);

	return err ? err : set_copy(hGraphExec, node, &b);
}

cudaError_t own_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst, const void *src,
						   size_t count, enum cudaMemcpyKind kind)
{
	struct driver_box b;
	cudaError_t err = line(dst, src, count, kind, &b);

	return err ? err : set_copy(hGraphExec, node, &b);
}

cudaError_t own_cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const void *symbol,
							 const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *p;
	cudaError_t err = place(symbol, count, offset, &p);

	return err ? err : own_cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, p, src, count, kind);
}

cudaError_t own_cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst,
							   const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *p;
	cudaError_t err = place(symbol, count, offset, &p);

	return err ? err : own_cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, dst, p, count, kind);
}

/* cudaMemsetParams has the layout of the driver's CUDA_MEMSET_NODE_PARAMS. */
cudaError_t own_cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
				       size_t numDependencies, const struct cudaMemsetParams *pMemsetParams)
{
	void *context;
	cudaError_t err = current_context(&context);

	if (err)
		return err;
	return from_driver(call_cuGraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies, pMemsetParams, context));
}

cudaError_t own_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
						 const struct cudaMemsetParams *pNodeParams)
{
	void *context;
	cudaError_t err = current_context(&context);

	return err ? err : from_driver(call_cuGraphExecMemsetNodeSetParams(hGraphExec, node, pNodeParams, context));
}

#if CUDART_MAJOR >= 12
cudaError_t own_cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	return from_driver(call_cuGraphInstantiateWithFlags(pGraphExec, graph, flags));
}
#else
/* The node and the text of a failure are not returned any more. */
cudaError_t own_cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, cudaGraphNode_t *pErrorNode, char *pLogBuffer,
				     size_t bufferSize)
{
	if (pErrorNode)
		*pErrorNode = NULL;
	if (pLogBuffer && bufferSize)
		*pLogBuffer = 0;
	return from_driver(call_cuGraphInstantiateWithFlags(pGraphExec, graph, 0));
}
#endif
