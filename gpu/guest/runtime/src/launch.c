#include "driver_calls.h"
#include "launch.h"
#include "own.h"
#include "properties.h"
#include "runtime.h"

#define MAX_THREADS 1024
#define COOPERATIVE_LAUNCH 95 /* CUdevice_attribute */

/* CUlaunchConfig. Its size of shared memory has 32 bits. */
struct driver_config {
	unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	cudaStream_t stream;
	cudaLaunchAttribute *attributes;
	unsigned int count;
};

static cudaError_t check_shape(dim3 grid, dim3 block, size_t shared)
{
	uint64_t threads = (uint64_t)block.x * block.y;

	if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || grid.y > 65535 || grid.z > 65535)
		return cudaErrorInvalidConfiguration;
	if (threads > MAX_THREADS || threads * block.z > MAX_THREADS || grid.x > INT32_MAX)
		return cudaErrorInvalidConfiguration;
	return shared > UINT32_MAX ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t launch(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream, bool cooperative)
{
	cudaError_t err;
	void *f;

	if ((err = check_shape(grid, block, shared)) != 0 || (err = symbol_function(func, &f)) != 0)
		return err;
	if (cooperative && !attribute(COOPERATIVE_LAUNCH, current_device()))
		return cudaErrorNotSupported;
	if (cooperative)
		return from_driver(call_cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
								  (unsigned int)shared, stream, args));
	return from_driver(call_cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned int)shared,
					       stream, args, NULL));
}

cudaError_t own_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream)
{
	return launch(func, gridDim, blockDim, args, sharedMem, stream, false);
}

cudaError_t own_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
					    cudaStream_t stream)
{
	return launch(func, gridDim, blockDim, args, sharedMem, stream, true);
}

static cudaError_t translate(const cudaLaunchConfig_t *c, struct driver_config *d)
{
	if (!c || (c->numAttrs && !c->attrs))
		return cudaErrorInvalidValue;
	*d = (struct driver_config){c->gridDim.x, c->gridDim.y, c->gridDim.z, c->blockDim.x, c->blockDim.y, c->blockDim.z,
				    (unsigned int)c->dynamicSmemBytes, c->stream, c->attrs, c->numAttrs};
	return check_shape(c->gridDim, c->blockDim, c->dynamicSmemBytes);
}

cudaError_t own_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args, bool per_thread)
{
	struct driver_config d;
	cudaError_t err;
	void *f;

	if ((err = translate(config, &d)) != 0 || (err = symbol_function(func, &f)) != 0)
		return err;
	if (per_thread)
		d.stream = own_stream(d.stream);
	return from_driver(call_cuLaunchKernelEx(&d, f, args, NULL));
}

cudaError_t own_cudaOccupancyMaxActiveClusters(int *numClusters, const void *func, const cudaLaunchConfig_t *launchConfig)
{
	struct driver_config d;
	cudaError_t err;
	void *f;

	if ((err = translate(launchConfig, &d)) != 0 || (err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuOccupancyMaxActiveClusters(numClusters, f, &d));
}

cudaError_t own_cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func, const cudaLaunchConfig_t *launchConfig)
{
	struct driver_config d;
	cudaError_t err;
	void *f;

	if ((err = translate(launchConfig, &d)) != 0 || (err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuOccupancyMaxPotentialClusterSize(clusterSize, f, &d));
}
