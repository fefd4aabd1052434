#include <stdlib.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

struct callback {
	cudaStreamCallback_t f;
	void *data;
};

/* Called by the driver once for each cudaStreamAddCallback. */
static void call_back(cudaStream_t stream, int result, void *data)
{
	struct callback c = *(struct callback *)data;

	free(data);
	c.f(stream, from_driver(result), c.data);
}

cudaError_t own_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags)
{
	struct callback *c;
	cudaError_t err;

	if (!callback || flags)
		return cudaErrorInvalidValue;
	if (!(c = malloc(sizeof *c)))
		return cudaErrorMemoryAllocation;
	*c = (struct callback){callback, userData};
	err = from_driver(call_cuStreamAddCallback(stream, call_back, c, 0));
	if (err)
		free(c);
	return err;
}

#if CUDART_MAJOR >= 12
cudaError_t own_cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
	void *context, *before;
	cudaError_t err;

	if (!device)
		return cudaErrorInvalidValue;
	if ((err = current_context(&before)) != 0 || (err = from_driver(call_cuStreamGetCtx(hStream, &context))) != 0)
		return err;
	if ((err = from_driver(call_cuCtxSetCurrent(context))) == 0)
		err = from_driver(call_cuCtxGetDevice(device));
	(void)call_cuCtxSetCurrent(before);
	return err;
}
#endif

/* Reports that the stream is not capturing, for drivers without stream capture. */
static cudaError_t no_capture(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
	cudaError_t err;

	if (!status)
		return cudaErrorInvalidValue;
	*status = cudaStreamCaptureStatusNone;
	if ((err = from_driver(call_cuStreamIsCapturing(stream, status))) == cudaErrorNotSupported)
		err = cudaSuccess;
	if (id)
		*id = 0;
	return err;
}

static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
				cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
	int result = call_cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);

	return result == CUDA_ERROR_NOT_SUPPORTED ? no_capture(stream, status, id) : from_driver(result);
}

#if CUDART_MAJOR >= 12
static cudaError_t capture_edges(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
				 cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
				 size_t *count)
{
	int result = call_cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count);

	if (result != CUDA_ERROR_NOT_SUPPORTED || edges)
		return from_driver(result);
	return capture_info(stream, status, id, graph, dependencies, count);
}
#endif

#if CUDART_MAJOR >= 13
cudaError_t own_cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
					 unsigned long long *id_out, cudaGraph_t *graph_out,
					 const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
					 size_t *numDependencies_out)
{
	return capture_edges(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out);
}
#else
cudaError_t own_cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus, unsigned long long *pId)
{
	return capture_info(stream, pCaptureStatus, pId, NULL, NULL, NULL);
}

cudaError_t own_cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
					    unsigned long long *id_out, cudaGraph_t *graph_out,
					    const cudaGraphNode_t **dependencies_out, size_t *numDependencies_out)
{
	return capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out);
}

#if CUDART_MAJOR == 12
cudaError_t own_cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
					    unsigned long long *id_out, cudaGraph_t *graph_out,
					    const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
					    size_t *numDependencies_out)
{
	return capture_edges(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out);
}
#endif
#endif

/* The mode belongs to the thread and only affects capture. If the driver does not support it, it
 * is stored here. */
cudaError_t own_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	cudaError_t err = driver_open();
	int result, before = thread.capture_mode;

	if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
		return cudaErrorInvalidValue;
	if (err)
		return err;
	if ((result = call_cuThreadExchangeStreamCaptureMode(mode)) != CUDA_ERROR_NOT_SUPPORTED)
		return from_driver(result);
	thread.capture_mode = (int)*mode;
	*mode = (enum cudaStreamCaptureMode)before;
	return cudaSuccess;
}
