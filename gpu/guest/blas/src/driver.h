/* The driver library. It is opened by name at the first use, so that a program that links with
 * this library starts without a driver. */
#ifndef BLAS_DRIVER_H
#define BLAS_DRIVER_H

#include "basalt_cuda.h"

#define BLAS_DRIVER_FUNCTIONS(F) \
	F(cuInit) \
	F(cuDeviceGet) \
	F(cuCtxGetCurrent) \
	F(cuCtxSetCurrent) \
	F(cuDevicePrimaryCtxRetain) \
	F(cuLibraryLoadData) \
	F(cuLibraryGetKernel) \
	F(cuLaunchKernel) \
	F(cuMemAlloc) \
	F(cuMemFree) \
	F(cuMemcpyDtoHAsync) \
	F(cuStreamSynchronize)

struct driver {
#define F(name) __typeof__(&name) name;
	BLAS_DRIVER_FUNCTIONS(F)
#undef F
};
extern struct driver driver;

/* Opens and initializes the driver once in a process. */
CUresult driver_open(void);

#endif
