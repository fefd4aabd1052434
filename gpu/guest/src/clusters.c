/* Occupancy of clusters: how many clusters of a kernel's blocks fit on the device, and how
 * large a cluster can be. */
#include "capture.h"
#include "launch_flags.h"

static int query_clusters(int *out, CUfunction func, const CUlaunchConfig *config, bool potential)
{
	struct bslt_clusters a = {.potential = potential};
	struct function *f;
	struct answer r;
	int err;

	SESSION(s);
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(launch_flags_of(config, &a.flags));
	a.grid_x = config->gridDimX, a.grid_y = config->gridDimY, a.grid_z = config->gridDimZ;
	a.block_x = config->blockDimX, a.block_y = config->blockDimY, a.block_z = config->blockDimZ;
	a.shared = config->sharedMemBytes;
	TRY(function_resolve(func, &f));
	a.function = f->o.id;
	err = function_usable(f);
	object_put(f);
	TRY(err);
	r = call(s, BSLT_OP_CLUSTERS, &a, sizeof a);
	TRY(r.result);
	*out = (int)r.value0;
	return 0;
}

CUDA_API CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return query_clusters(numClusters, func, config, false);
}

/* The size of a cluster in config is ignored. */
CUDA_API CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	return query_clusters(clusterSize, func, config, true);
}
