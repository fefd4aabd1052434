/* Queries of the device's links. */
#include "state.h"

#define OPERATIONS 13 /* number of values of CUatomicOperation */

static int check(const unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count)
{
	if (!capabilities || !operations || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++)
		if (operations[i] < 0 || operations[i] >= OPERATIONS)
			return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

/* There are none, which attributes 86 and 147 report too. */
CUDA_API CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
						    CUdevice dev)
{
	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(check(capabilities, operations, count));
	for (unsigned int i = 0; i < count; i++)
		capabilities[i] = 0;
	return 0;
}

/* A link connects two devices, and there is only one. */
CUDA_API CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
						   CUdevice srcDevice, CUdevice dstDevice)
{
	SESSION(s);
	(void)s, (void)srcDevice, (void)dstDevice;
	TRY(check(capabilities, operations, count));
	return CUDA_ERROR_INVALID_DEVICE;
}

/* Attributes 1 to 5 belong to a link between two devices, and there is only one. */
CUDA_API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	SESSION(s);
	(void)s, (void)srcDevice, (void)dstDevice;
	return !value || attrib < 1 || attrib > 5 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
}
