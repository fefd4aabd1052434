/* The forms of capture.c's functions for per-thread default streams. */
#include "capture.h"

#define PT(h) ((h) ? (h) : CU_STREAM_PER_THREAD)

CUDA_API CUresult cuStreamBeginCapture_ptsz(CUstream h)
{
	return cuStreamBeginCapture(PT(h));
}

CUDA_API CUresult cuStreamBeginCapture_v2_ptsz(CUstream h, CUstreamCaptureMode mode)
{
	return cuStreamBeginCapture_v2(PT(h), mode);
}

CUDA_API CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream h, CUgraph graph, const CUgraphNode *dependencies,
						   const CUgraphEdgeData *data, size_t n, CUstreamCaptureMode mode)
{
	return cuStreamBeginCaptureToGraph(PT(h), graph, dependencies, data, n, mode);
}

CUDA_API CUresult cuStreamEndCapture_ptsz(CUstream h, CUgraph *graph)
{
	return cuStreamEndCapture(PT(h), graph);
}

CUDA_API CUresult cuStreamGetCaptureInfo_ptsz(CUstream h, CUstreamCaptureStatus *status, unsigned long long *id)
{
	return cuStreamGetCaptureInfo(PT(h), status, id);
}

CUDA_API CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream h, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph,
						 const CUgraphNode **dependencies, size_t *n)
{
	return cuStreamGetCaptureInfo_v2(PT(h), status, id, graph, dependencies, n);
}

CUDA_API CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream h, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph,
						 const CUgraphNode **dependencies, const CUgraphEdgeData **data, size_t *n)
{
	return cuStreamGetCaptureInfo_v3(PT(h), status, id, graph, dependencies, data, n);
}

CUDA_API CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream h, CUgraphNode *dependencies, size_t n, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies(PT(h), dependencies, n, flags);
}

CUDA_API CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream h, CUgraphNode *dependencies, const CUgraphEdgeData *data,
							    size_t n, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(PT(h), dependencies, data, n, flags);
}
