// Errors of a program: errors of a call, asynchronous errors, and permanent ones.
#include <string.h>

#include "check.h"

__global__ void write(int *p) { *p = 1; }
__global__ void fail() { __trap(); }

static void arguments()
{
	int *dev, device, value;
	cudaEvent_t event = (cudaEvent_t)0x1234;
	void *args[] = {&dev};

	WANT(cudaMalloc((void **)nullptr, 4), cudaErrorInvalidValue);
	WANT(cudaGetLastError(), cudaErrorInvalidValue);
	WANT(cudaGetLastError(), cudaSuccess);
	WANT(cudaSetDevice(77), cudaErrorInvalidDevice);
	WANT(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	WANT(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	CHECK(cudaGetDevice(&device));
	ASSERT(device == 0);
	WANT(cudaGetLastError(), cudaErrorInvalidDevice);
	CHECK(cudaMalloc(&dev, 4));
	WANT(cudaMemcpy(dev, &device, 4, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	WANT(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
	WANT(cudaStreamSynchronize((cudaStream_t)0x1234), cudaErrorInvalidResourceHandle);
	WANT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0), cudaErrorInvalidValue);
	WANT(cudaLaunchKernel((const void *)&device, dim3(1), dim3(1), args, 0, nullptr), cudaErrorInvalidDeviceFunction);
	(void)cudaGetLastError();
	write<<<0, 1>>>(dev);
	WANT(cudaGetLastError(), cudaErrorInvalidConfiguration);
	write<<<1, 2000>>>(dev);
	WANT(cudaGetLastError(), cudaErrorInvalidConfiguration);
	write<<<1, 1>>>(dev);
	WANT(cudaGetLastError(), cudaSuccess);
	CHECK(cudaDeviceSynchronize());
	ASSERT(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
	ASSERT(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
	ASSERT(strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code") == 0);
}

static void sticky(bool trap)
{
	int *dev, count;
	cudaError_t err;

	CHECK(cudaMalloc(&dev, 4));
	if (trap)
		fail<<<1, 1>>>();
	else
		write<<<1, 1>>>((int *)16);
	err = cudaDeviceSynchronize();
	ASSERT(err == (trap ? cudaErrorLaunchFailure : cudaErrorIllegalAddress) || (trap && err == cudaErrorIllegalInstruction));
	WANT(cudaGetLastError(), err);
	WANT(cudaGetLastError(), err); // the error is permanent
	WANT(cudaFree(dev), err);
	WANT(cudaMalloc(&dev, 4), err);
	write<<<1, 1>>>(dev);
	WANT(cudaGetLastError(), err);
	CHECK(cudaGetDeviceCount(&count));
	CHECK(cudaDeviceReset());
	WANT(cudaGetLastError(), cudaSuccess);
	CHECK(cudaMalloc(&dev, 4));
	write<<<1, 1>>>(dev);
	CHECK(cudaMemcpy(&count, dev, 4, cudaMemcpyDeviceToHost));
	ASSERT(count == 1);
}

int main()
{
	arguments();
	sticky(false);
	sticky(true);
	puts("errors: OK");
}
