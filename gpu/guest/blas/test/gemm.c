/* Compares the gemm family with sums in long double. */
#include "test.h"

/* The forms of functions. Each exists with a type in its name and with types as arguments. */
enum form { PLAIN, STRIDED, ARRAYS, FORMS };

static const struct kind {
	const char *name;
	cudaDataType in, out, scale;
	cublasComputeType_t compute;
	char letter; /* letter of the typed functions, or 0 if there are none */
} kinds[] = {
	{"f32", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 'S'},
	{"f64", CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 'D'},
	{"c32", CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, 'C'},
	{"c64", CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, 'Z'},
	{"f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
	{"f16 in f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 'H'},
	{"f16 to f32", CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
	{"bf16", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
	{"bf16 to f32", CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF, 0},
	{"s8", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 0},
	{"s8 to f32", CUDA_R_8I, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
};

/* One call, and its matrices in host and device memory. */
struct call {
	const struct kind *kind;
	enum form form;
	bool typed, device_factors;
	cublasOperation_t transa, transb;
	int m, n, k, count, lda, ldb, ldc;
	size_t size_a, size_b, size_c; /* elements of one matrix, with a gap behind it */
	value alpha, beta;
	void *a, *b, *c, *result;
};

static void *elements(cudaDataType type, size_t count)
{
	void *p = malloc((count + 1) * type_size(type));

	ASSERT(p);
	fill_nan(type, p, count); /* gaps between columns and matrices must not be read */
	return p;
}

/* Returns matrices with random numbers, and NaNs in the gaps. */
static void *random_matrices(cudaDataType type, int rows, int columns, int ld, size_t size, int count)
{
	char *p = elements(type, size * (size_t)count);

	for (int z = 0; z < count; z++)
		for (int j = 0; j < columns; j++)
			fill_random(type, p + ((size_t)z * size + (size_t)j * (size_t)ld) * type_size(type), (size_t)rows);
	return p;
}

static void prepare(struct call *c)
{
	bool na = c->transa == CUBLAS_OP_N, nb = c->transb == CUBLAS_OP_N;
	int rows_a = na ? c->m : c->k, rows_b = nb ? c->k : c->n, columns_a = na ? c->k : c->m, columns_b = nb ? c->n : c->k;
	bool nothing = c->alpha == 0;

	c->lda = most(1, rows_a) + (int)(random_word() % 3);
	c->ldb = most(1, rows_b) + (int)(random_word() % 3);
	c->ldc = most(1, c->m) + (int)(random_word() % 3);
	c->size_a = (size_t)c->lda * (size_t)columns_a + 3;
	c->size_b = (size_t)c->ldb * (size_t)columns_b + 2;
	c->size_c = (size_t)c->ldc * (size_t)c->n + 1;
	/* Matrices whose factor is 0 are not read, so they may be NaNs. */
	c->a = random_matrices(c->kind->in, nothing ? 0 : rows_a, columns_a, c->lda, c->size_a, c->count);
	c->b = random_matrices(c->kind->in, nothing ? 0 : rows_b, columns_b, c->ldb, c->size_b, c->count);
	c->c = random_matrices(c->kind->out, c->beta == 0 ? 0 : c->m, c->n, c->ldc, c->size_c, c->count);
	c->result = elements(c->kind->out, c->size_c * (size_t)c->count);
}

/* Returns an array on the device with pointers to the matrices of a batch. */
static void *pointers(int slot, void *first, size_t bytes, int count)
{
	char *list[8];

	for (int z = 0; z < count; z++)
		list[z] = (char *)first + (size_t)z * bytes;
	return on_device(slot, list, sizeof *list * (size_t)count);
}

/* L is the type's letter, T its type. */
#define TYPED(L, SUFFIX, T) \
	static cublasStatus_t typed_##L(const struct call *c, const void *alpha, const void *beta, void *a, void *b, void *d) \
	{ \
		if (c->form == PLAIN) \
			return cublas##L##gemm##SUFFIX(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, (const T *)a, c->lda, \
				(const T *)b, c->ldb, beta, (T *)d, c->ldc); \
		if (c->form == STRIDED) \
			return cublas##L##gemmStridedBatched(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, (const T *)a, c->lda, \
				(long long)c->size_a, (const T *)b, c->ldb, (long long)c->size_b, beta, (T *)d, c->ldc, (long long)c->size_c, c->count); \
		return cublas##L##gemmBatched(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, (const T *const *)a, c->lda, \
			(const T *const *)b, c->ldb, beta, (T *const *)d, c->ldc, c->count); \
	}
TYPED(S, _v2, float)
TYPED(D, _v2, double)
TYPED(C, _v2, cuComplex)
TYPED(Z, _v2, cuDoubleComplex)
TYPED(H, , __half)

static cublasStatus_t general(const struct call *c, const void *alpha, const void *beta, void *a, void *b, void *d)
{
	const struct kind *k = c->kind;

	if (c->form == PLAIN && c->typed && k->scale == CUDA_R_32F)
		return cublasSgemmEx(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, a, k->in, c->lda, b, k->in, c->ldb, beta, d, k->out, c->ldc);
	if (c->form == PLAIN)
		return cublasGemmEx(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, a, k->in, c->lda, b, k->in, c->ldb, beta, d, k->out,
			c->ldc, k->compute, CUBLAS_GEMM_DEFAULT);
	if (c->form == STRIDED)
		return cublasGemmStridedBatchedEx(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, a, k->in, c->lda, (long long)c->size_a,
			b, k->in, c->ldb, (long long)c->size_b, beta, d, k->out, c->ldc, (long long)c->size_c, c->count, k->compute, CUBLAS_GEMM_DEFAULT);
	return cublasGemmBatchedEx(handle(), c->transa, c->transb, c->m, c->n, c->k, alpha, (const void *const *)a, k->in, c->lda,
		(const void *const *)b, k->in, c->ldb, beta, (void *const *)d, k->out, c->ldc, c->count, k->compute, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t perform(const struct call *c, const void *alpha, const void *beta, void *a, void *b, void *d)
{
	switch (c->typed ? c->kind->letter : 0) {
	case 'S': return typed_S(c, alpha, beta, a, b, d);
	case 'D': return typed_D(c, alpha, beta, a, b, d);
	case 'C': return typed_C(c, alpha, beta, a, b, d);
	case 'Z': return typed_Z(c, alpha, beta, a, b, d);
	case 'H': return typed_H(c, alpha, beta, a, b, d);
	default: return general(c, alpha, beta, a, b, d);
	}
}

static void multiply(struct call *c)
{
	size_t in = type_size(c->kind->in), out = type_size(c->kind->out), bytes_c = c->size_c * out;
	void *a = on_device(0, c->a, c->size_a * in * (size_t)c->count), *b = on_device(1, c->b, c->size_b * in * (size_t)c->count);
	void *d = on_device(2, c->c, bytes_c * (size_t)c->count), *first = d;
	char factors[2][16];
	void *alpha = factors[0], *beta = factors[1];

	put(c->kind->scale, factors[0], 0, c->alpha);
	put(c->kind->scale, factors[1], 0, c->beta);
	if (c->device_factors) {
		alpha = on_device(3, factors, sizeof factors);
		beta = (char *)alpha + sizeof factors[0];
		OK(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_DEVICE));
	}
	if (c->form == ARRAYS) {
		a = pointers(4, a, c->size_a * in, c->count);
		b = pointers(5, b, c->size_b * in, c->count);
		d = pointers(6, d, bytes_c, c->count);
	}
	OK(perform(c, alpha, beta, a, b, d));
	OK(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_HOST));
	from_device(c->result, (CUdeviceptr)(uintptr_t)first, bytes_c * (size_t)c->count);
}

static value element(cudaDataType type, const void *p, cublasOperation_t op, int ld, size_t offset, int row, int column)
{
	value v = get(type, p, offset + (op == CUBLAS_OP_N ? (size_t)row + (size_t)column * (size_t)ld : (size_t)column + (size_t)row * (size_t)ld));

	return op == CUBLAS_OP_C ? conjl(v) : v;
}

/* Compares an element with its expected value. The error bound: each of the k + 3 roundings of a
 * sum (twice as many for complex numbers) is at most a unit of the terms' sizes, and the result is
 * rounded to its type. */
static void compare(const struct call *c, int z, int i, int j)
{
	const struct kind *k = c->kind;
	size_t at = (size_t)z * c->size_c + (size_t)i + (size_t)j * (size_t)c->ldc;
	cudaDataType sums = type_unit(k->in) > type_unit(CUDA_R_32F) || k->in == CUDA_R_8I ? (k->out == CUDA_R_32I ? CUDA_R_32I : CUDA_R_32F) : k->in;
	value sum = 0, want = 0, got = get(k->out, c->result, at), alpha = rounded(k->scale, c->alpha), beta = rounded(k->scale, c->beta);
	long double sizes = 0, error;

	for (int l = 0; l < c->k && alpha != 0; l++) {
		value a = element(k->in, c->a, c->transa, c->lda, (size_t)z * c->size_a, i, l);
		value b = element(k->in, c->b, c->transb, c->ldb, (size_t)z * c->size_b, l, j);

		sum += a * b;
		sizes += size_of(a) * size_of(b);
	}
	if (alpha != 0)
		want = alpha * sum;
	sizes *= size_of(alpha);
	if (beta != 0) {
		value old = get(k->out, c->c, at);

		want += beta * old;
		sizes += size_of(beta) * size_of(old);
	}
	error = type_unit(sums) * (c->k + 3) * (type_complex(k->in) ? 2 : 1) * sizes;
	error += type_unit(k->out) * (size_of(want) + error) + (k->out == CUDA_R_16F ? 0x1p-25L : 0);
	near_value(k->name, i, j, got, want, error);
}

static void verify(const struct call *c)
{
	size_t size = type_size(c->kind->out);

	for (int z = 0; z < c->count; z++) {
		for (int j = 0; j < c->n; j++)
			for (int i = 0; i < c->m; i++)
				compare(c, z, i, j);
		/* The gaps between the columns have not changed. */
		for (int j = 0; j < c->n; j++) {
			size_t gap = ((size_t)z * c->size_c + (size_t)(j * c->ldc + c->m)) * size;

			ASSERT(memcmp((char *)c->result + gap, (char *)c->c + gap, (size_t)(c->ldc - c->m) * size) == 0);
		}
	}
}

static void run(struct call c)
{
	prepare(&c);
	multiply(&c);
	verify(&c);
	free(c.a);
	free(c.b);
	free(c.c);
	free(c.result);
}

static value choice(const struct kind *k, int which)
{
	if (which < 2)
		return which;
	return k->scale == CUDA_R_32I ? 3 : type_complex(k->scale) ? 0.75L - 1.25L * I : -1.25L;
}

/* Sizes around those of a tile, 0, several tiles, and vectors. */
static const int sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {64, 32, 8}, {65, 33, 17}, {20, 9, 0}, {3, 70, 9}, {130, 3, 16}, {40, 1, 70}, {1, 65, 20}};

void test_gemm(void)
{
	int turn = 0;

	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
		for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++)
			for (int ops = 0; ops < 9; ops++, turn++) {
				enum form form = s == 2 || s == 3 || (s > 6 && ops % 2) ? PLAIN : (enum form)((ops + ops / 3 + s) % FORMS);

				/* Each size of a pair of operations uses other factors. */
				run((struct call){.kind = &kinds[kind], .form = form, .typed = (ops + s) % 2, .device_factors = turn % 5 == 0,
					.transa = (cublasOperation_t)(ops / 3), .transb = (cublasOperation_t)(ops % 3),
					.m = sizes[s][0], .n = sizes[s][1], .k = sizes[s][2], .count = form == PLAIN ? 1 : 3,
					.alpha = choice(&kinds[kind], (ops + s) % 3), .beta = choice(&kinds[kind], (ops / 3 + s / 3 + (int)kind) % 3)});
			}
}

