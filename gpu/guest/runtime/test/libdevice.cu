// Functions of libdevice, which our compiler does not have: the device provides them.
#include <cmath>

#include "check.h"

// The functions of one number, the range in which they are tested, and glibc's function. The
// tests of the soft GPU test their accuracy.
#define ONE \
	F(exp, -700, 700, exp) F(exp2, -1000, 1000, exp2) F(exp10, -300, 300, exp10) F(expm1, -5, 5, expm1) F(log, 1e-9, 1e9, log) \
	F(log2, 1e-9, 1e9, log2) F(log10, 1e-9, 1e9, log10) F(log1p, -0.9, 9, log1p) F(sin, -1e15, 1e15, sin) F(cos, -1e15, 1e15, cos) \
	F(tan, -1e9, 1e9, tan) F(asin, -1, 1, asin) F(acos, -1, 1, acos) F(atan, -50, 50, atan) F(sinh, -20, 20, sinh) F(cosh, -20, 20, cosh) \
	F(tanh, -10, 10, tanh) F(asinh, -1e5, 1e5, asinh) F(acosh, 1, 1e5, acosh) F(atanh, -0.99, 0.99, atanh) F(cbrt, -1e6, 1e6, cbrt) \
	F(erf, -3, 3, erf) F(erfc, -3, 20, erfc) F(tgamma, 0.1, 100, tgamma) F(lgamma, 3, 1000, lgamma) F(j0, -10, 10, j0) F(j1, -10, 10, j1) \
	F(y0, 0.1, 10, y0) F(y1, 0.1, 10, y1) F(logb, 1e-9, 1e9, logb) F(round, -9, 9, round)

#define F(name, least, most, host) F_##name,
enum { ONE COUNT };
#undef F

__global__ void one(int which, const double *in, double *out, float *outf)
{
	int i = threadIdx.x;

	switch (which) {
#define F(name, least, most, host) \
	case F_##name: \
		out[i] = name(in[i]); \
		outf[i] = name##f((float)in[i]); \
		break;
		ONE
#undef F
	}
}

static bool near(double got, double want, double allowed) { return got == want || fabs(got - want) <= allowed * fabs(want) + 1e-13 * allowed; }

// Identities, for functions that the host does not have, and for those with several arguments
// or results. Each writes a value that must be 0.
__global__ void identities(const double *in, double *wrong)
{
	__shared__ double sines[128];
	double x = in[threadIdx.x], s, c, whole, *w = wrong + 24 * threadIdx.x;
	float sf, cf, wholef;
	int n = 0, q = 0;

	sincos(x, &sines[threadIdx.x], &c);
	w[0] = sines[threadIdx.x] * sines[threadIdx.x] + c * c - 1;
	sincospi(x, &s, &c);
	w[1] = s - sinpi(x) + c - cospi(x);
	w[2] = erfinv(erf(x / 4)) - x / 4;
	w[3] = erfcinv(erfc(x / 4)) - x / 4;
	w[4] = erfcx(x) * exp(-x * x) - erfc(x);
	w[5] = normcdf(x) - erfc(-x * 0.70710678118654752) / 2;
	w[6] = normcdfinv(normcdf(x)) - x;
	w[7] = rcbrt(x) * cbrt(x) - 1;
	w[8] = rsqrt(x) * sqrt(x) - 1;
	w[9] = rhypot(x, 2) * hypot(x, 2) - 1;
	w[10] = norm3d(x, x, x) - x * 1.7320508075688772;
	w[11] = norm4d(x, x, x, x) * rnorm4d(x, x, x, x) - 1;
	w[12] = (jn(1, x) + jn(3, x)) - 4 / x * jn(2, x);
	w[13] = (yn(0, x) + yn(2, x)) / (2 / x * y1(x)) - 1;
	w[14] = cyl_bessel_i0(0.0) + cyl_bessel_i1(0.0) - 1;
	w[15] = ldexp(frexp(x, &n), n) - x;
	w[16] = modf(x, &whole) + whole - x;
	w[17] = remquo(x, 0.25, &q) - remainder(x, 0.25);
	w[18] = ((int)rint(x / 0.25) & 7) - q;
	w[19] = pow(x, 3) / (x * x * x) - 1;
	w[20] = fmod(x, 0.5) - (x - 0.5 * floor(x / 0.5));
	w[21] = ilogb(x) - logb(x) + llround(x) - round(x) + lrint(x) - rint(x) + fdim(x, x);
	sincosf((float)x, &sf, &cf);
	w[22] = sf - sinf((float)x) + cf - cosf((float)x) + ldexpf(frexpf((float)x, &n), n) - (float)x;
	w[23] = modff((float)x, &wholef) + wholef - (float)x + powf(2, 3) - 8 + remquof((float)x, 1, &q) - remainderf((float)x, 1);
}

