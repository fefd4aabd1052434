/* Functions: attributes and occupancy. */
#include "state.h"

CUDA_API CUresult cuFuncGetAttribute(int *pi, int attrib, CUfunction hfunc)
{
	struct function *f;
	int err = 0;

	SESSION(s);
	(void)s;
	if (!pi || attrib < 0)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(hfunc, &f));
	if ((err = function_usable(f)) != 0)
		;
	else if (attrib < FUNCTION_ATTRIBUTES)
		*pi = f->info.attributes[attrib];
	else if (attrib >= CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED && attrib < 16)
		*pi = atomic_load(&f->cluster[attrib - CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED]);
	else if (attrib < 16) /* the cluster that a kernel requires, which the worker does not report */
		*pi = 0;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	object_put(f);
	return err;
}

/* Stores a value that was set, for cuFuncGetAttribute. */
static void store_attribute(struct function *f, int attrib, int value)
{
	if (attrib < FUNCTION_ATTRIBUTES)
		__atomic_store_n(&f->info.attributes[attrib], value, __ATOMIC_RELAXED);
	else
		atomic_store(&f->cluster[attrib - CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED], value);
}

/* Passes the settable attributes to the worker, except for the size of the cluster that a
 * kernel requires. */
CUDA_API CUresult cuFuncSetAttribute(CUfunction hfunc, int attrib, int value)
{
	struct bslt_func_set_attribute a = {.attribute = attrib, .value = value};
	struct function *f;
	int err;

	SESSION(s);
	if (attrib != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && attrib != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
	    attrib != CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED && attrib != CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(hfunc, &f));
	a.function = f->o.id;
	if ((err = function_usable(f)) == 0 && (err = call(s, BSLT_OP_FUNC_SET_ATTRIBUTE, &a, sizeof a).result) == 0)
		store_attribute(f, attrib, value);
	object_put(f);
	return err;
}

static int valid(CUfunction hfunc)
{
	struct function *f;

	SESSION(s);
	(void)s;
	TRY(function_resolve(hfunc, &f));
	object_put(f);
	return 0;
}

/* Preferences, which have no effect. */
CUDA_API CUresult cuFuncSetCacheConfig(CUfunction hfunc, int config)
{
	return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : valid(hfunc);
}

CUDA_API CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, int config)
{
	return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : valid(hfunc);
}

CUDA_API CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct function *f;

	SESSION(s);
	(void)s;
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(hfunc, &f));
	*hmod = handle_of(f->module);
	object_put(f);
	return 0;
}

/* The name is valid as long as the module. */
CUDA_API CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	struct function *f;

	SESSION(s);
	(void)s;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(hfunc, &f));
	*name = f->info.name;
	object_put(f);
	return 0;
}

int param_info_of(const struct function_info *f, size_t index, size_t *offset, size_t *size)
{
	if (!offset || index >= f->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = f->params[index].offset;
	if (size)
		*size = f->params[index].size;
	return 0;
}

CUDA_API CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct function *f;
	int err;

	SESSION(s);
	(void)s;
	if (!paramOffset)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(func, &f));
	err = param_info_of(&f->info, paramIndex, paramOffset, paramSize);
	object_put(f);
	return err;
}

CUDA_API CUresult cuFuncIsLoaded(int *state, CUfunction function)
{
	struct function *f;

	SESSION(s);
	(void)s;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(function, &f));
	*state = atomic_load(&f->loaded) && f->info.refused == NULL; /* CU_FUNCTION_LOADING_STATE_LOADED, or _UNLOADED */
	object_put(f);
	return 0;
}

CUDA_API CUresult cuFuncLoad(CUfunction function)
{
	struct function *f;
	int err;

	SESSION(s);
	(void)s;
	TRY(function_resolve(function, &f));
	err = function_usable(f);
	object_put(f);
	return err;
}

CUDA_API CUresult cuKernelGetAttribute(int *pi, int attrib, CUkernel kernel, CUdevice dev)
{
	return dev != 0 ? CUDA_ERROR_INVALID_DEVICE : cuFuncGetAttribute(pi, attrib, (CUfunction)(void *)kernel);
}

CUDA_API CUresult cuKernelSetAttribute(int attrib, int val, CUkernel kernel, CUdevice dev)
{
	return dev != 0 ? CUDA_ERROR_INVALID_DEVICE : cuFuncSetAttribute((CUfunction)(void *)kernel, attrib, val);
}

CUDA_API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	return dev != 0 ? CUDA_ERROR_INVALID_DEVICE : cuFuncSetCacheConfig((CUfunction)(void *)kernel, config);
}

CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
								       size_t dynamicSMemSize, unsigned int flags)
{
	return flags & ~1u ? CUDA_ERROR_INVALID_VALUE
			   : cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize, dynamicSMemSize);
}

/* Tries every multiple of the warp size, the largest first. The first of the best is used. */
CUDA_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
							    CUoccupancyB2DSize blockSizeToDynamicSMemSize,
							    size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)
{
	int limit, best = 0, sms, most = 0;

	if (!minGridSize || !blockSize || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func));
	TRY(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	if (limit <= 0 || limit > 1024)
		limit = 1024;
	if (blockSizeLimit > 0 && blockSizeLimit < limit)
		limit = blockSizeLimit;
	for (int size = limit; size > 0; size = size % 32 ? size - size % 32 : size - 32) {
		size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
		int blocks;

		TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, func, size, shared));
		if (blocks * size > most) {
			most = blocks * size;
			best = size;
			*minGridSize = blocks * sms;
		}
	}
	*blockSize = best;
	return best ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
						   CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
						   int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
							 dynamicSMemSize, blockSizeLimit, 0);
}
