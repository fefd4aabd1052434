/* Queries of pairs of devices. There is one device, whose links belong to the host. */
#include "state.h"

static nvmlReturn_t pair(nvmlDevice_t a, nvmlDevice_t b, const void *out)
{
	nvmlReturn_t r = nvml_handle(a);

	if (r == NVML_SUCCESS)
		r = nvml_handle(b);
	return r ? r : out ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* NCCL calls this for every pair, also for a device with itself, and fails if it returns an error.
 * So it succeeds and reports that there is no peer access. */
NVML_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus)
{
	TRY(pair(device1, device2, p2pStatus));
	if (p2pIndex > NVML_P2P_CAPS_INDEX_MOST)
		return NVML_ERROR_INVALID_ARGUMENT;
	*p2pStatus = NVML_P2P_STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *pathInfo)
{
	TRY(pair(device1, device2, pathInfo));
	*pathInfo = NVML_TOPOLOGY_INTERNAL; /* the same GPU */
	return NVML_SUCCESS;
}

/* Returns no devices, because there is only this one. */
NVML_API nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *deviceArray)
{
	(void)deviceArray;
	DEVICE(device, level <= NVML_TOPOLOGY_SYSTEM ? count : NULL);
	*count = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard)
{
	TRY(pair(device1, device2, onSameBoard));
	*onSameBoard = 1;
	return NVML_SUCCESS;
}
