#include <string.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

cudaError_t own_cudaMalloc(void **devPtr, size_t size)
{
	if (!devPtr)
		return cudaErrorInvalidValue;
	*devPtr = NULL;
	return size ? from_driver(call_cuMemAlloc_v2(devPtr, size)) : cudaSuccess;
}

cudaError_t own_cudaFree(void *devPtr)
{
	return devPtr ? from_driver(call_cuMemFree_v2(device_address(devPtr))) : cudaSuccess;
}

cudaError_t own_cudaMallocHost(void **ptr, size_t size)
{
	return own_cudaHostAlloc(ptr, size, 0);
}

cudaError_t own_cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	if (!pHost)
		return cudaErrorInvalidValue;
	*pHost = NULL;
	return size ? from_driver(call_cuMemHostAlloc(pHost, size, flags)) : cudaSuccess;
}

cudaError_t own_cudaFreeHost(void *ptr)
{
	return ptr ? from_driver(call_cuMemFreeHost(ptr)) : cudaSuccess;
}

cudaError_t own_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	if (!devPtr || !size || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
		return cudaErrorInvalidValue;
	*devPtr = NULL;
	return from_driver(call_cuMemAllocManaged(devPtr, size, flags));
}

cudaError_t own_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	if (!devPtr || !pitch)
		return cudaErrorInvalidValue;
	*devPtr = NULL;
	*pitch = 0;
	if (!width || !height)
		return cudaSuccess;
	return from_driver(call_cuMemAllocPitch_v2(devPtr, pitch, width, height, 4));
}

cudaError_t own_cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	size_t rows;

	if (!pitchedDevPtr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudaErrorInvalidValue;
	pitchedDevPtr->xsize = extent.width;
	pitchedDevPtr->ysize = extent.height;
	return own_cudaMallocPitch(&pitchedDevPtr->ptr, &pitchedDevPtr->pitch, extent.width, rows);
}

/* CUpointer_attribute */
enum { POINTER_MEMORY_TYPE = 2, POINTER_DEVICE = 3, POINTER_HOST = 4, POINTER_IS_MANAGED = 8, POINTER_ORDINAL = 9 };

/* Memory that the driver does not know is the program's own, which is not an error. */
cudaError_t own_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	CUdeviceptr p = device_address(ptr);
	unsigned int type = 0, managed = 0;

	if (!attributes)
		return cudaErrorInvalidValue;
	memset(attributes, 0, sizeof *attributes);
	attributes->device = cudaInvalidDeviceId;
	if (call_cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, p) != 0) {
		attributes->hostPointer = (void *)(uintptr_t)ptr;
		return cudaSuccess;
	}
	(void)call_cuPointerGetAttribute(&managed, POINTER_IS_MANAGED, p);
	attributes->type = managed ? cudaMemoryTypeManaged : type == DRIVER_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
	if (call_cuPointerGetAttribute(&attributes->device, POINTER_ORDINAL, p) != 0)
		attributes->device = current_device();
	if (call_cuPointerGetAttribute(&attributes->devicePointer, POINTER_DEVICE, p) != 0 && type != DRIVER_HOST)
		attributes->devicePointer = (void *)(uintptr_t)ptr;
	if (type == DRIVER_HOST || managed)
		(void)call_cuPointerGetAttribute(&attributes->hostPointer, POINTER_HOST, p);
	return cudaSuccess;
}

static cudaError_t advise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
	if (location.type == cudaMemLocationTypeDevice || location.type == cudaMemLocationTypeHost)
		return from_driver(call_cuMemAdvise(device_address(devPtr), count, (int)advice,
						    location.type == cudaMemLocationTypeHost ? cudaCpuDeviceId : location.id));
	return from_driver(call_cuMemAdvise_v2(device_address(devPtr), count, (int)advice, location));
}

static cudaError_t prefetch(const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
			    cudaStream_t stream)
{
	if (flags == 0 && (location.type == cudaMemLocationTypeDevice || location.type == cudaMemLocationTypeHost))
		return from_driver(call_cuMemPrefetchAsync(device_address(devPtr), count,
							   location.type == cudaMemLocationTypeHost ? cudaCpuDeviceId : location.id,
							   stream));
	return from_driver(call_cuMemPrefetchAsync_v2(device_address(devPtr), count, location, flags, stream));
}

#if CUDART_MAJOR >= 13
cudaError_t own_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
	return advise(devPtr, count, advice, location);
}

cudaError_t own_cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
				     cudaStream_t stream)
{
	return prefetch(devPtr, count, location, flags, stream);
}
#else
static struct cudaMemLocation location_of(int device)
{
	return (struct cudaMemLocation){device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
					device == cudaCpuDeviceId ? 0 : device};
}

cudaError_t own_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device)
{
	return advise(devPtr, count, advice, location_of(device));
}

cudaError_t own_cudaMemPrefetchAsync(const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
	return prefetch(devPtr, count, location_of(dstDevice), 0, stream);
}
#endif
