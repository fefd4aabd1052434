/* No graph has memory of its own: there is none to count or to give back. */
#include <string.h>

#include "graph.h"

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
