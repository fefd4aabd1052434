/* Mathematics of device code. Everything that clang can express is the GPU's
 * own instruction; exponentials, logarithms and angles are series in double
 * precision (of our own: each a Taylor series after reduction of the argument),
 * and the float forms are these rounded. The forms that begin with __ are fast
 * and approximate. */
#ifndef BASALT_DEVICE_MATH_H
#define BASALT_DEVICE_MATH_H

#include "basalt_device.h"

#define BASALT_MATH1(name, builtin) \
	BASALT_DEVICE double name(double x) { return builtin(x); } \
	BASALT_DEVICE float name##f(float x) { return builtin##f(x); } \
	BASALT_DEVICE float name(float x) { return builtin##f(x); }
#define BASALT_MATH2(name, builtin) \
	BASALT_DEVICE double name(double x, double y) { return builtin(x, y); } \
	BASALT_DEVICE float name##f(float x, float y) { return builtin##f(x, y); } \
	BASALT_DEVICE float name(float x, float y) { return builtin##f(x, y); }
BASALT_MATH1(fabs, __builtin_fabs)
BASALT_MATH1(floor, __builtin_floor)
BASALT_MATH1(ceil, __builtin_ceil)
BASALT_MATH1(trunc, __builtin_trunc)
BASALT_MATH1(rint, __builtin_rint)
BASALT_MATH1(nearbyint, __builtin_nearbyint)
BASALT_MATH2(fmin, __builtin_fmin)
BASALT_MATH2(fmax, __builtin_fmax)
BASALT_MATH2(copysign, __builtin_copysign)
BASALT_DEVICE double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
BASALT_DEVICE float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
BASALT_DEVICE float sqrt(float x) { return __nvvm_sqrt_rn_f(x); }
BASALT_DEVICE double rsqrt(double x) { return 1 / __nvvm_sqrt_rn_d(x); }
BASALT_DEVICE float rsqrtf(float x) { return 1 / __nvvm_sqrt_rn_f(x); }
BASALT_DEVICE double fma(double x, double y, double z) { return __nvvm_fma_rn_d(x, y, z); }
BASALT_DEVICE float fma(float x, float y, float z) { return __nvvm_fma_rn_f(x, y, z); }
BASALT_DEVICE float fmaf(float x, float y, float z) { return __nvvm_fma_rn_f(x, y, z); }
BASALT_DEVICE float __fmaf_rn(float x, float y, float z) { return __nvvm_fma_rn_f(x, y, z); }
BASALT_DEVICE float __fdividef(float x, float y) { return __nvvm_div_approx_f(x, y); }
BASALT_DEVICE float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
BASALT_DEVICE float __expf(float x) { return __nvvm_ex2_approx_f(x * 1.44269504f); }
BASALT_DEVICE float __logf(float x) { return __nvvm_lg2_approx_f(x) * 0.693147181f; }
BASALT_DEVICE float __log2f(float x) { return __nvvm_lg2_approx_f(x); }
BASALT_DEVICE float __sinf(float x) { return __nvvm_sin_approx_f(x); }
BASALT_DEVICE float __cosf(float x) { return __nvvm_cos_approx_f(x); }
BASALT_DEVICE float __powf(float x, float y) { return __nvvm_ex2_approx_f(y * __nvvm_lg2_approx_f(x)); }
BASALT_DEVICE double round(double x) { return copysign(floor(fabs(x) + (fabs(x) < 4503599627370496.0 ? 0.5 : 0)), x); }
BASALT_DEVICE float round(float x) { return (float)round((double)x); }
BASALT_DEVICE float roundf(float x) { return (float)round((double)x); }

/* x * 2^n, for n of the size that exponents have; in two steps, so that a result
 * below the least normal number is right. */
BASALT_DEVICE double basalt_scale(double x, int n)
{
	int half = n / 2;

	return x * __longlong_as_double((long long)(half + 1023) << 52) * __longlong_as_double((long long)(n - half + 1023) << 52);
}

BASALT_DEVICE double exp(double x)
{
	double n, r, term = 1, sum = 1;

	if (!(x < 709.79))
		return x != x ? x : __builtin_inf();
	if (x < -745.2)
		return 0;
	n = rint(x * 1.4426950408889634);
	r = fma(n, -6.93147180369123816490e-01, x);
	r = fma(n, -1.90821492927058770002e-10, r);
	for (int i = 1; i < 15; i++)
		sum += term *= r / i;
	return basalt_scale(sum, (int)n);
}

BASALT_DEVICE double log(double x)
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
	return fma((double)n, 6.93147180369123816490e-01, fma((double)n, 1.90821492927058770002e-10, 2 * sum));
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

/* The quarter of the circle, and the angle in it. Good up to about 10^6. */
BASALT_DEVICE long long basalt_quarter(double *x)
{
	double n = rint(*x * 0.63661977236758134);

	*x = fma(n, -1.57079632679489656e+00, *x);
	*x = fma(n, -6.12323399573676604e-17, *x);
	return (long long)n & 3;
}

BASALT_DEVICE double sin(double x)
{
	long long q = basalt_quarter(&x);
	double y = q & 1 ? basalt_cosine(x) : basalt_sine(x);

	return q & 2 ? -y : y;
}

BASALT_DEVICE double cos(double x)
{
	long long q = basalt_quarter(&x);
	double y = q & 1 ? basalt_sine(x) : basalt_cosine(x);

	return (q + 1) & 2 ? -y : y;
}

BASALT_DEVICE double tan(double x) { return sin(x) / cos(x); }
BASALT_DEVICE void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
BASALT_DEVICE void sincosf(float x, float *s, float *c) { *s = (float)sin((double)x), *c = (float)cos((double)x); }

BASALT_DEVICE double atan(double x)
{
	double a = fabs(x), power, sum = 0;
	bool inverse = a > 1;

	if (x != x)
		return x;
	if (inverse)
		a = 1 / a;
	a = a / (1 + sqrt(1 + a * a));
	a = a / (1 + sqrt(1 + a * a));
	power = a;
	for (int i = 1; i < 24; i += 2, power *= -a * a)
		sum += power / i;
	sum *= 4;
	return copysign(inverse ? 1.5707963267948966 - sum : sum, x);
}

BASALT_DEVICE double atan2(double y, double x)
{
	if (x > 0)
		return atan(y / x);
	if (x < 0)
		return atan(y / x) + copysign(3.14159265358979312, y);
	return y == 0 ? y : copysign(1.5707963267948966, y);
}

BASALT_DEVICE double asin(double x) { return atan2(x, sqrt((1 - x) * (1 + x))); }
BASALT_DEVICE double acos(double x) { return atan2(sqrt((1 - x) * (1 + x)), x); }
BASALT_DEVICE double exp2(double x)
{
	double n = rint(x);

	if (!(fabs(x) < 1100))
		return exp(x);
	return basalt_scale(exp((x - n) * 0.69314718055994531), (int)n);
}

/* Near 0, where exp(x) - 1 and log(1 + x) would lose what counts. */
BASALT_DEVICE double expm1(double x)
{
	double term = x, sum = x;

	if (!(fabs(x) < 0.5))
		return exp(x) - 1;
	for (int i = 2; i < 16; i++)
		sum += term *= x / i;
	return sum;
}

BASALT_DEVICE double log1p(double x)
{
	double s = x / (2 + x), power = s, sum = 0;

	if (!(fabs(x) < 0.4))
		return log(1 + x);
	for (int i = 1; i < 29; i += 2, power *= s * s)
		sum += power / i;
	return 2 * sum;
}

BASALT_DEVICE double log2(double x) { return log(x) * 1.4426950408889634; }
BASALT_DEVICE double log10(double x) { return log(x) * 0.43429448190325182; }
BASALT_DEVICE double cosh(double x) { return (exp(x) + exp(-x)) / 2; }

BASALT_DEVICE double sinh(double x)
{
	double e = expm1(fabs(x));

	return copysign((e + e / (e + 1)) / 2, x);
}

BASALT_DEVICE double tanh(double x)
{
	double e = expm1(2 * fabs(x));

	return copysign(fabs(x) > 20 ? 1.0 : e / (e + 2), x);
}

BASALT_DEVICE double hypot(double x, double y) { return sqrt(x * x + y * y); }
BASALT_DEVICE double cbrt(double x) { return x == 0 ? x : copysign(exp(log(fabs(x)) / 3), x); }

BASALT_DEVICE double pow(double x, double y)
{
	bool whole = y == trunc(y), odd = whole && fabs(y) < 9007199254740992.0 && ((long long)y & 1);
	double r;

	if (y == 0 || x == 1)
		return 1;
	if (x == 0)
		return y > 0 ? (odd ? x : 0) : (odd ? copysign(__builtin_inf(), x) : __builtin_inf());
	if (x < 0 && !whole)
		return __builtin_nan("");
	r = exp(y * log(fabs(x)));
	return x < 0 && odd ? -r : r;
}

BASALT_DEVICE double fmod(double x, double y)
{
	double r = fabs(x), d = fabs(y);

	if (!(d > 0) || r == __builtin_inf())
		return __builtin_nan("");
	while (r >= d) { /* each turn takes off at least half of what is left */
		double part = d;

		while (part <= r / 2)
			part *= 2;
		r -= part;
	}
	return copysign(r, x);
}

/* Forms for float under both of their names, and for int. */
#define BASALT_ROUNDED(name) \
	BASALT_DEVICE double name(int x) { return name((double)x); } \
	BASALT_DEVICE float name##f(float x) { return (float)name((double)x); } \
	BASALT_DEVICE float name(float x) { return (float)name((double)x); }
#define BASALT_ROUNDED2(name) \
	BASALT_DEVICE float name##f(float x, float y) { return (float)name((double)x, (double)y); } \
	BASALT_DEVICE float name(float x, float y) { return (float)name((double)x, (double)y); }
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

BASALT_DEVICE int abs(int x) { return x < 0 ? -x : x; }
BASALT_DEVICE long abs(long x) { return x < 0 ? -x : x; }
BASALT_DEVICE long long abs(long long x) { return x < 0 ? -x : x; }
BASALT_DEVICE float abs(float x) { return __builtin_fabsf(x); }
BASALT_DEVICE double abs(double x) { return __builtin_fabs(x); }

#endif
