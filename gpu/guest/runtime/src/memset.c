#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

cudaError_t own_cudaMemset(void *devPtr, int value, size_t count, bool per_thread)
{
	CUdeviceptr p = device_address(devPtr);

	if (!count)
		return cudaSuccess;
	return from_driver(per_thread ? call_cuMemsetD8_v2_ptds(p, value & 255, count) : call_cuMemsetD8_v2(p, value & 255, count));
}

cudaError_t own_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return count ? from_driver(call_cuMemsetD8Async(device_address(devPtr), value & 255, count, stream)) : cudaSuccess;
}

cudaError_t own_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height, bool per_thread)
{
	CUdeviceptr p = device_address(devPtr);

	if (!width || !height)
		return cudaSuccess;
	return from_driver(per_thread ? call_cuMemsetD2D8_v2_ptds(p, pitch, value & 255, width, height)
				      : call_cuMemsetD2D8_v2(p, pitch, value & 255, width, height));
}

cudaError_t own_cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	if (!width || !height)
		return cudaSuccess;
	return from_driver(call_cuMemsetD2D8Async(device_address(devPtr), pitch, value & 255, width, height, stream));
}

/* Joins slices without gaps between them to one plane. */
static void join_slices(struct cudaPitchedPtr p, struct cudaExtent *e)
{
	size_t rows;

	if (e->height == p.ysize && !__builtin_mul_overflow(e->height, e->depth, &rows)) {
		e->height = rows;
		e->depth = 1;
	}
}

cudaError_t own_cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent, bool per_thread)
{
	char *p = pitchedDevPtr.ptr;
	cudaError_t err = cudaSuccess;

	join_slices(pitchedDevPtr, &extent);
	for (size_t z = 0; z < extent.depth && !err; z++, p += pitchedDevPtr.pitch * pitchedDevPtr.ysize)
		err = own_cudaMemset2D(p, pitchedDevPtr.pitch, value, extent.width, extent.height, per_thread);
	return err;
}

cudaError_t own_cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent, cudaStream_t stream)
{
	char *p = pitchedDevPtr.ptr;
	cudaError_t err = cudaSuccess;

	join_slices(pitchedDevPtr, &extent);
	for (size_t z = 0; z < extent.depth && !err; z++, p += pitchedDevPtr.pitch * pitchedDevPtr.ysize)
		err = own_cudaMemset2DAsync(p, pitchedDevPtr.pitch, value, extent.width, extent.height, stream);
	return err;
}
