/* What the demo programs share: errors end the program. */
#ifndef BASALT_DEMO_H
#define BASALT_DEMO_H

#include <stdio.h>
#include <stdlib.h>

#include "basalt_cuda.h"

extern const char kernels_ptx[];

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		CUresult check_result = (call);                                                                        \
		const char *check_name = "?";                                                                          \
		if (check_result != CUDA_SUCCESS) {                                                                    \
			cuGetErrorName(check_result, &check_name);                                                     \
			fprintf(stderr, "%s: %s (%d)\n", #call, check_name, check_result);                             \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* A context on device 0, and the function of that name. */
static inline CUfunction demo_start(const char *name)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction f;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&context, 0, device));
	CHECK(cuModuleLoadData(&module, kernels_ptx));
	CHECK(cuModuleGetFunction(&f, module, name));
	return f;
}

/* Numbers from 0 to 1, the same in each run. */
static inline float demo_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / 16777216.0f;
}

#endif
