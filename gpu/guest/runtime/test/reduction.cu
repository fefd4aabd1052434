// Sum of integers: a tree in shared memory whose last steps are shuffles, and one
// atomic addition for each block.
#include <vector>

#include "check.h"

template <unsigned int N> __global__ void sum(const int *in, long long *out, int n)
{
	__shared__ int part[N];
	int v = 0;

	for (int i = blockIdx.x * N + threadIdx.x; i < n; i += gridDim.x * N)
		v += in[i];
	part[threadIdx.x] = v;
	__syncthreads();
	for (unsigned int half = N / 2; half >= 32; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x < 32) {
		v = part[threadIdx.x];
		for (int d = 16; d > 0; d /= 2)
			v += __shfl_down_sync(0xffffffff, v, d);
		if (threadIdx.x == 0)
			atomicAdd((unsigned long long *)out, (unsigned long long)v);
	}
}

int main()
{
	const int n = 100003;
	unsigned int seed = 1;
	long long want = 0, got, *out;
	std::vector<int> host(n);
	int *in;

	for (int &v : host)
		want += v = (int)(next_random(&seed) % 1000);
	CHECK(cudaMalloc(&in, n * sizeof *in));
	CHECK(cudaMalloc(&out, sizeof *out));
	CHECK(cudaMemcpy(in, host.data(), n * sizeof *in, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(out, 0, sizeof *out));
	sum<256><<<7, 256>>>(in, out, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost));
	ASSERT(got == want);
	CHECK(cudaMemset(out, 0, sizeof *out));
	sum<64><<<3, 64>>>(in, out, n);
	CHECK(cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost));
	ASSERT(got == want);
	CHECK(cudaFree(in));
	CHECK(cudaFree(out));
	puts("reduction: OK");
}
