/* Properties of the device that do not change. There is one device. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "state.h"

NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	TRY(nvml_ready());
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 1;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	TRY(nvml_ready());
	if (!device || index != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = nvml_the_device();
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	DEVICE(device, index);
	*index = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber)
{
	return nvmlDeviceGetIndex(device, minorNumber);
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

NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
	enum { TEXT = 1, BYTES = 2 };
	char text[sizeof uuid->value.str + 1] = "";

	TRY(nvml_ready());
	TRY(nvml_version(uuid, (const unsigned int[]){VERSION_nvmlUUID_v1}, 1));
	if (!device || (uuid->type != TEXT && uuid->type != BYTES))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (uuid->type == TEXT) {
		memcpy(text, uuid->value.str, sizeof uuid->value.str);
		return nvmlDeviceGetHandleByUUID(text, device);
	}
	if (memcmp(uuid->value.bytes, nvml_device.uuid, sizeof uuid->value.bytes) != 0)
		return NVML_ERROR_NOT_FOUND;
	*device = nvml_the_device();
	return NVML_SUCCESS;
}

/* No serial number is found, because a vGPU has none. */
NVML_API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
	TRY(nvml_ready());
	return serial && device ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
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

NVML_API nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *busWidth)
{
	DEVICE(device, busWidth);
	*busWidth = (unsigned int)nvml_attribute(37);
	return *busWidth ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static int capability(void)
{
	return nvml_attribute(75) * 10 + nvml_attribute(76);
}

/* Derives nvmlDeviceArchitecture_t from the compute capability. */
NVML_API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch)
{
	static const struct { int capability; unsigned int architecture; } since[] = {
		{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}, {30, 2},
	};

	DEVICE(device, arch);
	*arch = 0xffffffffu; /* unknown */
	for (size_t i = 0; i < sizeof since / sizeof since[0]; i++) {
		if (capability() >= since[i].capability) {
			*arch = since[i].architecture;
			break;
		}
	}
	return NVML_SUCCESS;
}

/* The number of FP32 cores of a multiprocessor is from the CUDA C++ Programming Guide, "Compute
 * Capabilities", arithmetic instructions. */
NVML_API nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *numCores)
{
	int c = capability(), each = c == 60 || (c >= 70 && c <= 80) ? 64 : 128;

	DEVICE(device, numCores);
	*numCores = (unsigned int)(nvml_attribute(16) * each);
	return *numCores ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* Derives nvmlBrandType_t from the name of an NVIDIA GPU. The operator may have given the vGPU
 * another name. */
NVML_API nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type)
{
	static const struct { const char *word; unsigned int brand; } words[] = {
		{"GeForce", 5}, {"Quadro", 1}, {"Tesla", 2}, {"TITAN", 6}, {"NVIDIA RTX", 12}, {"NVIDIA", 14},
	};

	DEVICE(device, type);
	*type = 0; /* unknown */
	for (size_t i = 0; i < sizeof words / sizeof words[0] && !*type; i++)
		if (strstr(nvml_device.name, words[i].word))
			*type = words[i].brand;
	return NVML_SUCCESS;
}

/* Modes with a fixed value. */
#define FIXED(function, type, value)                                                                                   \
	NVML_API nvmlReturn_t function(nvmlDevice_t device, type *out)                                                 \
	{                                                                                                              \
		DEVICE(device, out);                                                                                   \
		*out = value;                                                                                          \
		return NVML_SUCCESS;                                                                                   \
	}
FIXED(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
FIXED(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
FIXED(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)
FIXED(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_VGPU)
FIXED(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
FIXED(nvmlDeviceGetComputeMode, nvmlComputeMode_t, 0) /* any number of processes */
FIXED(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
FIXED(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)

NVML_API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *gpmSupport)
{
	VERSIONED(device, gpmSupport, 1); /* here the version is a plain number */
	gpmSupport->isSupportedDevice = 0;
	return NVML_SUCCESS;
}
