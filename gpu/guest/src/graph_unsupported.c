/* Nodes that a vGPU cannot run: refused where the program makes one, as a driver
 * does on a device without them. Memory nodes need memory pools (attribute 115),
 * batches of memory operations need attribute 92, external semaphores another API,
 * conditional nodes work that the device starts itself. */
#include <string.h>

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

/* No graph has memory of its own: there is none to count or to give back. */
CUDA_API CUresult cuDeviceGraphMemTrim(CUdevice device_given)
{
	SESSION(s);
	(void)s;
	return device_given == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

CUDA_API CUresult cuDeviceGetGraphMemAttribute(CUdevice device_given, int attr, void *value)
{
	static const uint64_t none;

	SESSION(s);
	(void)s;
	if (device_given != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attr < 0 || attr > 3 || !value)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(value, &none, sizeof none);
	return 0;
}

CUDA_API CUresult cuDeviceSetGraphMemAttribute(CUdevice device_given, int attr, void *value)
{
	SESSION(s);
	(void)s;
	if (device_given != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	return value && (attr == 1 || attr == 3) ? 0 : CUDA_ERROR_INVALID_VALUE; /* the greatest ever: set back */
}
