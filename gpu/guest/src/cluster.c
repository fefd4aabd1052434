/* Occupancy of clusters, by the blocks that a multiprocessor holds. On a card a cluster
 * also lies within one of its groups of multiprocessors, of which libcuda tells nothing
 * but these two answers: there a few clusters less may run at a time. */
#include "launch_flags.h"
#include "state.h"

#define MOST_BLOCKS 8u /* of a cluster, on every device that has clusters */

/* The blocks of a launch that the device holds at a time, of a device with clusters. */
static int resident(CUfunction func, const CUlaunchConfig *config, uint64_t *blocks)
{
	uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY;
	int has, each, sms;

	if (!config->blockDimZ || threads > 1024 || (threads *= config->blockDimZ) == 0 || threads > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	if (!has)
		return CUDA_ERROR_NOT_SUPPORTED;
	TRY(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, func, (int)threads, config->sharedMemBytes));
	*blocks = (uint64_t)each * (uint64_t)sms;
	return 0;
}

CUDA_API CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	uint32_t size = 1;
	uint64_t blocks;

	if (!numClusters || !config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];
		uint32_t flags = 0;

		if (a->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		TRY(launch_flags_set(&flags, a->id, &a->value));
		size = a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z;
	}
	if (size > MOST_BLOCKS)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	TRY(resident(func, config, &blocks));
	*numClusters = (int)(blocks / size);
	return 0;
}

CUDA_API CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	uint64_t blocks;

	if (!clusterSize || !config)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(resident(func, config, &blocks));
	*clusterSize = (int)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
	return 0;
}
