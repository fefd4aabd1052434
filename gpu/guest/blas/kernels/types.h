// The parts of CUDA C++ that the kernels need, defined by clang's builtins, and the types that
// they compute with.
#pragma once
#include "../src/args.h"

#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define DEVICE static inline __attribute__((device, always_inline))
#define KERNEL(threads) extern "C" __attribute__((global, launch_bounds(threads))) void
#define UNROLL _Pragma("unroll")
#define tid_x ((int)__nvvm_read_ptx_sreg_tid_x())
#define tid_y ((int)__nvvm_read_ptx_sreg_tid_y())
#define threads_y ((int)__nvvm_read_ptx_sreg_ntid_y())
#define block_x ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define block_y ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define block_z ((int)__nvvm_read_ptx_sreg_ctaid_z())
#define grid_x ((int)__nvvm_read_ptx_sreg_nctaid_x())
#define grid_z ((int)__nvvm_read_ptx_sreg_nctaid_z())
typedef long long s64;

struct half { unsigned short bits; };
struct bfloat { unsigned short bits; };
template <class R> struct complex { R x, y; };
typedef complex<float> complex32;
typedef complex<double> complex64;

// Wide is the type that a type is computed with, Real the type of its absolute value.
template <class T> struct type { typedef T Wide; typedef T Real; };
template <> struct type<half> { typedef float Wide; typedef float Real; };
template <> struct type<bfloat> { typedef float Wide; typedef float Real; };
template <> struct type<signed char> { typedef int Wide; typedef int Real; };
template <class R> struct type<complex<R>> { typedef complex<R> Wide; typedef R Real; };

DEVICE float widen(half v)
{
	_Float16 h;

	__builtin_memcpy(&h, &v, sizeof h);
	return h;
}
DEVICE float widen(bfloat v)
{
	unsigned bits = (unsigned)v.bits << 16;
	float f;

	__builtin_memcpy(&f, &bits, sizeof f);
	return f;
}
DEVICE int widen(signed char v) { return v; }
template <class T> DEVICE T widen(T v) { return v; }

template <class T> struct narrow {
	template <class W> static __device__ T of(W v) { return (T)v; }
};
template <class R> struct narrow<complex<R>> {
	static __device__ complex<R> of(complex<R> v) { return v; }
};
template <> struct narrow<half> {
	static __device__ half of(float v)
	{
		_Float16 h = (_Float16)v;
		half r;

		__builtin_memcpy(&r, &h, sizeof r);
		return r;
	}
};
// Rounds to nearest, ties to even. A NaN remains a NaN.
template <> struct narrow<bfloat> {
	static __device__ bfloat of(float v)
	{
		unsigned bits;

		__builtin_memcpy(&bits, &v, sizeof bits);
		bits = v != v ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
		return {(unsigned short)(bits >> 16)};
	}
};

// Returns a b + c, which is computed once for each term of a product.
DEVICE int mad(int a, int b, int c) { return (int)((unsigned)a * (unsigned)b + (unsigned)c); }
DEVICE float mad(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double mad(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class R> DEVICE complex<R> mad(complex<R> a, complex<R> b, complex<R> c)
{
	return {mad(-a.y, b.y, mad(a.x, b.x, c.x)), mad(a.y, b.x, mad(a.x, b.y, c.y))};
}

DEVICE int times(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
DEVICE float times(float a, float b) { return a * b; }
DEVICE double times(double a, double b) { return a * b; }
template <class R> DEVICE complex<R> times(complex<R> a, complex<R> b)
{
	return {mad(-a.y, b.y, a.x * b.x), mad(a.y, b.x, a.x * b.y)};
}

template <class T> DEVICE T plus(T a, T b) { return a + b; }
template <class R> DEVICE complex<R> plus(complex<R> a, complex<R> b) { return {a.x + b.x, a.y + b.y}; }

template <class T> DEVICE T negative(T a) { return -a; }
template <class R> DEVICE complex<R> negative(complex<R> a) { return {-a.x, -a.y}; }

template <class T> DEVICE T conjugate(T a, int) { return a; }
template <class R> DEVICE complex<R> conjugate(complex<R> a, int yes) { return {a.x, yes ? -a.y : a.y}; }

template <class T> DEVICE bool is_zero(T a) { return a == 0; }
template <class R> DEVICE bool is_zero(complex<R> a) { return a.x == 0 && a.y == 0; }

template <class T> struct number {
	static __device__ T of(double x, double) { return (T)x; }
};
template <class R> struct number<complex<R>> {
	static __device__ complex<R> of(double x, double y) { return {(R)x, (R)y}; }
};

template <class T> DEVICE T scalar(const blas_scalar &s)
{
	if (!s.device)
		return number<T>::of(s.value[0], s.value[1]);
	if (s.half)
		return number<T>::of(widen(*(const half *)s.device), 0);
	return *(const T *)s.device;
}

// Returns the beginning of matrix z of a batch.
template <class T> DEVICE T *matrix(const blas_matrix &m, int z, int arrays)
{
	if (arrays)
		return ((T *const *)m.p)[z] + m.offset;
	return (T *)m.p + z * m.batch;
}

DEVICE int least(int a, int b) { return a < b ? a : b; }
