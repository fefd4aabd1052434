/* Functions and macros of the demo programs. Errors end the program. */
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

/* Creates a context on device 0, loads the demo's module, and returns the function of a name. */
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

/* Returns numbers from 0 to 1, which are the same in each run. */
static inline float demo_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / 16777216.0f;
}

/* Parses the argument as a number, or returns otherwise if there is none. It does not use atoi,
 * because new versions of glibc link that by a symbol that older ones lack. */
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
