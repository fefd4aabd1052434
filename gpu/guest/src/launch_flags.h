/* The flags of a launch in the protocol (gpu/abi/launch.go): whether it is cooperative, and
 * the size of its clusters. */
#pragma once
#include "basalt_cuda.h"

#define LAUNCH_COOPERATIVE 1u
#define CLUSTER_SHIFT 8

/* Sets the flags for one attribute of a launch. */
static inline int launch_flags_set(uint32_t *flags, int id, const CUlaunchAttributeValue *v)
{
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		*flags = (*flags & ~LAUNCH_COOPERATIVE) | (v->cooperative != 0);
		return 0;
	}
	if (!v->clusterDim.x || !v->clusterDim.y || !v->clusterDim.z)
		return CUDA_ERROR_INVALID_VALUE;
	if (v->clusterDim.x > 255 || v->clusterDim.y > 255 || v->clusterDim.z > 255)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	*flags = (*flags & ((1u << CLUSTER_SHIFT) - 1)) | v->clusterDim.x << CLUSTER_SHIFT | v->clusterDim.y << (CLUSTER_SHIFT + 8) |
		 v->clusterDim.z << (CLUSTER_SHIFT + 16);
	return 0;
}

static inline void launch_flags_get(uint32_t flags, int id, CUlaunchAttributeValue *v)
{
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		v->cooperative = flags & LAUNCH_COOPERATIVE;
		return;
	}
	v->clusterDim.x = flags >> CLUSTER_SHIFT & 0xff;
	v->clusterDim.y = flags >> (CLUSTER_SHIFT + 8) & 0xff;
	v->clusterDim.z = flags >> (CLUSTER_SHIFT + 16);
}

/* launch.c: computes the flags from the attributes of a launch. */
int launch_flags_of(const CUlaunchConfig *config, uint32_t *flags);
