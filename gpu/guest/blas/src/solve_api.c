/* Triangular systems, and factorizations of batches of small matrices. */
#include "gemm.h"

/* The differences between the types. */
struct solver {
	cudaDataType type;
	cublasComputeType_t compute;
	size_t size;
	enum kernel solve, getrf, pivot, geqrf;
};
#define SOLVER(t, T, type, compute) {type, compute, sizeof(T), K_solve_##t, K_getrf_##t, K_pivot_##t, K_geqrf_##t}
static const struct solver solver_S = SOLVER(f32, float, CUDA_R_32F, CUBLAS_COMPUTE_32F), solver_D = SOLVER(f64, double, CUDA_R_64F, CUBLAS_COMPUTE_64F),
			   solver_C = SOLVER(c32, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F), solver_Z = SOLVER(c64, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F);

/* T X = alpha B with T of any order, which is solved by blocked substitution. */
struct system {
	struct blas_matrix t, b;
	struct blas_scalar alpha;
	int order, columns, batch;
	bool lower, unit, conjugate, arrays;
};

static struct blas_matrix part(struct blas_matrix m, int row, int column)
{
	m.offset += row * m.row + column * m.column;
	return m;
}

/* Adds the offset to the pointer, because matrix() uses it only for arrays of pointers. */
static struct blas_matrix add_offset(struct blas_matrix m, bool arrays, size_t size)
{
	if (!arrays) {
		m.p = (const char *)m.p + m.offset * (long long)size;
		m.offset = 0;
	}
	return m;
}

static cublasStatus_t substitute(cublasHandle_t h, const struct solver *s, const struct system *y)
{
	enum { MOST_BATCHES = 65535 };
	const struct gemm_kind *kind = gemm_find(s->type, s->type, s->type, s->compute);
	unsigned int batches = (unsigned int)(y->batch < MOST_BATCHES ? y->batch : MOST_BATCHES);
	struct blas_scalar alpha = y->alpha;

	for (int done = 0; done < y->order; done += SOLVE_ORDER) {
		int n = y->order - done < SOLVE_ORDER ? y->order - done : SOLVE_ORDER, rest = y->order - done - n;
		int first = y->lower ? done : rest, next = y->lower ? done + n : 0;
		struct blas_matrix x = part(y->b, first, 0), left = part(y->b, next, 0);
		struct solve_args g = {.t = add_offset(part(y->t, first, first), y->arrays, s->size), .b = add_offset(x, y->arrays, s->size), .alpha = alpha,
			.order = n, .columns = y->columns, .batch = y->batch, .lower = y->lower, .unit = y->unit, .conjugate = y->conjugate,
			.arrays = y->arrays};
		struct gemm_args update = {.a = add_offset(part(y->t, next, first), y->arrays, s->size), .b = add_offset(x, y->arrays, s->size),
			.c = add_offset(left, y->arrays, s->size), .d = add_offset(left, y->arrays, s->size), .alpha = constant(-1), .beta = alpha,
			.m = rest, .n = y->columns, .k = n, .batch = y->batch, .conjugate_a = y->conjugate, .arrays = y->arrays, .nothing_at_zero = 1};
		cublasStatus_t status = from_driver(kernel_launch(s->solve,
			(struct grid){((unsigned int)y->columns + SOLVE_COLUMNS - 1) / SOLVE_COLUMNS, 1, batches}, (struct grid){SOLVE_COLUMNS, 1, 1},
			h->stream, &g));

		if (status == CUBLAS_STATUS_SUCCESS)
			status = gemm_launch(kind, &update, h->stream);
		if (status != CUBLAS_STATUS_SUCCESS)
			return status;
		alpha = constant(1); /* the first step has multiplied all of B */
	}
	return CUBLAS_STATUS_SUCCESS;
}