/* Arguments that the documentation calls invalid values. Sizes of 0 are valid. */
void test_gemm_bad(void)
{
	float one = 1, *p = (float *)(uintptr_t)device_memory(0, 4096);
	cublasHandle_t h = handle();

#define SGEMM(ta, tb, m, n, k, alpha, lda, ldb, beta, c, ldc) \
	cublasSgemm(h, (cublasOperation_t)(ta), (cublasOperation_t)(tb), m, n, k, alpha, p, lda, p, ldb, beta, c, ldc)
	WANT(SGEMM(0, 0, -1, 2, 2, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 2, -1, 2, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 2, 2, -1, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(4, 0, 2, 2, 2, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, -1, 2, 2, 2, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 3, 2, 2, &one, 2, 2, &one, p, 3), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(1, 0, 2, 2, 3, &one, 2, 3, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 2, 2, 3, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 1, 2, 3, 2, &one, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 3, 2, 2, &one, 3, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 0, 0, 0, &one, 0, 1, &one, p, 1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 2, 2, 2, NULL, 2, 2, &one, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 2, 2, 2, &one, 2, 2, NULL, p, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(SGEMM(0, 0, 2, 2, 2, &one, 2, 2, &one, NULL, 2), CUBLAS_STATUS_INVALID_VALUE);
	OK(SGEMM(0, 0, 0, 2, 2, &one, 1, 2, &one, NULL, 1));
	OK(SGEMM(0, 0, 2, 0, 2, &one, 2, 2, &one, NULL, 2));
#undef SGEMM
	WANT(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p, 2, 4, p, 2, 4, &one, p, 2, 4, -1), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p, 2, 4, p, 2, 4, &one, p, 2, 4, 0));
#define EX(a, b, c, compute) \
	cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p, a, 2, p, b, 2, &one, p, c, 2, compute, CUBLAS_GEMM_DEFAULT)
	WANT(EX(CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
	WANT(EX(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
	WANT(EX(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
	WANT(EX(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, (cublasComputeType_t)999), CUBLAS_STATUS_NOT_SUPPORTED);
#undef EX
	WANT(cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p, 2, p, 2, &one, p, 2), CUBLAS_STATUS_NOT_INITIALIZED);
}
