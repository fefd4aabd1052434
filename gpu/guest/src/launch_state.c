/* Launches by the functions from before CUDA 4: a function stores its block size, shared
 * memory and parameters between calls, and cuLaunch uses them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define PARAMETER_BYTES 4096 /* the maximum size of a kernel's parameters at that time */

struct launch_state {
	unsigned int block[3], shared;
	size_t size;
	uint8_t parameters[PARAMETER_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the state of all functions */

/* Finds the function and locks its state, until the caller calls release. */
static int acquire(CUfunction hfunc, struct function **f)
{
	SESSION(s);
	(void)s;
	TRY(function_resolve(hfunc, f));
	pthread_mutex_lock(&lock);
	if ((*f)->state || ((*f)->state = calloc(1, sizeof *(*f)->state)) != NULL)
		return 0;
	pthread_mutex_unlock(&lock);
	object_put(*f);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void release(struct function *f)
{
	pthread_mutex_unlock(&lock);
	object_put(f);
}

CUDA_API CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	struct function *f;

	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(acquire(hfunc, &f));
	f->state->block[0] = (unsigned int)x;
	f->state->block[1] = (unsigned int)y;
	f->state->block[2] = (unsigned int)z;
	release(f);
	return 0;
}

CUDA_API CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	struct function *f;

	TRY(acquire(hfunc, &f));
	f->state->shared = bytes;
	release(f);
	return 0;
}

CUDA_API CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	struct function *f;

	if (numbytes > PARAMETER_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(acquire(hfunc, &f));
	f->state->size = numbytes;
	release(f);
	return 0;
}

CUDA_API CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	struct function *f;

	if (!ptr || offset < 0 || offset > PARAMETER_BYTES || numbytes > PARAMETER_BYTES - (unsigned int)offset)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(acquire(hfunc, &f));
	memcpy(f->state->parameters + offset, ptr, numbytes);
	release(f);
	return 0;
}

CUDA_API CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUDA_API CUresult cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUDA_API CUresult cuLaunchGridAsync(CUfunction hfunc, int grid_width, int grid_height, CUstream hStream)
{
	struct launch_state now;
	struct function *f;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, now.parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &now.size, CU_LAUNCH_PARAM_END};

	if (grid_width <= 0 || grid_height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(acquire(hfunc, &f));
	now = *f->state;
	release(f);
	return cuLaunchKernel(hfunc, (unsigned int)grid_width, (unsigned int)grid_height, 1, now.block[0], now.block[1], now.block[2],
			      now.shared, hStream, NULL, extra);
}

CUDA_API CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	return cuLaunchGridAsync(f, grid_width, grid_height, NULL);
}

CUDA_API CUresult cuLaunch(CUfunction f)
{
	return cuLaunchGridAsync(f, 1, 1, NULL);
}
