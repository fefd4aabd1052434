// Prefix sums over several blocks, with dynamic shared memory.
#include <vector>

#include "check.h"

__global__ void scan(int *data, int *sums, int n)
{
	extern __shared__ int line[];
	int *from = line, *to = line + blockDim.x;
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	from[threadIdx.x] = i < n ? data[i] : 0;
	__syncthreads();
	for (unsigned int d = 1; d < blockDim.x; d *= 2) {
		int *swap = from;

		to[threadIdx.x] = from[threadIdx.x] + (threadIdx.x >= d ? from[threadIdx.x - d] : 0);
		from = to;
		to = swap;
		__syncthreads();
	}
	if (i < n)
		data[i] = from[threadIdx.x];
	if (sums && threadIdx.x == blockDim.x - 1)
		sums[blockIdx.x] = from[threadIdx.x];
}

__global__ void add(int *data, const int *sums, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n && blockIdx.x > 0)
		data[i] += sums[blockIdx.x - 1];
}

int main()
{
	const int n = 5000, threads = 128, blocks = (n + threads - 1) / threads;
	std::vector<int> host(n), got(n);
	unsigned int seed = 11;
	int *data, *sums, total = 0;

	for (int &v : host)
		v = (int)(next_random(&seed) % 19) - 9;
	CHECK(cudaMalloc(&data, n * sizeof *data));
	CHECK(cudaMalloc(&sums, threads * sizeof *sums));
	CHECK(cudaMemcpy(data, host.data(), n * sizeof *data, cudaMemcpyHostToDevice));
	scan<<<blocks, threads, 2 * threads * sizeof(int)>>>(data, sums, n);
	scan<<<1, threads, 2 * threads * sizeof(int)>>>(sums, nullptr, blocks);
	add<<<blocks, threads>>>(data, sums, n);
	CHECK(cudaMemcpy(got.data(), data, n * sizeof *data, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		ASSERT(got[i] == (total += host[i]));
	puts("scan: OK");
}
