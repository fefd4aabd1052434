#include "driver_calls.h"
#include "own.h"
#include "properties.h"
#include "runtime.h"

static cudaError_t device_count(int *count)
{
	cudaError_t err = driver_open();

	return err ? err : from_driver(call_cuDeviceGetCount(count));
}

static cudaError_t check_device(int device)
{
	int count;
	cudaError_t err = device_count(&count);

	if (err)
		return err;
	return device < 0 || device >= count ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t own_cudaGetDeviceCount(int *count)
{
	if (!count)
		return cudaErrorInvalidValue;
	*count = 0;
	return device_count(count);
}

cudaError_t own_cudaGetDevice(int *device)
{
	cudaError_t err = driver_open();

	if (!device)
		return cudaErrorInvalidValue;
	if (!err)
		*device = current_device();
	return err;
}

cudaError_t own_cudaSetDevice(int device)
{
	cudaError_t err = check_device(device);

	return err ? err : bind_device(device);
}

cudaError_t own_cudaSetDeviceFlags(unsigned int flags)
{
	cudaError_t err = driver_open();

	if (flags & ~(unsigned int)cudaDeviceMask)
		return cudaErrorInvalidValue;
	/* Host memory can always be mapped, and the driver has no flag for that any more. */
	flags &= ~(unsigned int)cudaDeviceMapHost;
	return err ? err : from_driver(call_cuDevicePrimaryCtxSetFlags_v2(current_device(), flags));
}

cudaError_t own_cudaGetDeviceFlags(unsigned int *flags)
{
	cudaError_t err = driver_open();
	int active;

	if (!flags)
		return cudaErrorInvalidValue;
	if (err || (err = from_driver(call_cuDevicePrimaryCtxGetState(current_device(), flags, &active))) != 0)
		return err;
	*flags |= cudaDeviceMapHost;
	return cudaSuccess;
}

#if CUDART_MAJOR >= 12
cudaError_t own_cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	cudaError_t err = check_device(device);
	void *context;

	if (err)
		return err;
	if (flags & cudaInitDeviceFlagsAreValid)
		(void)call_cuDevicePrimaryCtxSetFlags_v2(device, deviceFlags & ~(unsigned int)cudaDeviceMapHost);
	/* The context is not made current; cudaSetDevice does that. The reference is kept. */
	return from_driver(call_cuDevicePrimaryCtxRetain(&context, device));
}
#endif

/* The list only affects the device that a thread uses by default, which is the first one. */
cudaError_t own_cudaSetValidDevices(int *device_arr, int len)
{
	cudaError_t err = cudaSuccess;

	if (len < 0 || (len > 0 && !device_arr))
		return cudaErrorInvalidValue;
	for (int i = 0; i < len && !err; i++)
		err = check_device(device_arr[i]);
	if (!err && !thread.context)
		thread.device = len > 0 ? device_arr[0] : 0;
	return err;
}

/* Returns how many of the properties that programs usually request a device has. */
static int fitness(const struct cudaDeviceProp *want, int device)
{
	int major = attribute(75, device), minor = attribute(76, device), score = 0;
	size_t memory = 0;

	(void)call_cuDeviceTotalMem_v2(&memory, device);
	score += want->major == 0 || major > want->major || (major == want->major && minor >= want->minor);
	score += memory >= want->totalGlobalMem;
	score += attribute(16, device) >= want->multiProcessorCount;
	return score;
}

cudaError_t own_cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
	int count, best = -1;
	cudaError_t err = device_count(&count);

	if (!device || !prop)
		return cudaErrorInvalidValue;
	for (int i = 0; !err && i < count; i++)
		if (fitness(prop, i) > best) {
			best = fitness(prop, i);
			*device = i;
		}
	return err;
}

cudaError_t own_cudaDeviceReset(void)
{
	cudaError_t err = driver_open();

	return err ? err : reset_device(current_device());
}

#if CUDART_MAJOR <= 12
cudaError_t own_cudaThreadExit(void)
{
	return own_cudaDeviceReset();
}

/* Has no effect: it was for devices without double precision. */
cudaError_t own_cudaSetDoubleForDevice(double *d)
{
	return d ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t own_cudaSetDoubleForHost(double *d)
{
	return d ? cudaSuccess : cudaErrorInvalidValue;
}
#endif

static cudaError_t peer_context(int peer, void **context)
{
	cudaError_t err = check_device(peer);

	if (!err && peer == current_device())
		err = cudaErrorInvalidDevice;
	if (!err && (err = from_driver(call_cuDevicePrimaryCtxRetain(context, peer))) == 0)
		(void)call_cuDevicePrimaryCtxRelease_v2(peer);
	return err;
}

cudaError_t own_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	void *context;
	cudaError_t err = peer_context(peerDevice, &context);

	return err ? err : from_driver(call_cuCtxEnablePeerAccess(context, flags));
}

cudaError_t own_cudaDeviceDisablePeerAccess(int peerDevice)
{
	void *context;
	cudaError_t err = peer_context(peerDevice, &context);

	return err ? err : from_driver(call_cuCtxDisablePeerAccess(context));
}

cudaError_t own_cudaDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, const struct cudaChannelFormatDesc *fmtDesc,
						     int device)
{
	unsigned int channels;
	int format;

	if (!fmtDesc || !(format = driver_format(fmtDesc, &channels)))
		return cudaErrorInvalidChannelDescriptor;
	return from_driver(call_cuDeviceGetTexture1DLinearMaxWidth(maxWidthInElements, format, channels, device));
}

static cudaError_t properties_for(cudaError_t (*fill)(void *, int), void *prop, int device)
{
	cudaError_t err = check_device(device);

	if (!prop)
		return cudaErrorInvalidValue;
	return err ? err : fill(prop, device);
}

/* In the library of version 12, the function without a suffix uses the layout of version 11. */
cudaError_t own_cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	return properties_for(CUDART_MAJOR >= 13 ? properties_13 : properties_11, prop, device);
}

#if CUDART_MAJOR == 12
cudaError_t own_cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
	return properties_for(properties_12, prop, device);
}
#endif
