// Threads that use the runtime for the first time at the same moment, and that have their own
// errors and streams.
#include <thread>
#include <vector>

#include "check.h"

__device__ int total;

__global__ void work(int *v, int n, int by)
{
	int i = threadIdx.x;

	if (i < n)
		v[i] += by;
	if (i == 0)
		atomicAdd(&total, 1);
}

static void one(int k)
{
	int host[64], *dev;

	CHECK(cudaMalloc(&dev, sizeof host));
	CHECK(cudaMemset(dev, 0, sizeof host));
	for (int i = 0; i < 25; i++)
		work<<<1, 64>>>(dev, 64, k);
	if (k % 2)
		WANT(cudaSetDevice(-3), cudaErrorInvalidDevice);
	WANT(cudaGetLastError(), k % 2 ? cudaErrorInvalidDevice : cudaSuccess);
	CHECK(cudaMemcpy(host, dev, sizeof host, cudaMemcpyDeviceToHost));
	for (int v : host)
		ASSERT(v == 25 * k);
	CHECK(cudaFree(dev));
}

int main()
{
	std::vector<std::thread> all;
	int t;

	for (int k = 0; k < 8; k++)
		all.emplace_back(one, k);
	for (std::thread &th : all)
		th.join();
	CHECK(cudaMemcpyFromSymbol(&t, total, sizeof t));
	ASSERT(t == 200);
	puts("threads: OK");
}
