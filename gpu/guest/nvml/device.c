/* Devices and the system. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "state.h"

#define NVML_VERSION "12.550.163.01"
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		nvmlReturn_t try_result = (call);                                                                      \
		if (try_result)                                                                                        \
			return try_result;                                                                             \
	} while (0)
#define DEVICE(device, out)                                                                                            \
	do {                                                                                                           \
		TRY(nvml_handle(device));                                                                              \
		if (!(out))                                                                                            \
			return NVML_ERROR_INVALID_ARGUMENT;                                                            \
	} while (0)

NVML_API const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case 4: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_MEMORY: return "Insufficient Memory";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
	default: return "Unknown Error";
	}
}

NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	TRY(nvml_ready());
	return nvml_text(version, length, nvml_device.driver_version);
}

NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return nvml_text(version, length, NVML_VERSION);
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	TRY(nvml_ready());
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = (int)nvml_device.cuda_version;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	return nvmlSystemGetCudaDriverVersion(version);
}

NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	TRY(nvml_ready());
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 1;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	TRY(nvml_ready());
	if (!device || index != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = nvml_the_device();
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	DEVICE(device, index);
	*index = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
	return nvmlDeviceGetIndex(device, minor);
}

NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	DEVICE(device, name);
	return nvml_text(name, length, nvml_device.name);
}

NVML_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	const uint8_t *u = nvml_device.uuid;
	char text[48];

	DEVICE(device, uuid);
	snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	return nvml_text(uuid, length, text);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char ours[48];

	TRY(nvml_ready());
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	TRY(nvmlDeviceGetUUID(nvml_the_device(), ours, sizeof ours));
	if (strcasecmp(uuid, ours) != 0)
		return NVML_ERROR_NOT_FOUND;
	*device = nvml_the_device();
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	DEVICE(device, pci);
	memset(pci, 0, sizeof *pci);
	pci->domain = (unsigned int)nvml_attribute(50) & 0xffff;
	pci->bus = (unsigned int)nvml_attribute(33) & 0xff;
	pci->device = (unsigned int)nvml_attribute(34) & 0xff;
	pci->pciDeviceId = (unsigned int)nvml_attribute(139);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return nvmlDeviceGetPciInfo_v3(device, pci);
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return nvmlDeviceGetPciInfo_v3(device, pci);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
	nvmlPciInfo_t pci;

	TRY(nvml_ready());
	if (!id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	TRY(nvmlDeviceGetPciInfo_v3(nvml_the_device(), &pci));
	if (strcasecmp(id, pci.busId) != 0 && strcasecmp(id, pci.busIdLegacy) != 0)
		return NVML_ERROR_NOT_FOUND;
	*device = nvml_the_device();
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

NVML_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	DEVICE(device, major);
	if (!minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = nvml_attribute(75);
	*minor = nvml_attribute(76);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *bits)
{
	DEVICE(device, bits);
	*bits = (unsigned int)nvml_attribute(37);
	return *bits ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* Highest clocks; the types are those of nvmlClockType_t. */
NVML_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
	enum { GRAPHICS, MULTIPROCESSORS, MEMORY, VIDEO };

	DEVICE(device, mhz);
	if (type > VIDEO)
		return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = type == VIDEO ? 0 : (unsigned int)nvml_attribute(type == MEMORY ? 36 : 13) / 1000;
	return *mhz ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* nvmlDeviceArchitecture_t, from the compute capability. */
NVML_API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture)
{
	static const struct { int capability; unsigned int architecture; } since[] = {
		{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}, {30, 2},
	};
	int capability;

	DEVICE(device, architecture);
	capability = nvml_attribute(75) * 10 + nvml_attribute(76);
	*architecture = 0xffffffffu; /* unknown */
	for (size_t i = 0; i < sizeof since / sizeof since[0]; i++) {
		if (capability >= since[i].capability) {
			*architecture = since[i].architecture;
			break;
		}
	}
	return NVML_SUCCESS;
}

/* Modes of the card, which are not the tenant's. */
#define FIXED(function, value)                                                                                         \
	NVML_API nvmlReturn_t function(nvmlDevice_t device, int *out)                                                  \
	{                                                                                                              \
		DEVICE(device, out);                                                                                   \
		*out = value;                                                                                          \
		return NVML_SUCCESS;                                                                                   \
	}
FIXED(nvmlDeviceGetMultiGpuBoard, 0)
FIXED(nvmlDeviceIsMigDeviceHandle, 0)
FIXED(nvmlDeviceGetMaxMigDeviceCount, 0)
FIXED(nvmlDeviceGetBrand, 0)              /* unknown */
FIXED(nvmlDeviceGetVirtualizationMode, 2) /* a vGPU in a guest */
FIXED(nvmlDeviceGetPersistenceMode, 1)
FIXED(nvmlDeviceGetComputeMode, 0)
FIXED(nvmlDeviceGetDisplayMode, 0)
FIXED(nvmlDeviceGetDisplayActive, 0)
FIXED(nvmlDeviceGetPerformanceState, 0)
