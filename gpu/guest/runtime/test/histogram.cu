// Histograms, with counters in shared and in global memory, and all other atomics.
#include <vector>

#include "check.h"

__global__ void count(const unsigned char *in, int n, unsigned int *bins)
{
	__shared__ unsigned int local[256];

	local[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&local[in[i]], 1u);
	__syncthreads();
	atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

struct extremes {
	int least, most;
	unsigned int any, all, odd, turn, last;
	float sum;
	double dsum;
};

__global__ void others(const unsigned char *in, int n, extremes *e)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	atomicMin(&e->least, (int)in[i]);
	atomicMax(&e->most, (int)in[i]);
	atomicOr(&e->any, (unsigned int)in[i]);
	atomicAnd(&e->all, in[i] | 0xffffff00u);
	atomicXor(&e->odd, (unsigned int)in[i]);
	atomicInc(&e->turn, 9u);
	atomicAdd(&e->sum, 1.0f);
	atomicAdd(&e->dsum, 0.5);
	for (unsigned int seen = e->last, was; seen < (unsigned int)i; seen = was) // a maximum by compare and swap
		if ((was = atomicCAS(&e->last, seen, (unsigned int)i)) == seen)
			break;
}

int main()
{
	const int n = 20000;
	std::vector<unsigned char> host(n);
	std::vector<unsigned int> bins(256), want(256);
	extremes e = {1000, -1, 0, ~0u, 0, 0, 0, 0, 0}, *de;
	unsigned int seed = 3, any = 0, all = ~0u, odd = 0, *db;
	unsigned char *in;

	for (unsigned char &v : host) {
		want[v = (unsigned char)(next_random(&seed) % 200 + 20)]++;
		any |= v, all &= v | 0xffffff00u, odd ^= v;
	}
	CHECK(cudaMalloc(&in, n));
	CHECK(cudaMalloc(&db, 256 * sizeof *db));
	CHECK(cudaMalloc(&de, sizeof e));
	CHECK(cudaMemcpy(in, host.data(), n, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(de, &e, sizeof e, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(db, 0, 256 * sizeof *db));
	count<<<5, 256>>>(in, n, db);
	others<<<(n + 127) / 128, 128>>>(in, n, de);
	CHECK(cudaMemcpy(bins.data(), db, 256 * sizeof *db, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&e, de, sizeof e, cudaMemcpyDeviceToHost));
	ASSERT(bins == want);
	ASSERT(e.least == 20 && e.most == 219 && e.any == any && e.all == all && e.odd == odd);
	ASSERT(e.turn == n % 10 && e.last == n - 1 && e.sum == n && e.dsum == n / 2.0);
	puts("histogram: OK");
}
