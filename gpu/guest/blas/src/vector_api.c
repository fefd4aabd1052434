/* Vectors, and matrix times vector. */
#include "handle.h"
#include "kernel.h"

static cublasStatus_t launch(cublasHandle_t h, enum kernel k, long long blocks, const struct vector_args *g)
{
	return from_driver(kernel_launch(k, (struct grid){(unsigned int)blocks, 1, 1}, (struct grid){VECTOR_THREADS, 1, 1}, h->stream, g));
}

/* Launches a kernel that computes something for each element. */
static cublasStatus_t each(cublasHandle_t h, enum kernel k, const struct vector_args *g)
{
	enum { MOST_BLOCKS = 4096 }; /* with more, a thread computes several elements */
	long long blocks = ((long long)g->n + VECTOR_THREADS - 1) / VECTOR_THREADS;

	if (g->n <= 0) /* no effect, as documented */
		return CUBLAS_STATUS_SUCCESS;
	if ((!g->x && g->incx != 0) || !g->y)
		return CUBLAS_STATUS_INVALID_VALUE;
	return launch(h, k, blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, g);
}

/* Launches a kernel with one number as its result, of the given size. The handle's pointer mode
 * determines where it is stored. In host memory it is valid when the call returns. */
static cublasStatus_t reduce(cublasHandle_t h, enum kernel k, struct vector_args *g, void *result, size_t bytes)
{
	bool to_host = h->pointers == CUBLAS_POINTER_MODE_HOST;
	cublasStatus_t status;
	CUresult err;

	if (!result || (g->n > 0 && (!g->x || (g->incy != 0 && !g->y))))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (g->n < 0)
		g->n = 0;
	g->result = to_host ? (void *)(uintptr_t)h->result : result;
	if (to_host)
		pthread_mutex_lock(&h->results);
	status = launch(h, k, 1, g);
	if (to_host) {
		if (status == CUBLAS_STATUS_SUCCESS && ((err = driver.cuMemcpyDtoHAsync(result, h->result, bytes, h->stream)) != CUDA_SUCCESS ||
							(err = driver.cuStreamSynchronize(h->stream)) != CUDA_SUCCESS))
			status = from_driver(err);
		pthread_mutex_unlock(&h->results);
	}
	return status;
}

static cublasStatus_t dot(cublasHandle_t h, enum kernel k, int n, const void *x, int incx, const void *y, int incy, int conjugate, void *result,
	size_t bytes)
{
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	return reduce(h, k, &(struct vector_args){.x = x, .y = (void *)y, .n = n, .incx = incx, .incy = incy, .conjugate = conjugate}, result, bytes);
}

/* Computes a norm of x. It is 0 if the step is not positive. */
static cublasStatus_t norm(cublasHandle_t h, enum kernel k, int n, const void *x, int incx, void *result, size_t bytes)
{
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	return reduce(h, k, &(struct vector_args){.x = x, .n = incx > 0 ? n : 0, .incx = incx}, result, bytes);
}

static cublasStatus_t axpy(cublasHandle_t h, enum kernel k, cudaDataType type, int n, const void *alpha, const void *x, int incx, void *y, int incy)
{
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!alpha)
		return CUBLAS_STATUS_INVALID_VALUE;
	return each(h, k, &(struct vector_args){.x = x, .y = y, .n = n, .incx = incx, .incy = incy, .alpha = factor(h, alpha, type)});
}

static cublasStatus_t scal(cublasHandle_t h, enum kernel k, cudaDataType type, int n, const void *alpha, void *x, int incx)
{
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!alpha)
		return CUBLAS_STATUS_INVALID_VALUE;
	return each(h, k, &(struct vector_args){.y = x, .n = incx > 0 ? n : 0, .incy = incx, .alpha = factor(h, alpha, type)});
}

static cublasStatus_t move(cublasHandle_t h, enum kernel k, int n, const void *x, int incx, void *y, int incy)
{
	cublasStatus_t status = enter(h);

	return status != CUBLAS_STATUS_SUCCESS ? status : each(h, k, &(struct vector_args){.x = x, .y = y, .n = n, .incx = incx, .incy = incy});
}

static cublasStatus_t gemv(cublasHandle_t h, enum kernel k, cudaDataType type, cublasOperation_t trans, int m, int n, const void *alpha,
	const void *a, int lda, const void *x, int incx, const void *beta, void *y, int incy)
{
	bool plain = trans == CUBLAS_OP_N;
	struct vector_args g = {.a = a, .x = x, .y = y, .row = plain ? 1 : lda, .column = plain ? lda : 1, .incx = incx, .incy = incy,
		.m = plain ? m : n, .n = plain ? n : m, .conjugate = trans == CUBLAS_OP_C};
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if ((!plain && trans != CUBLAS_OP_T && trans != CUBLAS_OP_C) || m < 0 || n < 0 || lda < 1 || lda < m || incx == 0 || incy == 0 || !alpha ||
	    !beta)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (m == 0 || n == 0) /* as in the reference BLAS, y is not changed */
		return CUBLAS_STATUS_SUCCESS;
	g.alpha = factor(h, alpha, type);
	g.beta = factor(h, beta, type);
	if (!y || (!is_nothing(&g.alpha) && (!a || !x)))
		return CUBLAS_STATUS_INVALID_VALUE;
	return launch(h, k, g.row == 1 ? ((long long)g.m + GEMV_ROWS - 1) / GEMV_ROWS : ((long long)g.m + GEMV_LINES - 1) / GEMV_LINES, &g);
}

