/* The texts of nvmlErrorString. They are the same as NVIDIA's, because programs know them. */
#include "state.h"

NVML_API const char *nvmlErrorString(nvmlReturn_t result)
{
	static const char *const text[] = {
		"Success",
		"Uninitialized",
		"Invalid Argument",
		"Not Supported",
		"Insufficient Permissions",
		"Already Initialized",
		"Not Found",
		"Insufficient Size",
		"Insufficient External Power",
		"Driver Not Loaded",
		"Timeout",
		"Interrupt Request Issue",
		"NVML Shared Library Not Found",
		"Function Not Found",
		"Corrupted infoROM",
		"GPU is lost",
		"GPU requires reset",
		"GPU access blocked by the operating system",
		"Driver/library version mismatch",
		"In use by another client",
		"Insufficient Memory",
		"No data",
		"The requested vgpu operation is not available on target device, becasue ECC is enabled",
		"Insufficient resources",
		"Frequency not supported",
		"Argument version mismatch",
		"Deprecated",
		"Not ready",
		"No GPUs found",
		"Invalid state",
		"Reset type not supported",
	};

	if (result < 0 || (unsigned int)result >= sizeof text / sizeof text[0])
		return "Unknown Error";
	return text[result];
}
