/* Functions of libdevice for GPUs that do not provide them: exponentials, logarithms and
 * trigonometric functions as our own series in double precision, each a Taylor series after
 * reduction of the argument. They are weak, so that the device's own replace them, and not
 * inlined, so that the calls remain. */
#ifndef BASALT_DEVICE_SERIES_H
#define BASALT_DEVICE_SERIES_H

#include "basalt_device.h"

#include <__clang_cuda_libdevice_declares.h>

#ifndef BASALT_LIBDEVICE_LINKED /* defined by basalt-clang --libdevice */

#define BASALT_OUTPUTS extern "C" inline __attribute__((device, noinline))
#define BASALT_LIBDEVICE extern "C" inline __attribute__((device, noinline, const))

/* Returns x * 2^n, for n in the range of exponents. It multiplies in two steps, so that
 * subnormal results are correct. */
BASALT_DEVICE double basalt_scale(double x, int n)
{
	int half = n / 2;

	return x * __longlong_as_double((long long)(half + 1023) << 52) * __longlong_as_double((long long)(n - half + 1023) << 52);
}

BASALT_LIBDEVICE double __nv_exp(double x)
{
	double n, r, term = 1, sum = 1;

	if (!(x < 709.79))
		return x != x ? x : __builtin_inf();
	if (x < -745.2)
		return 0;
	n = __builtin_rint(x * 1.4426950408889634);
	r = __nvvm_fma_rn_d(n, -6.93147180369123816490e-01, x);
	r = __nvvm_fma_rn_d(n, -1.90821492927058770002e-10, r);
	for (int i = 1; i < 15; i++)
		sum += term *= r / i;
	return basalt_scale(sum, (int)n);
}

BASALT_LIBDEVICE double __nv_log(double x)
{
	int n = 0;
	long long bits;
	double s, power, sum = 0;

	if (!(x > 0))
		return x == 0 ? -__builtin_inf() : __builtin_nan("");
	if (x == __builtin_inf())
		return x;
	if (x < 2.2250738585072014e-308) {
		x *= 18014398509481984.0;
		n = -54;
	}
	bits = __double_as_longlong(x);
	n += (int)(bits >> 52) - 1023;
	x = __longlong_as_double((bits & 0xfffffffffffffll) | 0x3ff0000000000000ll);
	if (x > 1.4142135623730951) {
		x /= 2;
		n++;
	}
	s = (x - 1) / (x + 1);
	power = s;
	for (int i = 1; i < 25; i += 2, power *= s * s)
		sum += power / i;
	return __nvvm_fma_rn_d((double)n, 6.93147180369123816490e-01, __nvvm_fma_rn_d((double)n, 1.90821492927058770002e-10, 2 * sum));
}

BASALT_DEVICE double basalt_sine(double x)
{
	double term = x, sum = x;

	for (int i = 2; i < 20; i += 2)
		sum += term *= -x * x / (i * (i + 1));
	return sum;
}

BASALT_DEVICE double basalt_cosine(double x)
{
	double term = 1, sum = 1;

	for (int i = 1; i < 20; i += 2)
		sum += term *= -x * x / (i * (i + 1));
	return sum;
}

/* Returns the quadrant of an angle, and reduces *x to the angle in it. It is accurate up to
 * about 10^6. */
BASALT_DEVICE long long basalt_quarter(double *x)
{
	double n = __builtin_rint(*x * 0.63661977236758134);

	*x = __nvvm_fma_rn_d(n, -1.57079632679489656e+00, *x);
	*x = __nvvm_fma_rn_d(n, -6.12323399573676604e-17, *x);
	return (long long)n & 3;
}

BASALT_LIBDEVICE double __nv_sin(double x)
{
	long long q = basalt_quarter(&x);
	double y = q & 1 ? basalt_cosine(x) : basalt_sine(x);

	return q & 2 ? -y : y;
}

BASALT_LIBDEVICE double __nv_cos(double x)
{
	long long q = basalt_quarter(&x);
	double y = q & 1 ? basalt_sine(x) : basalt_cosine(x);

	return (q + 1) & 2 ? -y : y;
}

BASALT_LIBDEVICE double __nv_tan(double x) { return __nv_sin(x) / __nv_cos(x); }

BASALT_LIBDEVICE double __nv_atan(double x)
{
	double a = __builtin_fabs(x), power, sum = 0;
	bool inverse = a > 1;

	if (x != x)
		return x;
	if (inverse)
		a = 1 / a;
	a = a / (1 + __nvvm_sqrt_rn_d(1 + a * a));
	a = a / (1 + __nvvm_sqrt_rn_d(1 + a * a));
	power = a;
	for (int i = 1; i < 24; i += 2, power *= -a * a)
		sum += power / i;
	sum *= 4;
	return __builtin_copysign(inverse ? 1.5707963267948966 - sum : sum, x);
}

BASALT_LIBDEVICE double __nv_atan2(double y, double x)
{
	if (x > 0)
		return __nv_atan(y / x);
	if (x < 0)
		return __nv_atan(y / x) + __builtin_copysign(3.14159265358979312, y);
	return y == 0 ? y : __builtin_copysign(1.5707963267948966, y);
}

