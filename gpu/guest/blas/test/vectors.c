/* Compares functions of vectors and matrix times vector with sums in long double. */
#include "test.h"

/* A vector of n elements with a step between them, and NaNs in the gaps. */
struct vector {
	cudaDataType type;
	int n, step;
	size_t length;
	char *host;
	void *device;
};

static struct vector vector_of(cudaDataType type, int slot, int n, int step)
{
	struct vector v = {type, n, step, (size_t)most(n, 1) * (size_t)abs(step) + 2, NULL, NULL};

	v.host = malloc(v.length * type_size(type));
	ASSERT(v.host);
	fill_nan(type, v.host, v.length);
	for (int i = 0; i < n; i++)
		put(type, v.host, (size_t)i * (size_t)abs(step), random_value(type));
	v.device = on_device(slot, v.host, v.length * type_size(type));
	return v;
}

static size_t place(const struct vector *v, int i)
{
	return (size_t)(v->step < 0 ? (v->n - 1 - i) * -v->step : i * v->step);
}

static value at(const struct vector *v, int i)
{
	return get(v->type, v->host, place(v, i));
}

/* Returns a copy of the device's vector, and checks that its gaps have not changed. */
static struct vector back(const struct vector *v)
{
	struct vector got = *v;
	size_t size = type_size(v->type);

	got.host = malloc(v->length * size);
	ASSERT(got.host);
	from_device(got.host, (CUdeviceptr)(uintptr_t)v->device, v->length * size);
	for (size_t i = 0; i < v->length; i++)
		if (i % (size_t)abs(v->step) != 0 || i / (size_t)abs(v->step) >= (size_t)v->n)
			ASSERT(memcmp(got.host + i * size, v->host + i * size, size) == 0);
	return got;
}

static void drop(struct vector *a, struct vector *b)
{
	free(a->host);
	free(b->host);
}

static long double error_of(cudaDataType type, int terms, long double sizes)
{
	long double sums = type_unit(type) > type_unit(CUDA_R_32F) ? type_unit(CUDA_R_32F) : type_unit(type);

	return sums * (terms + 3) * (type_complex(type) ? 2 : 1) * sizes + type_unit(type) * sizes + (type == CUDA_R_16F ? 0x1p-25L : 0);
}

/* The result of a call, in host memory or in device memory. */
static bool in_device;
static char place_of_result[16];
static void *result(void)
{
	fill_nan(CUDA_C_64F, place_of_result, 1);
	OK(cublasSetPointerMode(handle(), in_device ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST));
	return in_device ? on_device(2, place_of_result, sizeof place_of_result) : place_of_result;
}

static value result_value(cudaDataType type)
{
	if (in_device)
		from_device(place_of_result, device_memory(2, 1), sizeof place_of_result);
	OK(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_HOST));
	return get(type, place_of_result, 0);
}

static cublasStatus_t call_dot(const struct vector *x, const struct vector *y, bool conjugate, void *r)
{
	cudaDataType t = x->type, execution = type_unit(t) > type_unit(CUDA_R_32F) ? CUDA_R_32F : t;

	if (t == CUDA_R_32F && !conjugate)
		return cublasSdot(handle(), x->n, x->device, x->step, y->device, y->step, r);
	if (t == CUDA_R_64F && !conjugate)
		return cublasDdot(handle(), x->n, x->device, x->step, y->device, y->step, r);
	if (t == CUDA_C_32F)
		return (conjugate ? cublasCdotc : cublasCdotu)(handle(), x->n, x->device, x->step, y->device, y->step, r);
	if (t == CUDA_C_64F)
		return (conjugate ? cublasZdotc : cublasZdotu)(handle(), x->n, x->device, x->step, y->device, y->step, r);
	return (conjugate ? cublasDotcEx : cublasDotEx)(handle(), x->n, x->device, t, x->step, y->device, t, y->step, r, t, execution);
}

static void dot(cudaDataType type, int n, int incx, int incy, bool conjugate)
{
	struct vector x = vector_of(type, 0, n, incx), y = vector_of(type, 1, n, incy);
	value want = 0;
	long double sizes = 0;

	for (int i = 0; i < n; i++) {
		want += (conjugate ? conjl(at(&x, i)) : at(&x, i)) * at(&y, i);
		sizes += size_of(at(&x, i)) * size_of(at(&y, i));
	}
	OK(call_dot(&x, &y, conjugate, result()));
	near_value("dot", n, conjugate, result_value(type), want, error_of(type, n, sizes));
	drop(&x, &y);
}

