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

/* The argument as a number, or what it is without one. Not atoi: a new glibc
 * makes that a function that an older one lacks. */
static inline unsigned int number(const char *arg, unsigned int otherwise)
{
	unsigned int n = 0;

	if (!arg)
		return otherwise;
	for (; *arg >= '0' && *arg <= '9' && n < 100000000; arg++)
		n = n * 10 + (unsigned int)(*arg - '0');
	if (*arg || n == 0) {
		fprintf(stderr, "the size must be a whole number from 1 to 999999999\n");
		exit(2);
	}
	return n;
}

#endif
