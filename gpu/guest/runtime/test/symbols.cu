// Variables of the program that are on the GPU.
#include <string.h>

#include "check.h"

__constant__ float table[8];
__device__ int counter = 41;
__device__ double pair[2] = {1.5, 2.5};
static __device__ int hidden;
struct settings { int a; float b; };
__constant__ settings chosen;

__global__ void look_up(float *out)
{
	out[threadIdx.x] = table[threadIdx.x] * chosen.b + chosen.a;
	if (threadIdx.x == 0) {
		counter++;
		hidden = counter * 2;
		pair[1] += pair[0];
	}
}

int main()
{
	float values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, replaced[2] = {50, 60}, out[8], *dev;
	settings s = {3, 0.5f};
	double p[2];
	int c, h, *address;
	size_t size;

	CHECK(cudaMemcpyToSymbol(table, values, sizeof values));
	CHECK(cudaMemcpyToSymbol(table, replaced, sizeof replaced, 2 * sizeof(float)));
	CHECK(cudaMemcpyToSymbolAsync(chosen, &s, sizeof s));
	CHECK(cudaMalloc(&dev, sizeof out));
	look_up<<<1, 8>>>(dev);
	CHECK(cudaMemcpy(out, dev, sizeof out, cudaMemcpyDeviceToHost));
	values[2] = 50, values[3] = 60;
	for (int i = 0; i < 8; i++)
		ASSERT(out[i] == values[i] * 0.5f + 3);
	CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
	CHECK(cudaMemcpyFromSymbol(&h, hidden, sizeof h));
	CHECK(cudaMemcpyFromSymbol(p, pair, sizeof p));
	ASSERT(c == 42 && h == 84 && p[0] == 1.5 && p[1] == 4);
	CHECK(cudaGetSymbolAddress((void **)&address, counter));
	CHECK(cudaGetSymbolSize(&size, pair));
	ASSERT(size == sizeof p);
	c = 7;
	CHECK(cudaMemcpy(address, &c, sizeof c, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromSymbol(&h, counter, sizeof h));
	ASSERT(h == 7);
	WANT(cudaMemcpyToSymbol(table, values, sizeof values, 4), cudaErrorInvalidValue);
	WANT(cudaMemcpyToSymbol(table, values, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
	WANT(cudaGetSymbolSize(&size, (const void *)&h), cudaErrorInvalidSymbol);
	puts("symbols: OK");
}
