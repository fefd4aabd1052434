// Product of matrices in tiles, with a size that is not a multiple of the tile's.
#include <math.h>

#include <vector>

#include "check.h"

#define TILE 16

__global__ void multiply(const float *a, const float *b, float *c, int n)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		int x = k + threadIdx.x, y = k + threadIdx.y;

		ta[threadIdx.y][threadIdx.x] = row < n && x < n ? a[row * n + x] : 0;
		tb[threadIdx.y][threadIdx.x] = column < n && y < n ? b[y * n + column] : 0;
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
		__syncthreads();
	}
	if (row < n && column < n)
		c[row * n + column] = sum;
}

int main()
{
	const int n = 75;
	size_t bytes = n * n * sizeof(float);
	std::vector<float> a(n * n), b(n * n), c(n * n);
	unsigned int seed = 7;
	float *da, *db, *dc;
	dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), block(TILE, TILE);

	for (int i = 0; i < n * n; i++) {
		a[i] = (float)(next_random(&seed) % 100) / 10;
		b[i] = (float)(next_random(&seed) % 100) / 10;
	}
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMalloc(&dc, bytes));
	CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
	multiply<<<grid, block>>>(da, db, dc, n);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double want = 0;

			for (int k = 0; k < n; k++)
				want += (double)a[i * n + k] * b[k * n + j];
			ASSERT(fabs(c[i * n + j] - want) <= 1e-4 * want + 1e-4);
		}
	puts("matmul: OK");
}
