// Compares the mathematical functions of the headers with the host's library.
#include <algorithm>
#include <cmath>

#include "check.h"

#define ONE(name, least, most, ulps) ONE_(name, name##f, least, most, ulps)
#define FUNCTIONS \
	ONE(exp, -80, 80, 4) ONE(exp2, -100, 100, 4) ONE(expm1, -5, 5, 4) ONE(log, 1e-30, 1e30, 4) ONE(log2, 1e-30, 1e30, 4) \
	ONE(log10, 1e-30, 1e30, 4) ONE(log1p, -0.9, 9, 4) ONE(sin, -100, 100, 4) ONE(cos, -100, 100, 4) ONE(tan, -1.4, 1.4, 6) \
	ONE(asin, -1, 1, 6) ONE(acos, -0.99, 0.99, 6) ONE(atan, -50, 50, 4) ONE(sinh, -20, 20, 8) ONE(cosh, -20, 20, 8) \
	ONE(tanh, -10, 10, 8) ONE(sqrt, 0, 1e10, 0) ONE(cbrt, -1e6, 1e6, 30) ONE(floor, -9, 9, 0) ONE(ceil, -9, 9, 0) \
	ONE(trunc, -9, 9, 0) ONE(round, -9, 9, 0) ONE(rint, -9, 9, 0) ONE(fabs, -9, 9, 0)

enum {
#define ONE_(name, namef, least, most, ulps) F_##name,
	FUNCTIONS
#undef ONE_
	COUNT
};

__global__ void apply(int which, const double *in, double *out, float *outf)
{
	int i = threadIdx.x;

	switch (which) {
#define ONE_(name, namef, least, most, ulps) \
	case F_##name: \
		out[i] = name(in[i]); \
		outf[i] = namef((float)in[i]); \
		break;
		FUNCTIONS
#undef ONE_
	}
}

__global__ void two(const double *x, const double *y, double *out)
{
	int i = threadIdx.x;

	out[4 * i] = pow(x[i], y[i]);
	out[4 * i + 1] = fmod(x[i], y[i]);
	out[4 * i + 2] = atan2(x[i], y[i]);
	out[4 * i + 3] = hypot(x[i], y[i]);
}

// The functions of C++, for every type, with and without std.
template <class T> static __host__ __device__ double names(T x, int i)
{
	return exp(x) + std::exp(x) + sqrt(x) + std::sqrt(x) + pow(x, (T)2) + std::pow(x, 2) + abs(x) + std::abs(x) + fabs(x) + std::sin(x) +
	       std::floor(x) + log(x) + std::max(x, (T)2) + max(i, 7) + abs(i) + exp(i) + std::fmin(x, (T)1);
}

__global__ void call_names(float f, double d, int i, double *out)
{
	out[0] = names(f, i);
	out[1] = names(d, i);
}

static bool near(double got, double want, double epsilon, double ulps)
{
	return got == want || fabs(got - want) <= ulps * epsilon * fabs(want) + 1e-300;
}

int main()
{
	const int n = 101;
	double x[n], y[n], out[4 * n], *dx, *dy, *dout;
	float outf[n], *doutf;

	CHECK(cudaMalloc(&dx, sizeof x));
	CHECK(cudaMalloc(&dy, sizeof y));
	CHECK(cudaMalloc(&dout, sizeof out));
	CHECK(cudaMalloc(&doutf, sizeof outf));
#define ONE_(name, namef, least, most, ulps) \
	for (int i = 0; i < n; i++) \
		x[i] = (least) + ((most) - (least)) * i / 100.0; \
	CHECK(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice)); \
	apply<<<1, n>>>(F_##name, dx, dout, doutf); \
	CHECK(cudaMemcpy(out, dout, n * sizeof *out, cudaMemcpyDeviceToHost)); \
	CHECK(cudaMemcpy(outf, doutf, sizeof outf, cudaMemcpyDeviceToHost)); \
	for (int i = 0; i < n; i++) \
		if (!near(out[i], name(x[i]), 2.3e-16, ulps) || !near(outf[i], name((double)(float)x[i]), 1.2e-7, 1)) { \
			fprintf(stderr, #name "(%.17g) = %.17g and %.9g, want %.17g\n", x[i], out[i], outf[i], name(x[i])); \
			return 1; \
		}
	FUNCTIONS
#undef ONE_
	for (int i = 0; i < n; i++) {
		x[i] = 0.3 + i * 1.7;
		y[i] = 3.1 - i * 0.07;
	}
	CHECK(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dy, y, sizeof y, cudaMemcpyHostToDevice));
	two<<<1, n>>>(dx, dy, dout);
	CHECK(cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		ASSERT(near(out[4 * i], pow(x[i], y[i]), 2.3e-16, 100));
		ASSERT(fabs(out[4 * i + 1] - fmod(x[i], y[i])) < 1e-12);
		ASSERT(near(out[4 * i + 2], atan2(x[i], y[i]), 2.3e-16, 8));
		ASSERT(near(out[4 * i + 3], hypot(x[i], y[i]), 2.3e-16, 4));
	}
	call_names<<<1, 1>>>(1.5f, 2.5, -3, dout);
	CHECK(cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost));
	ASSERT(near(out[0], names(1.5f, -3), 1e-7, 4) && near(out[1], names(2.5, -3), 2.3e-16, 8));
	puts("math: OK");
}
