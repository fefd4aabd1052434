// Template kernels with functions as arguments, every way to launch a kernel, and queries of
// kernels.
#include <channel_descriptor.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <device_functions.h>
#include <device_launch_parameters.h>
#include <string.h>
#include <texture_types.h>

#include <vector>

#include "check.h"

struct square {
	template <class T> __device__ T operator()(T v) const { return v * v; }
};
struct affine {
	double a, b;
	__device__ double operator()(double v) const { return a * v + b; }
};

template <class T, class F> __global__ void transform(T *v, int n, F f)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		v[i] = f(v[i]);
}

__global__ void __launch_bounds__(64) empty() {}

template <class T, class F> static void run(F f, F host, int way)
{
	const int n = 1000;
	std::vector<T> v(n), got(n);
	cudaLaunchConfig_t config = {dim3(8), dim3(128), 0, nullptr, nullptr, 0};
	int count = n;
	T *dev;
	void *args[] = {&dev, &count, &f};

	for (int i = 0; i < n; i++)
		v[i] = (T)i;
	CHECK(cudaMalloc(&dev, n * sizeof(T)));
	CHECK(cudaMemcpy(dev, v.data(), n * sizeof(T), cudaMemcpyDefault));
	if (way == 0)
		transform<T, F><<<8, 128>>>(dev, n, f);
	else if (way == 1)
		CHECK(cudaLaunchKernel(transform<T, F>, dim3(8), dim3(128), args));
	else if (way == 2)
		CHECK(cudaLaunchKernelEx(&config, transform<T, F>, dev, n, f));
	else
		CHECK(cudaLaunchCooperativeKernel(transform<T, F>, dim3(4), dim3(256), args));
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(got.data(), dev, n * sizeof(T), cudaMemcpyDefault));
	for (int i = 0; i < n; i++) {
		T want = (T)i;

		if constexpr (sizeof(T) == sizeof(double))
			want = host.a * want + host.b;
		else
			want = want * want;
		ASSERT(got[i] == want);
	}
	CHECK(cudaFree(dev));
}

int main()
{
	affine f = {0.5, 3};
	struct cudaFuncAttributes a;
	int blocks, grid, block, cooperative;
	const char *name;
	cudaFunction_t function;
	cudaKernel_t kernel;

	run<int>(square(), square(), 0);
	run<float>(square(), square(), 1);
	run<double>(f, f, 2);
	run<double>(f, f, 1);
	CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
	if (cooperative)
		run<float>(square(), square(), 3);
	else
		WANT(cudaLaunchCooperativeKernel(empty, dim3(1), dim3(64), nullptr), cudaErrorNotSupported);
	empty<<<3, 64>>>();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFuncGetAttributes(&a, empty));
	ASSERT(a.maxThreadsPerBlock >= 64 && a.maxThreadsPerBlock <= 1024 && a.sharedSizeBytes == 0);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 64, 0));
	ASSERT(blocks > 0);
	CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, transform<int, square>));
	ASSERT(grid > 0 && block > 0 && block <= 1024);
	CHECK(cudaFuncGetName(&name, (const void *)empty));
	ASSERT(strcmp(name, "_Z5emptyv") == 0);
	CHECK(cudaGetFuncBySymbol(&function, (const void *)empty));
	ASSERT(function != nullptr);
	CHECK(cudaGetKernel(&kernel, (const void *)empty));
	CHECK(cudaLaunchKernel((const void *)kernel, dim3(2), dim3(64), nullptr, 0, nullptr));
	CHECK(cudaDeviceSynchronize());
	WANT(cudaGetKernel(&kernel, nullptr), cudaErrorInvalidDeviceFunction);
	WANT(cudaLaunchKernel((const void *)nullptr, dim3(2), dim3(64), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
	puts("templates: OK");
}
