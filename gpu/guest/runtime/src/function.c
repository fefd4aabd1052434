/* Attributes and occupancy of kernels, which are given by their host functions. */
#include <string.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

/* CUfunction_attribute */
enum {
	MAX_THREADS_PER_BLOCK = 0, SHARED_SIZE_BYTES = 1, CONST_SIZE_BYTES = 2, LOCAL_SIZE_BYTES = 3, NUM_REGS = 4,
	PTX_VERSION = 5, BINARY_VERSION = 6, CACHE_MODE_CA = 7, MAX_DYNAMIC_SHARED = 8, CARVEOUT = 9, CLUSTER_MUST_BE_SET = 10,
	CLUSTER_WIDTH = 11, CLUSTER_HEIGHT = 12, CLUSTER_DEPTH = 13, NON_PORTABLE_CLUSTER = 14, CLUSTER_SCHEDULING = 15,
};

/* Returns an attribute, or 0 if the driver does not support it. */
static int attribute_of(void *f, int attribute)
{
	int value = 0;

	return call_cuFuncGetAttribute(&value, attribute, f) == 0 ? value : 0;
}

static void fill_clusters(struct cudaFuncAttributes *attr, void *f)
{
#if CUDART_MAJOR >= 12
	attr->clusterDimMustBeSet = attribute_of(f, CLUSTER_MUST_BE_SET);
	attr->requiredClusterWidth = attribute_of(f, CLUSTER_WIDTH);
	attr->requiredClusterHeight = attribute_of(f, CLUSTER_HEIGHT);
	attr->requiredClusterDepth = attribute_of(f, CLUSTER_DEPTH);
	attr->nonPortableClusterSizeAllowed = attribute_of(f, NON_PORTABLE_CLUSTER);
	attr->clusterSchedulingPolicyPreference = attribute_of(f, CLUSTER_SCHEDULING);
#else
	(void)attr, (void)f;
#endif
}

cudaError_t own_cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	cudaError_t err;
	void *f;

	if (!attr)
		return cudaErrorInvalidValue;
	if ((err = symbol_function(func, &f)) != 0)
		return err;
	memset(attr, 0, sizeof *attr);
	if ((err = from_driver(call_cuFuncGetAttribute(&attr->maxThreadsPerBlock, MAX_THREADS_PER_BLOCK, f))) != 0)
		return err;
	attr->sharedSizeBytes = (size_t)attribute_of(f, SHARED_SIZE_BYTES);
	attr->constSizeBytes = (size_t)attribute_of(f, CONST_SIZE_BYTES);
	attr->localSizeBytes = (size_t)attribute_of(f, LOCAL_SIZE_BYTES);
	attr->numRegs = attribute_of(f, NUM_REGS);
	attr->ptxVersion = attribute_of(f, PTX_VERSION);
	attr->binaryVersion = attribute_of(f, BINARY_VERSION);
	attr->cacheModeCA = attribute_of(f, CACHE_MODE_CA);
	attr->maxDynamicSharedSizeBytes = attribute_of(f, MAX_DYNAMIC_SHARED);
	attr->preferredShmemCarveout = attribute_of(f, CARVEOUT);
	fill_clusters(attr, f);
	return cudaSuccess;
}

cudaError_t own_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	cudaError_t err;
	void *f;

	if ((err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuFuncSetAttribute(f, (int)attr, value));
}

cudaError_t own_cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
	cudaError_t err;
	void *f;

	if ((err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuFuncSetCacheConfig(f, (int)cacheConfig));
}

cudaError_t own_cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	cudaError_t err;
	void *f;

	if ((err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuFuncSetSharedMemConfig(f, (int)config));
}

#if CUDART_MAJOR >= 12
cudaError_t own_cudaFuncGetName(const char **name, const void *func)
{
	if (!name)
		return cudaErrorInvalidValue;
	return (*name = symbol_name(func)) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t own_cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	cudaError_t err;
	void *f;

	if ((err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuFuncGetParamInfo(f, paramIndex, paramOffset, paramSize));
}

cudaError_t own_cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
	void *k;
	cudaError_t err;

	if (!kernelPtr)
		return cudaErrorInvalidValue;
	if ((err = symbol_kernel(entryFuncAddr, &k)) == 0)
		*kernelPtr = k;
	return err;
}
#endif

cudaError_t own_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
	void *f;
	cudaError_t err;

	if (!functionPtr)
		return cudaErrorInvalidValue;
	if ((err = symbol_function(symbolPtr, &f)) == 0)
		*functionPtr = f;
	return err;
}

cudaError_t own_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func, int blockSize,
								       size_t dynamicSMemSize, unsigned int flags)
{
	cudaError_t err;
	void *f;

	if ((err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize, dynamicSMemSize,
										     flags));
}

cudaError_t own_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize,
							      size_t dynamicSMemSize)
{
	return own_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

cudaError_t own_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func, int numBlocks, int blockSize)
{
	cudaError_t err;
	void *f;

	if ((err = symbol_function(func, &f)) != 0)
		return err;
	return from_driver(call_cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, f, numBlocks, blockSize));
}