#define VECTORS(L, T, t, type) \
	CUBLASAPI cublasStatus_t cublas##L##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y, int incy) \
	{ \
		return axpy(handle, K_axpy_##t, type, n, alpha, x, incx, y, incy); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx) \
	{ \
		return scal(handle, K_scal_##t, type, n, alpha, x, incx); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy) \
	{ \
		return move(handle, K_copy_##t, n, x, incx, y, incy); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##swap_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy) \
	{ \
		return move(handle, K_swap_##t, n, x, incx, y, incy); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha, \
		const T *A, int lda, const T *x, int incx, const T *beta, T *y, int incy) \
	{ \
		return gemv(handle, K_gemv_##t, type, trans, m, n, alpha, A, lda, x, incx, beta, y, incy); \
	}
VECTORS(S, float, f32, CUDA_R_32F)
VECTORS(D, double, f64, CUDA_R_64F)
VECTORS(C, cuComplex, c32, CUDA_C_32F)
VECTORS(Z, cuDoubleComplex, c64, CUDA_C_64F)

#define DOT(name, T, t, conjugate) \
	CUBLASAPI cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy, T *result) \
	{ \
		return dot(handle, K_dot_##t, n, x, incx, y, incy, conjugate, result, sizeof *result); \
	}
DOT(Sdot, float, f32, 0)
DOT(Ddot, double, f64, 0)
DOT(Cdotu, cuComplex, c32, 0)
DOT(Cdotc, cuComplex, c32, 1)
DOT(Zdotu, cuDoubleComplex, c64, 0)
DOT(Zdotc, cuDoubleComplex, c64, 1)

#define NORM(name, T, R, kernel) \
	CUBLASAPI cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const T *x, int incx, R *result) \
	{ \
		return norm(handle, K_##kernel, n, x, incx, result, sizeof *result); \
	}
NORM(Snrm2, float, float, nrm2_f32)
NORM(Dnrm2, double, double, nrm2_f64)
NORM(Scnrm2, cuComplex, float, nrm2_c32)
NORM(Dznrm2, cuDoubleComplex, double, nrm2_c64)
NORM(Sasum, float, float, asum_f32)
NORM(Dasum, double, double, asum_f64)
NORM(Scasum, cuComplex, float, asum_c32)
NORM(Dzasum, cuDoubleComplex, double, asum_c64)

static cublasStatus_t dot_ex(cublasHandle_t h, int n, const void *x, cudaDataType x_type, int incx, const void *y, cudaDataType y_type, int incy,
	int conjugate, void *result, cudaDataType result_type, cudaDataType execution)
{
	static const struct {
		cudaDataType type, execution;
		enum kernel kernel;
		size_t bytes;
	} rows[] = {
		{CUDA_R_16F, CUDA_R_32F, K_dot_f16, 2},
		{CUDA_R_16BF, CUDA_R_32F, K_dot_bf16, 2},
		{CUDA_R_32F, CUDA_R_32F, K_dot_f32, 4},
		{CUDA_R_64F, CUDA_R_64F, K_dot_f64, 8},
		{CUDA_C_32F, CUDA_C_32F, K_dot_c32, 8},
		{CUDA_C_64F, CUDA_C_64F, K_dot_c64, 16},
	};
	cublasStatus_t status = enter(h);

	for (size_t i = 0; i < sizeof rows / sizeof *rows && status == CUBLAS_STATUS_SUCCESS; i++)
		if (rows[i].type == x_type && x_type == y_type && y_type == result_type && rows[i].execution == execution)
			return dot(h, rows[i].kernel, n, x, incx, y, incy, conjugate, result, rows[i].bytes);
	return status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

CUBLASAPI cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx,
	const void *y, cudaDataType yType, int incy, void *result, cudaDataType resultType, cudaDataType executionType)
{
	return dot_ex(handle, n, x, xType, incx, y, yType, incy, 0, result, resultType, executionType);
}

CUBLASAPI cublasStatus_t cublasDotcEx(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx,
	const void *y, cudaDataType yType, int incy, void *result, cudaDataType resultType, cudaDataType executionType)
{
	return dot_ex(handle, n, x, xType, incx, y, yType, incy, 1, result, resultType, executionType);
}
