/* Conversion of numbers of all types, and device memory. */
#include "test.h"

size_t type_size(cudaDataType type)
{
	switch ((int)type) {
	case CUDA_R_8I: return 1;
	case CUDA_R_16F:
	case CUDA_R_16BF: return 2;
	case CUDA_R_64F:
	case CUDA_C_32F: return 8;
	case CUDA_C_64F: return 16;
	default: return 4;
	}
}

bool type_complex(cudaDataType type)
{
	return type == CUDA_C_32F || type == CUDA_C_64F;
}

long double type_unit(cudaDataType type)
{
	switch ((int)type) {
	case CUDA_R_16F: return 0x1p-11L;
	case CUDA_R_16BF: return 0x1p-8L;
	case CUDA_R_32F:
	case CUDA_C_32F: return 0x1p-24L;
	case CUDA_R_64F:
	case CUDA_C_64F: return 0x1p-53L;
	default: return 0;
	}
}

const cudaDataType letter_types[4] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

long double size_of(value v)
{
	return fabsl(creall(v)) + fabsl(cimagl(v));
}

static float from_bits(unsigned int bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

static long double half_value(unsigned int bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	long double v = exponent == 31 ? (fraction ? NAN : INFINITY) : ldexpl(exponent ? 1024 + fraction : fraction, (exponent ? exponent : 1) - 25);

	return bits >> 15 ? -v : v;
}

/* Rounds a number in the range of f16 to nearest, ties to even. */
static uint16_t half_bits(long double v)
{
	int exponent;
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	long double f;

	if (isnan(v))
		return 0x7e00;
	v = fabsl(v);
	if (v == 0)
		return sign;
	frexpl(v, &exponent);
	exponent = exponent < -13 ? -13 : exponent; /* v is fraction × 2^(exponent - 11) */
	f = nearbyintl(ldexpl(v, 11 - exponent));
	return (uint16_t)(sign + ((exponent + 13) << 10) + (int)f); /* the leading bit adds one to the exponent */
}

value get(cudaDataType type, const void *p, size_t i)
{
	switch ((int)type) {
	case CUDA_R_8I: return ((const signed char *)p)[i];
	case CUDA_R_32I: return ((const int *)p)[i];
	case CUDA_R_16F: return half_value(((const uint16_t *)p)[i]);
	case CUDA_R_16BF: return from_bits((unsigned int)((const uint16_t *)p)[i] << 16);
	case CUDA_R_64F: return ((const double *)p)[i];
	case CUDA_C_32F: return ((const float _Complex *)p)[i];
	case CUDA_C_64F: return ((const double _Complex *)p)[i];
	default: return ((const float *)p)[i];
	}
}

void put(cudaDataType type, void *p, size_t i, value v)
{
	float f = (float)creall(v);
	unsigned int bits;

	memcpy(&bits, &f, sizeof bits);
	switch ((int)type) {
	case CUDA_R_8I: ((signed char *)p)[i] = (signed char)creall(v); break;
	case CUDA_R_32I: ((int *)p)[i] = (int)creall(v); break;
	case CUDA_R_16F: ((uint16_t *)p)[i] = half_bits(creall(v)); break;
	case CUDA_R_16BF: ((uint16_t *)p)[i] = (uint16_t)((bits + (isnan(f) ? 0 : 0x7fff + (bits >> 16 & 1))) >> 16); break;
	case CUDA_R_64F: ((double *)p)[i] = (double)creall(v); break;
	case CUDA_C_32F: ((float _Complex *)p)[i] = (float _Complex)v; break;
	case CUDA_C_64F: ((double _Complex *)p)[i] = (double _Complex)v; break;
	default: ((float *)p)[i] = f;
	}
}

value rounded(cudaDataType type, value v)
{
	char place[16];

	put(type, place, 0, v);
	return get(type, place, 0);
}

unsigned int random_word(void)
{
	static unsigned int state = 1;

	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

static long double fraction(void)
{
	return (long double)random_word() / (1 << 23) - 1;
}

value random_value(cudaDataType type)
{
	long double x = fraction(), y = fraction();

	if (type == CUDA_R_8I || type == CUDA_R_32I)
		return (int)(x * 127);
	return rounded(type, type_complex(type) ? x + y * I : x);
}

void fill_random(cudaDataType type, void *p, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(type, p, i, random_value(type));
}

void fill_nan(cudaDataType type, void *p, size_t count)
{
	bool whole = type == CUDA_R_8I || type == CUDA_R_32I;

	for (size_t i = 0; i < count; i++)
		put(type, p, i, whole ? 77 : type_complex(type) ? CMPLXL(NAN, NAN) : NAN);
}

void near_value(const char *what, int row, int column, value got, value want, long double error)
{
	if (!(fabsl(creall(got) - creall(want)) <= error) || !(fabsl(cimagl(got) - cimagl(want)) <= error))
		FAIL("%s: element (%d, %d) is %.9Lg%+.9Lgi, want %.9Lg%+.9Lgi within %.3Lg", what, row, column, creall(got), cimagl(got),
			creall(want), cimagl(want), error);
}

CUdeviceptr device_memory(int slot, size_t bytes)
{
	static struct {
		CUdeviceptr p;
		size_t bytes;
	} slots[16];

	if (slots[slot].bytes < bytes) {
		if (slots[slot].p)
			CHECK(cuMemFree(slots[slot].p));
		CHECK(cuMemAlloc(&slots[slot].p, bytes));
		slots[slot].bytes = bytes;
	}
	return slots[slot].p;
}

void to_device(CUdeviceptr to, const void *from, size_t bytes)
{
	CHECK(cuMemcpyHtoD(to, from, bytes));
	CHECK(cuStreamSynchronize(NULL)); /* for streams that do not wait for the default stream */
}

void from_device(void *to, CUdeviceptr from, size_t bytes)
{
	CHECK(cuMemcpyDtoH(to, from, bytes));
}

void *on_device(int slot, const void *from, size_t bytes)
{
	CUdeviceptr p = device_memory(slot, bytes + 16);

	if (bytes > 0)
		to_device(p, from, bytes);
	return (void *)(uintptr_t)p;
}

cublasHandle_t handle(void)
{
	static cublasHandle_t h;

	if (!h)
		OK(cublasCreate(&h));
	return h;
}
