// Heat conduction in a plate: two buffers with a pitch, copies and fills of rectangles.
#include <math.h>

#include <utility>
#include <vector>

#include "check.h"

__global__ void step(const char *from, char *to, size_t pitch, int w, int h)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	const float *row = (const float *)(from + y * pitch);

	if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
		return;
	((float *)(to + y * pitch))[x] =
		0.25f * (row[x - 1] + row[x + 1] + ((const float *)(from + (y - 1) * pitch))[x] + ((const float *)(from + (y + 1) * pitch))[x]);
}

int main()
{
	const int w = 37, h = 29, steps = 10;
	std::vector<float> now(w * h), next, got(w * h);
	size_t pitch, pitch2;
	char *a, *b;

	for (int x = 0; x < w; x++)
		now[x] = 100.0f + x;
	next = now;
	CHECK(cudaMallocPitch(&a, &pitch, w * sizeof(float), h));
	CHECK(cudaMallocPitch(&b, &pitch2, w * sizeof(float), h));
	ASSERT(pitch == pitch2 && pitch >= w * sizeof(float));
	CHECK(cudaMemset2D(b, pitch, 0x7f, w * sizeof(float), h));
	CHECK(cudaMemcpy2D(a, pitch, now.data(), w * sizeof(float), w * sizeof(float), h, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(b, pitch, a, pitch, w * sizeof(float), h, cudaMemcpyDeviceToDevice));
	for (int i = 0; i < steps; i++, std::swap(a, b), std::swap(now, next)) {
		step<<<dim3(3, 4), dim3(16, 8)>>>(a, b, pitch, w, h);
		for (int y = 1; y < h - 1; y++)
			for (int x = 1; x < w - 1; x++)
				next[y * w + x] = 0.25f * (now[y * w + x - 1] + now[y * w + x + 1] + now[(y - 1) * w + x] + now[(y + 1) * w + x]);
	}
	CHECK(cudaMemcpy2D(got.data(), w * sizeof(float), a, pitch, w * sizeof(float), h, cudaMemcpyDeviceToHost));
	for (int i = 0; i < w * h; i++)
		ASSERT(fabsf(got[i] - now[i]) < 1e-3f);
	WANT(cudaMemcpy2D(a, 8, now.data(), w, w, h, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
	puts("stencil: OK");
}
