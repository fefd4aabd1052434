/* Pairs of devices, and queries of many values: there is one device, whose
 * links and counters are the host's business. */
#include <time.h>

#include "state.h"

static nvmlReturn_t pair(nvmlDevice_t a, nvmlDevice_t b, const void *out)
{
	nvmlReturn_t r = nvml_handle(a);

	if (r == NVML_SUCCESS)
		r = nvml_handle(b);
	return r ? r : out ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* NCCL asks this of every pair, a device with itself too, and gives up on an
 * error: so this succeeds and says that there is no such access. */
NVML_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int index, int *status)
{
	nvmlReturn_t r = pair(a, b, status);

	if (r == NVML_SUCCESS && (index < 0 || index > 5))
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*status = NVML_P2P_STATUS_NOT_SUPPORTED;
	return r;
}

NVML_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, int *level)
{
	nvmlReturn_t r = pair(a, b, level);

	if (r == NVML_SUCCESS)
		*level = 0; /* NVML_TOPOLOGY_INTERNAL: the same card */
	return r;
}

NVML_API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same)
{
	nvmlReturn_t r = pair(a, b, same);

	if (r == NVML_SUCCESS)
		*same = 1;
	return r;
}

/* The call succeeds; each value says for itself that it is not there. */
static nvmlReturn_t no_values(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	nvmlReturn_t r = nvml_handle(device);
	struct timespec now;

	if (r)
		return r;
	if (count < 0 || (count && !values))
		return NVML_ERROR_INVALID_ARGUMENT;
	clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i < count; i++) {
		values[i].timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
		values[i].latencyUsec = 0;
		values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	}
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	return no_values(device, count, values);
}

NVML_API nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	return no_values(device, count, values);
}

NVML_API nvmlReturn_t nvmlUnitGetCount(unsigned int *count)
{
	nvmlReturn_t r = nvml_ready();

	if (r == NVML_SUCCESS && !count)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*count = 0;
	return r;
}
