// Kernels of matrices and of pairs.
#include <stdio.h>
#include <stdlib.h>

#include "cublas_v2.h"
#include "kernels.h"

// Tiles of 16 × 16 in shared memory.
__global__ void sgemm_kernel(const float *a, const float *b, float *out, unsigned n)
{
	__shared__ float ta[16][16], tb[16][16];
	unsigned x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
	float sum = 0;

	for (unsigned t = 0; t < n; t += 16) {
		ta[y][x] = a[row * n + t + x];
		tb[y][x] = b[(t + y) * n + column];
		__syncthreads();
		for (unsigned k = 0; k < 16; k++)
			sum = fmaf(ta[y][k], tb[k][x], sum);
		__syncthreads();
	}
	out[row * n + column] = sum;
}

void sgemm(const struct job *j)
{
	sgemm_kernel<<<dim3(j->n / 16, j->n / 16), dim3(16, 16)>>>((const float *)j->a, (const float *)j->b, (float *)j->out, j->n);
}

// The library's matrices are stored by columns, so it multiplies the transposes, and gets the
// transposed product.
void cublas(const struct job *j)
{
	static cublasHandle_t handle;
	const float one = 1, zero = 0;
	int n = (int)j->n;

	if ((!handle && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) ||
	    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, (const float *)j->b, n, (const float *)j->a, n, &zero, (float *)j->out, n) !=
		    CUBLAS_STATUS_SUCCESS) {
		fprintf(stderr, "bench-soft: cublasSgemm failed\n");
		exit(1);
	}
}

__global__ void stencil_kernel(const float *in, float *out, unsigned n)
{
	unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, i = y * n + x;

	if (x >= n || y >= n)
		return;
	if (x == 0 || y == 0 || x == n - 1 || y == n - 1)
		out[i] = in[i];
	else
		out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}

void stencil(const struct job *j)
{
	stencil_kernel<<<dim3((j->n + 31) / 32, (j->n + 7) / 8), dim3(32, 8)>>>((const float *)j->a, (float *)j->out, j->n);
}

// The threads of a block read 128 bodies at a time together.
__global__ void nbody_kernel(const float4 *bodies, float4 *out, unsigned n)
{
	__shared__ float4 tile[128];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float4 me = bodies[i];
	float x = 0, y = 0, z = 0;

	for (unsigned start = 0; start < n; start += 128) {
		tile[threadIdx.x] = bodies[start + threadIdx.x];
		__syncthreads();
		for (unsigned k = 0; k < 128; k++) {
			float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
			float r = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f))));
			float s = tile[k].w * r * r * r;

			x = fmaf(dx, s, x);
			y = fmaf(dy, s, y);
			z = fmaf(dz, s, z);
		}
		__syncthreads();
	}
	out[i] = make_float4(x, y, z, 0);
}

void nbody(const struct job *j)
{
	nbody_kernel<<<j->n / 128, 128>>>((const float4 *)j->a, (float4 *)j->out, j->n);
}

// Combines the values of 128 threads by f, a maximum or a sum.
template <class F> static __device__ float over_block(float v, float *line, F f)
{
	line[threadIdx.x] = v;
	__syncthreads();
	for (unsigned half = 64; half; half /= 2) {
		if (threadIdx.x < half)
			line[threadIdx.x] = f(line[threadIdx.x], line[threadIdx.x + half]);
		__syncthreads();
	}
	v = line[0];
	__syncthreads();
	return v;
}

static __device__ float greatest_of(float a, float b) { return fmaxf(a, b); }
static __device__ float sum_of(float a, float b) { return a + b; }

// One block for each row.
__global__ void softmax_kernel(const float *in, float *out, unsigned n)
{
	__shared__ float line[128];
	const float *row = in + blockIdx.x * n;
	float most = -INFINITY, sum = 0;

	for (unsigned i = threadIdx.x; i < n; i += 128)
		most = fmaxf(most, row[i]);
	most = over_block(most, line, greatest_of);
	for (unsigned i = threadIdx.x; i < n; i += 128)
		sum += out[blockIdx.x * n + i] = expf(row[i] - most);
	sum = 1 / over_block(sum, line, sum_of);
	for (unsigned i = threadIdx.x; i < n; i += 128)
		out[blockIdx.x * n + i] *= sum;
}

void softmax(const struct job *j) { softmax_kernel<<<j->n, 128>>>((const float *)j->a, (float *)j->out, j->n); }

// One block for each query, which computes its scores in shared memory, and then the weighted mean
// of the values.
__global__ void attention_kernel(const float *queries, const float *keys, const float *values, float *out, unsigned n)
{
	extern __shared__ float scores[];
	__shared__ float line[128], query[HEAD];
	float most = -INFINITY, sum = 0;

	if (threadIdx.x < HEAD)
		query[threadIdx.x] = queries[blockIdx.x * HEAD + threadIdx.x];
	__syncthreads();
	for (unsigned k = threadIdx.x; k < n; k += 128) {
		float dot = 0;

		for (unsigned d = 0; d < HEAD; d++)
			dot = fmaf(query[d], keys[k * HEAD + d], dot);
		most = fmaxf(most, scores[k] = dot * 0.125f);
	}
	most = over_block(most, line, greatest_of);
	for (unsigned k = threadIdx.x; k < n; k += 128)
		sum += scores[k] = expf(scores[k] - most);
	sum = over_block(sum, line, sum_of);
	if (threadIdx.x < HEAD) {
		float mean = 0;

		for (unsigned k = 0; k < n; k++)
			mean = fmaf(scores[k], values[k * HEAD + threadIdx.x], mean);
		out[blockIdx.x * HEAD + threadIdx.x] = mean / sum;
	}
}

void attention(const struct job *j)
{
	const float *keys = (const float *)j->b;

	attention_kernel<<<j->n, 128, j->n * sizeof(float)>>>((const float *)j->a, keys, keys + j->n * HEAD, (float *)j->out, j->n);
}