static void norms(cudaDataType type, int n, int step, long double scale)
{
	struct vector x = vector_of(type, 0, n, step);
	cudaDataType real = type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
	long double squares = 0, sum = 0;

	for (int i = 0; i < n; i++) {
		value v;

		put(type, x.host, place(&x, i), at(&x, i) * scale);
		v = at(&x, i);
		squares += creall(v) * creall(v) + cimagl(v) * cimagl(v);
		sum += size_of(v);
	}
	x.device = on_device(0, x.host, x.length * type_size(type));
	if (type == CUDA_R_32F)
		OK(cublasSnrm2(handle(), n, x.device, step, result()));
	else if (type == CUDA_R_64F)
		OK(cublasDnrm2(handle(), n, x.device, step, result()));
	else if (type == CUDA_C_32F)
		OK(cublasScnrm2(handle(), n, x.device, step, result()));
	else
		OK(cublasDznrm2(handle(), n, x.device, step, result()));
	near_value("nrm2", n, 0, result_value(real), sqrtl(squares), error_of(real, n, sqrtl(squares)));
	if (type == CUDA_R_32F)
		OK(cublasSasum(handle(), n, x.device, step, result()));
	else if (type == CUDA_R_64F)
		OK(cublasDasum(handle(), n, x.device, step, result()));
	else if (type == CUDA_C_32F)
		OK(cublasScasum(handle(), n, x.device, step, result()));
	else
		OK(cublasDzasum(handle(), n, x.device, step, result()));
	near_value("asum", n, 0, result_value(real), sum, error_of(real, n, sum));
	free(x.host);
}

static void axpy(cudaDataType type, int n, int incx, int incy, value alpha)
{
	struct vector x = vector_of(type, 0, n, incx), y = vector_of(type, 1, n, incy), got;
	char factor[16];

	put(type, factor, 0, alpha);
	OK(CALL(type, axpy, n, (void *)factor, x.device, incx, y.device, incy));
	got = back(&y);
	for (int i = 0; i < n; i++)
		near_value("axpy", i, 0, at(&got, i), alpha * at(&x, i) + at(&y, i),
			error_of(type, 1, size_of(alpha) * size_of(at(&x, i)) + size_of(at(&y, i))));
	free(got.host);
	drop(&x, &y);
}

static void scal(cudaDataType type, int n, int step, value alpha)
{
	struct vector x = vector_of(type, 0, n, step), got;
	char factor[16];

	put(type, factor, 0, alpha);
	OK(CALL(type, scal, n, (void *)factor, x.device, step));
	got = back(&x);
	for (int i = 0; i < n; i++)
		near_value("scal", i, 0, at(&got, i), alpha * at(&x, i), error_of(type, 1, size_of(alpha) * size_of(at(&x, i))));
	drop(&x, &got);
}

static void exchange(cudaDataType type, int n, int incx, int incy)
{
	struct vector x = vector_of(type, 0, n, incx), y = vector_of(type, 1, n, incy), got_x, got_y;

	OK(CALL(type, swap, n, x.device, incx, y.device, incy));
	got_x = back(&x);
	got_y = back(&y);
	for (int i = 0; i < n; i++) {
		near_value("swap", i, 0, at(&got_x, i), at(&y, i), 0);
		near_value("swap", i, 1, at(&got_y, i), at(&x, i), 0);
	}
	drop(&got_x, &got_y);
	OK(CALL(type, copy, n, x.device, incx, y.device, incy));
	got_y = back(&y);
	for (int i = 0; i < n; i++)
		near_value("copy", i, 0, at(&got_y, i), at(&y, i), 0); /* after the swap x has y's elements */
	free(got_y.host);
	drop(&x, &y);
}

void test_vectors(void)
{
	static const int lengths[] = {0, 1, 5, 256, 1000}, steps[] = {1, 2, -1, -3};
	static const cudaDataType halves[] = {CUDA_R_16F, CUDA_R_16BF};

	for (int n = 0; n < 5; n++)
		for (int s = 0; s < 4; s++) {
			int length = lengths[n], incx = steps[s], incy = steps[(s + n) % 4];

			in_device = (n + s) % 2;
			for (int t = 0; t < 2; t++)
				dot(halves[t], length, incx, incy, s % 2);
			for (int t = 0; t < 4; t++) {
				cudaDataType type = letter_types[t];
				value alpha = s == 0 ? 0 : type_complex(type) ? 0.5L - 2 * I : -1.5L;

				for (int c = 0; c < 2; c++)
					dot(type, length, incx, incy, c);
				norms(type, length, abs(incx), s == 3 && type == CUDA_R_64F ? 1e200L : s == 3 && type_complex(type) ? 1e-30L : 1);
				axpy(type, length, incx, incy, alpha);
				scal(type, length, abs(incx), alpha);
				exchange(type, length, incx, incy);
			}
		}
	in_device = false;
}

