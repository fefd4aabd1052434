/* The driver library. It is opened by name at the first use, and each of its functions is looked
 * up by its exact symbol. So a program that only links with the runtime starts on a machine
 * without a driver, and a function that the driver does not have is only an error of the calls
 * that need it. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>

#include "driver_types.h"

typedef unsigned long long CUdeviceptr;
typedef void (*driver_function)(void);

enum {
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_SUPPORTED = 801,
};
enum { DRIVER_HOST = 1, DRIVER_DEVICE = 2, DRIVER_ARRAY = 3, DRIVER_UNIFIED = 4 }; /* CUmemorytype */

/* CUDA_MEMCPY3D; for copies between contexts CUDA_MEMCPY3D_PEER. */
struct driver_side {
	size_t x, y, z, lod;
	unsigned int type;
	const void *host;
	CUdeviceptr device;
	const void *array, *context;
	size_t pitch, height;
};
struct driver_box {
	struct driver_side src, dst;
	size_t width, height, depth;
};

/* CUDA_KERNEL_NODE_PARAMS of version 2 */
struct driver_kernel {
	void *function;
	dim3 grid, block;
	unsigned int shared;
	void **params, **extra;
	void *kernel, *context;
};

/* Opens and initializes the driver once in a process. */
cudaError_t driver_open(void);
driver_function driver_find(int index);
void *driver_symbol(const char *name);
cudaError_t from_driver(int result);

#endif