// Functions that are one instruction, and functions of integers, which compilers call too.
__global__ void instructions(int x, int *out)
{
	out[0] = __nv_popc((unsigned int)x) == __popc((unsigned int)x);
	out[1] = __nv_brev(x) == (int)__brev((unsigned int)x);
	out[2] = __nv_mulhi(x, x) == __mulhi(x, x);
	out[3] = __nv_float2int_rn((float)x + 0.5f) == x + (x & 1);
	out[4] = __nv_fmaf((float)x, 2, 1) == 2.0f * (float)x + 1;
	out[5] = __nv_byte_perm(0x03020100, 0x07060504, 0x5410) == 0x05040100;
	out[6] = __nv_half2float(__nv_float2half_rn(0.5f)) == 0.5f;
	out[7] = __nv_ffs(x & -x) == __ffs(x) && __nv_clz(x) == __clz(x);
	out[8] = __nv_saturatef(2) == 1 && __nv_fast_fdividef(6, 3) == 2;
	out[9] = __nv_hiloint2double(__nv_double2hiint((double)x), __nv_double2loint((double)x)) == (double)x;
	out[10] = __nv_isnand(__nv_longlong_as_double(-1)) && !__nv_isinfd(1) && __nv_signbitd(-1);
	out[11] = __nv_rhadd(3, 4) == 4 && __nv_hadd(3, 4) == 3 && __nv_sad(1, 5, 2) == 6;
}

int main()
{
	const int n = 101;
	double x[n], out[24 * n], *dx, *dout;
	float outf[n], *doutf;
	int right[12], *dright;

	CHECK(cudaMalloc(&dx, sizeof x));
	CHECK(cudaMalloc(&dout, sizeof out));
	CHECK(cudaMalloc(&doutf, sizeof outf));
	CHECK(cudaMalloc(&dright, sizeof right));
#define F(name, least, most, host) \
	for (int i = 0; i < n; i++) \
		x[i] = (least) + ((most) - (least)) * i / 100.0; \
	CHECK(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice)); \
	one<<<1, n>>>(F_##name, dx, dout, doutf); \
	CHECK(cudaMemcpy(out, dout, n * sizeof *out, cudaMemcpyDeviceToHost)); \
	CHECK(cudaMemcpy(outf, doutf, sizeof outf, cudaMemcpyDeviceToHost)); \
	for (int i = 0; i < n; i++) { \
		double want = host(x[i]), wantf = (double)(float)host((double)(float)x[i]); \
		if (!near(out[i], want, 1e-14) || !near(outf[i], wantf, 1e-6)) { \
			fprintf(stderr, #name "(%.17g) = %.17g and %.9g, want %.17g and %.9g\n", x[i], out[i], outf[i], want, wantf); \
			return 1; \
		} \
	}
	ONE
#undef F
	for (int i = 0; i < n; i++)
		x[i] = 0.3 + i * 0.043;
	CHECK(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
	identities<<<1, n>>>(dx, dout);
	CHECK(cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 24 * n; i++)
		if (!(fabs(out[i]) < 1e-9)) {
			fprintf(stderr, "identity %d of %g has the error %g, want less\n", i % 24, x[i / 24], out[i]);
			return 1;
		}
	instructions<<<1, 1>>>(1000, dright);
	CHECK(cudaMemcpy(right, dright, sizeof right, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 12; i++)
		if (!right[i]) {
			fprintf(stderr, "instruction %d gives a wrong result, want that of the builtin\n", i);
			return 1;
		}
	puts("libdevice: OK");
}
