/* Mathematical functions of device code. Those that clang can express are instructions of the
 * GPU; the ones that begin with __ are fast and approximate. All others call functions with the
 * names of libdevice (declared by clang's own header). The soft GPU provides them, and
 * basalt_device_series.h has weak definitions of many for other GPUs. */
#ifndef BASALT_DEVICE_MATH_H
#define BASALT_DEVICE_MATH_H

#include "basalt_device.h"
#include "basalt_device_series.h"

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
BASALT_DEVICE double rsqrt(double x) { return __nv_rsqrt(x); }
BASALT_DEVICE float rsqrtf(float x) { return __nv_rsqrtf(x); }
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

/* Functions with the names for double and float, and an overload for int. */
#define BASALT_CALL1(name) \
	BASALT_DEVICE double name(double x) { return __nv_##name(x); } \
	BASALT_DEVICE double name(int x) { return __nv_##name((double)x); } \
	BASALT_DEVICE float name##f(float x) { return __nv_##name##f(x); } \
	BASALT_DEVICE float name(float x) { return __nv_##name##f(x); }
#define BASALT_CALL2(name) \
	BASALT_DEVICE double name(double x, double y) { return __nv_##name(x, y); } \
	BASALT_DEVICE float name##f(float x, float y) { return __nv_##name##f(x, y); } \
	BASALT_DEVICE float name(float x, float y) { return __nv_##name##f(x, y); }
/* Functions of C only, without overloads for other types. */
#define BASALT_C1(name) \
	BASALT_DEVICE double name(double x) { return __nv_##name(x); } \
	BASALT_DEVICE float name##f(float x) { return __nv_##name##f(x); }
BASALT_CALL1(exp)
BASALT_CALL1(exp2)
BASALT_CALL1(expm1)
BASALT_CALL1(log)
BASALT_CALL1(log2)
BASALT_CALL1(log10)
BASALT_CALL1(log1p)
BASALT_CALL1(sin)
BASALT_CALL1(cos)
BASALT_CALL1(tan)
BASALT_CALL1(asin)
BASALT_CALL1(acos)
BASALT_CALL1(atan)
BASALT_CALL1(sinh)
BASALT_CALL1(cosh)
BASALT_CALL1(tanh)
BASALT_CALL1(asinh)
BASALT_CALL1(acosh)
BASALT_CALL1(atanh)
BASALT_CALL1(cbrt)
BASALT_CALL1(erf)
BASALT_CALL1(erfc)
BASALT_CALL1(tgamma)
BASALT_CALL1(lgamma)
BASALT_CALL1(logb)
BASALT_CALL2(atan2)
BASALT_CALL2(pow)
BASALT_CALL2(fmod)
BASALT_CALL2(hypot)
BASALT_CALL2(remainder)
BASALT_CALL2(fdim)
BASALT_CALL2(nextafter)
BASALT_C1(exp10)
BASALT_C1(sinpi)
BASALT_C1(cospi)
BASALT_C1(rcbrt)
BASALT_C1(erfcx)
BASALT_C1(erfinv)
BASALT_C1(erfcinv)
BASALT_C1(normcdf)
BASALT_C1(normcdfinv)
BASALT_C1(j0)
BASALT_C1(j1)
BASALT_C1(y0)
BASALT_C1(y1)
BASALT_C1(cyl_bessel_i0)
BASALT_C1(cyl_bessel_i1)
BASALT_DEVICE double jn(int n, double x) { return __nv_jn(n, x); }
BASALT_DEVICE float jnf(int n, float x) { return __nv_jnf(n, x); }
BASALT_DEVICE double yn(int n, double x) { return __nv_yn(n, x); }
BASALT_DEVICE float ynf(int n, float x) { return __nv_ynf(n, x); }
BASALT_DEVICE double rhypot(double x, double y) { return __nv_rhypot(x, y); }
BASALT_DEVICE float rhypotf(float x, float y) { return __nv_rhypotf(x, y); }
BASALT_DEVICE double norm3d(double x, double y, double z) { return __nv_norm3d(x, y, z); }
BASALT_DEVICE float norm3df(float x, float y, float z) { return __nv_norm3df(x, y, z); }
BASALT_DEVICE double rnorm3d(double x, double y, double z) { return __nv_rnorm3d(x, y, z); }
BASALT_DEVICE float rnorm3df(float x, float y, float z) { return __nv_rnorm3df(x, y, z); }
BASALT_DEVICE double norm4d(double x, double y, double z, double t) { return __nv_norm4d(x, y, z, t); }
BASALT_DEVICE float norm4df(float x, float y, float z, float t) { return __nv_norm4df(x, y, z, t); }
BASALT_DEVICE double rnorm4d(double x, double y, double z, double t) { return __nv_rnorm4d(x, y, z, t); }
BASALT_DEVICE float rnorm4df(float x, float y, float z, float t) { return __nv_rnorm4df(x, y, z, t); }

/* Functions with a second result or an integer, for both types. */
#define BASALT_PARTS(t, s) \
	BASALT_DEVICE void sincos##s(t x, t *sine, t *cosine) { __nv_sincos##s(x, sine, cosine); } \
	BASALT_DEVICE void sincospi##s(t x, t *sine, t *cosine) { __nv_sincospi##s(x, sine, cosine); } \
	BASALT_DEVICE t frexp##s(t x, int *n) { return __nv_frexp##s(x, n); } \
	BASALT_DEVICE t modf##s(t x, t *whole) { return __nv_modf##s(x, whole); } \
	BASALT_DEVICE t remquo##s(t x, t y, int *q) { return __nv_remquo##s(x, y, q); } \
	BASALT_DEVICE t ldexp##s(t x, int n) { return __nv_ldexp##s(x, n); } \
	BASALT_DEVICE t scalbn##s(t x, int n) { return __nv_scalbn##s(x, n); } \
	BASALT_DEVICE int ilogb##s(t x) { return __nv_ilogb##s(x); } \
	BASALT_DEVICE long long llrint##s(t x) { return __nv_llrint##s(x); } \
	BASALT_DEVICE long long llround##s(t x) { return __nv_llround##s(x); } \
	BASALT_DEVICE long lrint##s(t x) { return (long)__nv_llrint##s(x); } \
	BASALT_DEVICE long lround##s(t x) { return (long)__nv_llround##s(x); }
BASALT_PARTS(double, )
BASALT_PARTS(float, f)
BASALT_DEVICE float frexp(float x, int *n) { return __nv_frexpf(x, n); }
BASALT_DEVICE float modf(float x, float *whole) { return __nv_modff(x, whole); }
BASALT_DEVICE float ldexp(float x, int n) { return __nv_ldexpf(x, n); }

BASALT_DEVICE int abs(int x) { return x < 0 ? -x : x; }
BASALT_DEVICE long abs(long x) { return x < 0 ? -x : x; }
BASALT_DEVICE long long abs(long long x) { return x < 0 ? -x : x; }
BASALT_DEVICE float abs(float x) { return __builtin_fabsf(x); }
BASALT_DEVICE double abs(double x) { return __builtin_fabs(x); }

#endif
