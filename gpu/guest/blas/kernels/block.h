// The element type of a module, the names of its kernels, and sums over a block.
#pragma once
#include "types.h"

#if defined MODULE_f32
typedef float T;
#define NAME(kernel) kernel##_f32
#elif defined MODULE_f64
typedef double T;
#define NAME(kernel) kernel##_f64
#elif defined MODULE_c32
typedef complex32 T;
#define NAME(kernel) kernel##_c32
#elif defined MODULE_c64
typedef complex64 T;
#define NAME(kernel) kernel##_c64
#elif defined MODULE_f16
typedef half T;
#define NAME(kernel) kernel##_f16
#elif defined MODULE_bf16
typedef bfloat T;
#define NAME(kernel) kernel##_bf16
#endif
typedef type<T>::Wide W;
typedef type<T>::Real R;

struct Add {
	template <class V> static __device__ V of(V a, V b) { return plus(a, b); }
};
struct Greater {
	template <class V> static __device__ V of(V a, V b) { return a > b ? a : b; }
};

// Combines the values of all VECTOR_THREADS threads of a block, and returns the result in all of
// them. The order of operations is always the same.
template <class F, class V> DEVICE V over_block(V v, V *line)
{
	int t = tid_x;

	line[t] = v;
	__syncthreads();
	for (int half = VECTOR_THREADS / 2; half > 0; half /= 2) {
		if (t < half)
			line[t] = F::of(line[t], line[t + half]);
		__syncthreads();
	}
	v = line[0];
	__syncthreads();
	return v;
}

DEVICE double magnitude(double v) { return v < 0 ? -v : v; }
// Returns |re| + |im|, by which BLAS compares and adds complex numbers.
template <class V> DEVICE double size_of(V v) { return magnitude(v); }
template <class V> DEVICE double size_of(complex<V> v) { return magnitude(v.x) + magnitude(v.y); }

DEVICE float quotient(float a, float b) { return a / b; }
DEVICE double quotient(double a, double b) { return a / b; }
// Divides by the larger part of b first, so that its squares do not overflow.
template <class V> DEVICE complex<V> quotient(complex<V> a, complex<V> b)
{
	bool turned = magnitude(b.x) < magnitude(b.y);
	V p = turned ? b.y : b.x, q = turned ? b.x : b.y, ratio = q / p, whole = mad(q, ratio, p);
	V x = turned ? mad(a.x, ratio, a.y) : mad(a.y, ratio, a.x), y = turned ? mad(a.y, ratio, -a.x) : mad(-a.x, ratio, a.y);

	return {x / whole, y / whole};
}
