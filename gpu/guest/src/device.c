/* cuInit, and queries of the device. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define CUDA_VERSION 12040 /* used if there is no vGPU that reports its driver's version */

CUDA_API CUresult cuInit(unsigned int Flags)
{
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	forks_watch();
	return library_init();
}

CUDA_API CUresult cuDriverGetVersion(int *driverVersion)
{
	uint32_t version;

	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	forks_watch();
	version = library_version();
	*driverVersion = version ? (int)version : CUDA_VERSION;
	return 0;
}

CUDA_API CUresult cuDeviceGetCount(int *count)
{
	SESSION(s);
	(void)s;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)device.devices;
	return 0;
}

CUDA_API CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	SESSION(s);
	(void)s;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (ordinal < 0 || (uint32_t)ordinal >= device.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = ordinal;
	return 0;
}

/* Begins a query of a device: there is only device 0. */
#define DEVICE(dev, out)                                                                                               \
	SESSION(s);                                                                                                    \
	(void)s;                                                                                                       \
	if (!(out))                                                                                                    \
		return CUDA_ERROR_INVALID_VALUE;                                                                       \
	if ((dev) != 0)                                                                                                \
		return CUDA_ERROR_INVALID_DEVICE

CUDA_API CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	DEVICE(dev, name);
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", device.name);
	return 0;
}

CUDA_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	DEVICE(dev, uuid);
	memcpy(uuid->bytes, device.uuid, sizeof uuid->bytes);
	return 0;
}

CUDA_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	DEVICE(dev, bytes);
	*bytes = device.total_memory;
	return 0;
}

CUDA_API CUresult cuDeviceGetAttribute(int *pi, int attrib, CUdevice dev)
{
	DEVICE(dev, pi);
	if (attrib <= 0 || attrib > MAX_ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = device_attribute(attrib);
	return 0;
}

CUDA_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	DEVICE(dev, major);
	if (!minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*minor = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return 0;
}

CUDA_API CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	DEVICE(dev, prop);
	*prop = (CUdevprop){
		.maxThreadsPerBlock = device_attribute(1),
		.maxThreadsDim = {device_attribute(2), device_attribute(3), device_attribute(4)},
		.maxGridSize = {device_attribute(5), device_attribute(6), device_attribute(7)},
		.sharedMemPerBlock = device_attribute(8),
		.totalConstantMemory = device_attribute(9),
		.SIMDWidth = device_attribute(10),
		.memPitch = device_attribute(11),
		.regsPerBlock = device_attribute(12),
		.clockRate = device_attribute(13),
		.textureAlign = device_attribute(14),
	};
	return 0;
}

static void bus_id(char out[13])
{
	snprintf(out, 13, "%04x:%02x:%02x.0", (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) & 0xffff,
		 (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) & 0xff,
		 (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) & 0xff);
}

CUDA_API CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	char id[13];

	DEVICE(dev, pciBusId);
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	bus_id(id);
	snprintf(pciBusId, (size_t)len, "%s", id);
	return 0;
}

/* Parses up to 8 hex digits. It does not use strtoul, because new versions of glibc link that
 * by a symbol that older ones lack. */
static const char *hex(const char *p, unsigned long *out)
{
	const char *start = p;

	for (*out = 0; isxdigit((unsigned char)*p) && p - start < 8; p++)
		*out = *out << 4 | (unsigned long)(*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
	return p == start ? NULL : p;
}

/* Parses [domain]:bus:device.function; the domain and ".0" are optional. */
CUDA_API CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned long part[4] = {0}, parts = 0;
	const char *p = pciBusId;

	DEVICE(0, dev);
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	for (; parts < 4; p++) {
		p = hex(p, &part[parts++]);
		if (!p)
			return CUDA_ERROR_INVALID_VALUE;
		if (*p != ':' && *p != '.')
			break;
	}
	if (*p || parts < 2)
		return CUDA_ERROR_INVALID_VALUE;
	bool dotted = strchr(pciBusId, '.') != NULL;
	unsigned long domain = parts - dotted == 3 ? part[0] : 0;
	const unsigned long *rest = part + (parts - dotted == 3);

	if ((int)domain != device_attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) ||
	    (int)rest[0] != device_attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) ||
	    (int)rest[1] != device_attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID))
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = 0;
	return 0;
}

CUDA_API CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	DEVICE(dev, canAccessPeer);
	if (peerDev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*canAccessPeer = 0;
	return 0;
}

CUDA_API CUresult cuDeviceGetExecAffinitySupport(int *pi, int type, CUdevice dev)
{
	DEVICE(dev, pi);
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;
	return 0;
}
