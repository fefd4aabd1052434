// A shared object with its own kernel and variable, which loader.cu loads.
#include "check.h"

static __device__ int calls = 100;

__global__ void bump(int *out) { *out = ++calls; }

extern "C" int plugin_run()
{
	int *dev, host = -1;

	CHECK(cudaMalloc(&dev, sizeof host));
	bump<<<1, 1>>>(dev);
	CHECK(cudaMemcpy(&host, dev, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(dev));
	return host;
}