static bool is_operation(cublasOperation_t op)
{
	return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

/* The arguments of a call that describe a triangular matrix. */
struct triangle {
	cublasSideMode_t side;
	cublasFillMode_t uplo;
	cublasOperation_t trans;
	cublasDiagType_t diag;
};

/* Solves both sides: X op(A) = B is op(A)^T X^T = B^T. */
static cublasStatus_t trsm(cublasHandle_t h, const struct solver *s, struct triangle a, int m, int n, const void *alpha,
	const void *A, int lda, void *B, int ldb, int batch, bool arrays)
{
	bool left = a.side == CUBLAS_SIDE_LEFT, turned = (a.trans != CUBLAS_OP_N) == left;
	struct system y = {.t = {.p = A, .row = turned ? lda : 1, .column = turned ? 1 : lda},
		.b = {.p = B, .row = left ? 1 : ldb, .column = left ? ldb : 1}, .order = left ? m : n, .columns = left ? n : m, .batch = batch,
		.lower = (a.uplo == CUBLAS_FILL_MODE_LOWER) != turned, .unit = a.diag == CUBLAS_DIAG_UNIT, .conjugate = a.trans == CUBLAS_OP_C,
		.arrays = arrays};
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if ((!left && a.side != CUBLAS_SIDE_RIGHT) || (a.uplo != CUBLAS_FILL_MODE_LOWER && a.uplo != CUBLAS_FILL_MODE_UPPER) ||
	    !is_operation(a.trans) || (a.diag != CUBLAS_DIAG_UNIT && a.diag != CUBLAS_DIAG_NON_UNIT) || m < 0 || n < 0 || batch < 0 || !alpha ||
	    lda < 1 || lda < y.order || ldb < 1 || ldb < m)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (m == 0 || n == 0 || batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	y.alpha = factor(h, alpha, s->type);
	if (!B || (!A && !is_nothing(&y.alpha)))
		return CUBLAS_STATUS_INVALID_VALUE;
	return substitute(h, s, &y);
}

/* Launches a kernel with one block of threads for each matrix. */
static cublasStatus_t factorize(cublasHandle_t h, enum kernel k, const struct factor_args *g)
{
	return from_driver(kernel_launch(k, (struct grid){(unsigned int)g->batch, 1, 1}, (struct grid){FACTOR_THREADS, 1, 1}, h->stream, g));
}

/* Reports whether the kernels can count the elements of a matrix in 32 bits. */
static bool countable(int rows, int columns)
{
	return (long long)rows * columns <= INT32_MAX - FACTOR_THREADS;
}

static cublasStatus_t getrf(cublasHandle_t h, const struct solver *s, int n, void *const *a, int lda, int *pivots, int *info, int batch)
{
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (n < 0 || batch < 0 || lda < 1 || lda < n)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	if (!info || (n > 0 && !a))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!countable(n, n))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return factorize(h, s->getrf, &(struct factor_args){.a = a, .pivots = pivots, .info = info, .lda = lda, .m = n, .n = n, .batch = batch});
}

/* Returns -i for the first invalid parameter i, which info gets, or 0 if all are valid. Parameters
 * are counted as in LAPACK, without the handle. */
static int first_bad(const bool *good, int count)
{
	for (int i = 0; i < count; i++)
		if (!good[i])
			return -(i + 1);
	return 0;
}

static cublasStatus_t triangle_of(cublasHandle_t h, const struct solver *s, cublasOperation_t trans, bool lower, int n, int columns,
	const void *a, int lda, void *b, int ldb, int batch)
{
	bool turned = trans != CUBLAS_OP_N;

	return substitute(h, s, &(struct system){.t = {.p = a, .row = turned ? lda : 1, .column = turned ? 1 : lda},
		.b = {.p = b, .row = 1, .column = ldb}, .alpha = constant(1), .order = n, .columns = columns, .batch = batch, .lower = lower != turned,
		.unit = lower, .conjugate = trans == CUBLAS_OP_C, .arrays = true});
}

/* Solves op(P L U) X = B. */
static cublasStatus_t getrs(cublasHandle_t h, const struct solver *s, cublasOperation_t trans, int n, int columns, const void *a, int lda,
	const int *pivots, void *b, int ldb, int *info, int batch)
{
	bool plain = trans == CUBLAS_OP_N;
	struct factor_args exchange = {.c = b, .pivots = (int *)pivots, .ldc = ldb, .n = n, .columns = columns, .batch = batch, .backward = !plain};
	const bool good[] = {is_operation(trans), n >= 0, columns >= 0, a || n == 0 || batch == 0, lda >= 1 && lda >= n, true,
		b || n == 0 || columns == 0 || batch == 0, ldb >= 1 && ldb >= n, true, batch >= 0};
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!info)
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((*info = first_bad(good, sizeof good / sizeof *good)) != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (n == 0 || columns == 0 || batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	if (plain && pivots)
		status = factorize(h, s->pivot, &exchange);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = triangle_of(h, s, trans, plain, n, columns, a, lda, b, ldb, batch);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = triangle_of(h, s, trans, !plain, n, columns, a, lda, b, ldb, batch);
	if (status == CUBLAS_STATUS_SUCCESS && !plain && pivots)
		status = factorize(h, s->pivot, &exchange);
	return status;
}

static cublasStatus_t geqrf(cublasHandle_t h, const struct solver *s, int m, int n, void *const *a, int lda, void *const *tau, int *info, int batch)
{
	const bool good[] = {m >= 0, n >= 0, a || m == 0 || n == 0 || batch == 0, lda >= 1 && lda >= m, tau || m == 0 || n == 0 || batch == 0, true,
		batch >= 0};
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!info)
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((*info = first_bad(good, sizeof good / sizeof *good)) != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (m == 0 || n == 0 || batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	return factorize(h, s->geqrf, &(struct factor_args){.a = a, .tau = tau, .lda = lda, .m = m, .n = n, .batch = batch});
}

/* Solves least-squares problems with at least as many rows as columns, which are the documented
 * ones. */
static cublasStatus_t gels(cublasHandle_t h, const struct solver *s, cublasOperation_t trans, int m, int n, int columns, void *const *a, int lda,
	void *const *c, int ldc, int *info, int *device_info, int batch)
{
	const bool good[] = {trans == CUBLAS_OP_N, m >= 0, n >= 0, columns >= 0, a || n == 0 || batch == 0, lda >= 1 && lda >= m,
		c || columns == 0 || n == 0 || batch == 0, ldc >= 1 && ldc >= m, true, true, batch >= 0};
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!info)
		return CUBLAS_STATUS_INVALID_VALUE;
	*info = 0;
	if (is_operation(trans) && (trans != CUBLAS_OP_N || m < n))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if ((*info = first_bad(good, sizeof good / sizeof *good)) != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (m == 0 || n == 0 || columns == 0 || batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	if (!countable(n, columns))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return factorize(h, s->geqrf, &(struct factor_args){.a = a, .c = c, .info = device_info, .lda = lda, .ldc = ldc, .m = m, .n = n,
		.columns = columns, .batch = batch});
}

#define SOLVE(L, T) \
	CUBLASAPI cublasStatus_t cublas##L##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, \
		cublasDiagType_t diag, int m, int n, const T *alpha, const T *A, int lda, T *B, int ldb) \
	{ \
		return trsm(handle, &solver_##L, (struct triangle){side, uplo, trans, diag}, m, n, alpha, A, lda, B, ldb, 1, false); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
		cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha, const T *const A[], int lda, T *const B[], int ldb, \
		int count) \
	{ \
		return trsm(handle, &solver_##L, (struct triangle){side, uplo, trans, diag}, m, n, alpha, A, lda, (void *)B, ldb, count, true); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##getrfBatched(cublasHandle_t handle, int n, T *const A[], int lda, int *pivots, int *info, int count) \
	{ \
		return getrf(handle, &solver_##L, n, (void *const *)A, lda, pivots, info, count); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##getrsBatched(cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs, const T *const A[], \
		int lda, const int *pivots, T *const B[], int ldb, int *info, int count) \
	{ \
		return getrs(handle, &solver_##L, trans, n, nrhs, A, lda, pivots, (void *)B, ldb, info, count); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##geqrfBatched(cublasHandle_t handle, int m, int n, T *const A[], int lda, T *const tau[], int *info, \
		int count) \
	{ \
		return geqrf(handle, &solver_##L, m, n, (void *const *)A, lda, (void *const *)tau, info, count); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, int nrhs, T *const A[], \
		int lda, T *const C[], int ldc, int *info, int *device_info, int count) \
	{ \
		return gels(handle, &solver_##L, trans, m, n, nrhs, (void *const *)A, lda, (void *const *)C, ldc, info, device_info, count); \
	}
SOLVE(S, float)
SOLVE(D, double)
SOLVE(C, cuComplex)
SOLVE(Z, cuDoubleComplex)
