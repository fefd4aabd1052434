/* The calls by which a program enqueues host functions in a stream. */
#include "capture.h"

CUDA_API CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	bool done = false;

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_host(hStream, fn, userData, &done));
	return done ? 0 : callbacks_add(hStream, fn, NULL, userData);
}

CUDA_API CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_refuse(hStream));
	return callbacks_add(hStream, NULL, callback, userData);
}