BASALT_LIBDEVICE double __nv_asin(double x) { return __nv_atan2(x, __nvvm_sqrt_rn_d((1 - x) * (1 + x))); }
BASALT_LIBDEVICE double __nv_acos(double x) { return __nv_atan2(__nvvm_sqrt_rn_d((1 - x) * (1 + x)), x); }
BASALT_LIBDEVICE double __nv_exp2(double x)
{
	double n = __builtin_rint(x);

	if (!(__builtin_fabs(x) < 1100))
		return __nv_exp(x);
	return basalt_scale(__nv_exp((x - n) * 0.69314718055994531), (int)n);
}

/* Functions near 0, where __nv_exp(x) - 1 and __nv_log(1 + x) would lose precision. */
BASALT_LIBDEVICE double __nv_expm1(double x)
{
	double term = x, sum = x;

	if (!(__builtin_fabs(x) < 0.5))
		return __nv_exp(x) - 1;
	for (int i = 2; i < 16; i++)
		sum += term *= x / i;
	return sum;
}

BASALT_LIBDEVICE double __nv_log1p(double x)
{
	double s = x / (2 + x), power = s, sum = 0;

	if (!(__builtin_fabs(x) < 0.4))
		return __nv_log(1 + x);
	for (int i = 1; i < 29; i += 2, power *= s * s)
		sum += power / i;
	return 2 * sum;
}

BASALT_LIBDEVICE double __nv_log2(double x) { return __nv_log(x) * 1.4426950408889634; }
BASALT_LIBDEVICE double __nv_log10(double x) { return __nv_log(x) * 0.43429448190325182; }
BASALT_LIBDEVICE double __nv_cosh(double x) { return (__nv_exp(x) + __nv_exp(-x)) / 2; }

BASALT_LIBDEVICE double __nv_sinh(double x)
{
	double e = __nv_expm1(__builtin_fabs(x));

	return __builtin_copysign((e + e / (e + 1)) / 2, x);
}

BASALT_LIBDEVICE double __nv_tanh(double x)
{
	double e = __nv_expm1(2 * __builtin_fabs(x));

	return __builtin_copysign(__builtin_fabs(x) > 20 ? 1.0 : e / (e + 2), x);
}

BASALT_LIBDEVICE double __nv_hypot(double x, double y) { return __nvvm_sqrt_rn_d(x * x + y * y); }
BASALT_LIBDEVICE double __nv_cbrt(double x) { return x == 0 ? x : __builtin_copysign(__nv_exp(__nv_log(__builtin_fabs(x)) / 3), x); }

BASALT_LIBDEVICE double __nv_pow(double x, double y)
{
	bool whole = y == __builtin_trunc(y), odd = whole && __builtin_fabs(y) < 9007199254740992.0 && ((long long)y & 1);
	double r;

	if (y == 0 || x == 1)
		return 1;
	if (x == 0)
		return y > 0 ? (odd ? x : 0) : (odd ? __builtin_copysign(__builtin_inf(), x) : __builtin_inf());
	if (x < 0 && !whole)
		return __builtin_nan("");
	r = __nv_exp(y * __nv_log(__builtin_fabs(x)));
	return x < 0 && odd ? -r : r;
}

BASALT_LIBDEVICE double __nv_fmod(double x, double y)
{
	double r = __builtin_fabs(x), d = __builtin_fabs(y);

	if (!(d > 0) || r == __builtin_inf())
		return __builtin_nan("");
	while (r >= d) { /* each round subtracts at least half of the rest */
		double part = d;

		while (part <= r / 2)
			part *= 2;
		r -= part;
	}
	return __builtin_copysign(r, x);
}

/* The functions of float return rounded results of double. */
#define BASALT_ROUNDED(name) \
	BASALT_LIBDEVICE float __nv_##name##f(float x) { return (float)__nv_##name((double)x); }
#define BASALT_ROUNDED2(name) \
	BASALT_LIBDEVICE float __nv_##name##f(float x, float y) { return (float)__nv_##name((double)x, (double)y); }
BASALT_ROUNDED(exp)
BASALT_ROUNDED(exp2)
BASALT_ROUNDED(expm1)
BASALT_ROUNDED(log)
BASALT_ROUNDED(log2)
BASALT_ROUNDED(log10)
BASALT_ROUNDED(log1p)
BASALT_ROUNDED(sin)
BASALT_ROUNDED(cos)
BASALT_ROUNDED(tan)
BASALT_ROUNDED(asin)
BASALT_ROUNDED(acos)
BASALT_ROUNDED(atan)
BASALT_ROUNDED(sinh)
BASALT_ROUNDED(cosh)
BASALT_ROUNDED(tanh)
BASALT_ROUNDED(cbrt)
BASALT_ROUNDED2(atan2)
BASALT_ROUNDED2(pow)
BASALT_ROUNDED2(fmod)
BASALT_ROUNDED2(hypot)

BASALT_LIBDEVICE double __nv_rsqrt(double x) { return 1 / __nvvm_sqrt_rn_d(x); }
BASALT_LIBDEVICE float __nv_rsqrtf(float x) { return 1 / __nvvm_sqrt_rn_f(x); }
BASALT_OUTPUTS void __nv_sincos(double x, double *s, double *c) { *s = __nv_sin(x), *c = __nv_cos(x); }
BASALT_OUTPUTS void __nv_sincosf(float x, float *s, float *c) { *s = __nv_sinf(x), *c = __nv_cosf(x); }

#endif

#endif