static void gemv(cudaDataType type, cublasOperation_t op, int m, int n, int incx, int incy, value alpha, value beta)
{
	bool plain = op == CUBLAS_OP_N;
	int lda = m + 2, rows = plain ? m : n, depth = plain ? n : m;
	struct vector x = vector_of(type, 0, depth, incx), y = vector_of(type, 1, rows, incy), got;
	char *a = malloc((size_t)(lda * n) * type_size(type)), factors[2][16];

	ASSERT(a);
	fill_nan(type, a, (size_t)(lda * n));
	for (int j = 0; j < n && alpha != 0; j++)
		fill_random(type, a + (size_t)(j * lda) * type_size(type), (size_t)m);
	if (beta == 0) {
		fill_nan(type, y.host, y.length);
		y.device = on_device(1, y.host, y.length * type_size(type));
	}
	put(type, factors[0], 0, alpha);
	put(type, factors[1], 0, beta);
	OK(CALL(type, gemv, op, m, n, (void *)factors[0], on_device(3, a, (size_t)(lda * n) * type_size(type)), lda, x.device, incx,
		(void *)factors[1], y.device, incy));
	got = back(&y);
	for (int i = 0; i < rows; i++) {
		value want = beta == 0 ? 0 : beta * at(&y, i);
		long double sizes = size_of(want);

		for (int l = 0; l < depth && alpha != 0; l++) {
			value v = get(type, a, (size_t)(plain ? i + l * lda : l + i * lda));

			want += alpha * (op == CUBLAS_OP_C ? conjl(v) : v) * at(&x, l);
			sizes += size_of(alpha) * size_of(v) * size_of(at(&x, l));
		}
		near_value("gemv", i, (int)op, at(&got, i), want, error_of(type, depth + 2, sizes));
	}
	free(a);
	free(got.host);
	drop(&x, &y);
}

void test_gemv(void)
{
	static const int sizes[][2] = {{1, 1}, {33, 9}, {5, 70}, {64, 64}}, steps[] = {1, -2, 3};

	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++)
			for (int op = 0; op < 3; op++) {
				value other = type_complex(letter_types[t]) ? 0.75L - 1.25L * I : -1.25L, choices[] = {0, 1, other};

				gemv(letter_types[t], (cublasOperation_t)op, sizes[s][0], sizes[s][1], steps[(s + op) % 3], steps[(s + t) % 3],
					choices[(s + op + 1) % 3], choices[(s + t) % 3]);
			}
}

void test_vectors_bad(void)
{
	float f = 1, *p = (float *)(uintptr_t)device_memory(0, 64);
	cublasHandle_t h = handle();

	WANT(cublasSdot(h, 3, p, 1, p, 1, NULL), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSdot(h, 3, NULL, 1, p, 1, &f), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSaxpy(h, 3, NULL, p, 1, p, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSnrm2(NULL, 3, p, 1, &f), CUBLAS_STATUS_NOT_INITIALIZED);
	WANT(cublasDotEx(h, 3, p, CUDA_R_16F, 1, p, CUDA_R_16BF, 1, &f, CUDA_R_16F, CUDA_R_32F), CUBLAS_STATUS_NOT_SUPPORTED);
	OK(cublasSdot(h, -3, p, 1, p, 1, &f));
	ASSERT(f == 0);
	f = 1;
#define SGEMV(op, m, n, alpha, lda, incx, beta, incy) \
	cublasSgemv(h, (cublasOperation_t)(op), m, n, alpha, p, lda, p, incx, beta, p, incy)
	WANT(SGEMV(3, 2, 2, &f, 2, 1, &f, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMV(0, -1, 2, &f, 2, 1, &f, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMV(0, 2, -1, &f, 2, 1, &f, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMV(0, 3, 2, &f, 2, 1, &f, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMV(0, 2, 2, &f, 2, 0, &f, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMV(0, 2, 2, &f, 2, 1, &f, 0), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMV(0, 2, 2, NULL, 2, 1, &f, 1), CUBLAS_STATUS_INVALID_VALUE);
	OK(SGEMV(0, 0, 2, &f, 1, 1, &f, 1));
#undef SGEMV
}
