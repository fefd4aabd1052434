/* Nodes that a vGPU cannot run: refused where the program makes one, as a driver
 * does on a device without them. Memory nodes need memory pools (attribute 115),
 * batches of memory operations need attribute 92, external semaphores another API,
 * conditional nodes work that the device starts itself. */
#include "graph.h"

#define REFUSE()                                                                                                       \
	SESSION(s);                                                                                                    \
	(void)s;                                                                                                       \
	return CUDA_ERROR_NOT_SUPPORTED

CUDA_API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n,
					 void *params)
{
	(void)node, (void)graph, (void)dependencies, (void)n, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n,
					CUdeviceptr dptr)
{
	(void)node, (void)graph, (void)dependencies, (void)n, (void)dptr;
	REFUSE();
}

CUDA_API CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n,
					   const void *params)
{
	(void)node, (void)graph, (void)dependencies, (void)n, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphAddExternalSemaphoresSignalNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
							 size_t n, const void *params)
{
	(void)node, (void)graph, (void)dependencies, (void)n, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphAddExternalSemaphoresWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
						       size_t n, const void *params)
{
	(void)node, (void)graph, (void)dependencies, (void)n, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphConditionalHandleCreate(unsigned long long *handle, CUgraph graph, CUcontext ctx, unsigned int value,
						 unsigned int flags)
{
	(void)handle, (void)graph, (void)ctx, (void)value, (void)flags;
	REFUSE();
}

CUDA_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *dptr)
{
	(void)node, (void)dptr;
	REFUSE();
}

CUDA_API CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node, const void *params)
{
	(void)exec, (void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode node, void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExternalSemaphoresSignalNodeSetParams(CUgraphNode node, const void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec exec, CUgraphNode node, const void *params)
{
	(void)exec, (void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode node, void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExternalSemaphoresWaitNodeSetParams(CUgraphNode node, const void *params)
{
	(void)node, (void)params;
	REFUSE();
}

CUDA_API CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec exec, CUgraphNode node, const void *params)
{
	(void)exec, (void)node, (void)params;
	REFUSE();
}
