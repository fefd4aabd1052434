#include "gemm.h"

static const struct gemm_kind kinds[] = {
	{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, K_gemm_f32, GEMM_WIDE, K_gemv_f32},
	{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, K_gemm_f64, GEMM_NARROW, K_gemv_f64},
	{CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, K_gemm_c32, GEMM_NARROW, K_gemv_c32},
	{CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, K_gemm_c64, GEMM_NARROW, K_gemv_c64},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, K_gemm_f16, GEMM_WIDE, K_gemv_f16},
	{CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, K_gemm_f16_f32, GEMM_WIDE, KERNELS},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, K_gemm_bf16, GEMM_WIDE, K_gemv_bf16},
	{CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, K_gemm_bf16_f32, GEMM_WIDE, KERNELS},
	{CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, K_gemm_s8_s32, GEMM_WIDE, KERNELS},
	{CUDA_R_8I, CUDA_R_32F, CUDA_R_32F, K_gemm_s8_f32, GEMM_WIDE, KERNELS},
};

/* Returns the type in which a compute type adds, as the type of real factors. The "fast" types
 * allow less precision, which is not used. */
static int computed_in(cublasComputeType_t compute)
{
	switch ((int)compute) {
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
	case CUBLAS_COMPUTE_32F:
	case CUBLAS_COMPUTE_32F_PEDANTIC:
	case CUBLAS_COMPUTE_32F_FAST_16F:
	case CUBLAS_COMPUTE_32F_FAST_16BF:
	case CUBLAS_COMPUTE_32F_FAST_TF32: return CUDA_R_32F;
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC: return CUDA_R_64F;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
	default: return -1;
	}
}

static int real_part(cudaDataType type)
{
	return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}

const struct gemm_kind *gemm_find(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute)
{
	int in = computed_in(compute);

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct gemm_kind *k = &kinds[i];

		/* Products of f16 are added in f32, even if f16 would be enough. */
		if (k->in == a && a == b && k->out == c &&
		    (real_part(k->scale) == in || (in == CUDA_R_16F && a == CUDA_R_16F && c == CUDA_R_16F)))
			return k;
	}
	return NULL;
}

cudaDataType gemm_scale(const struct gemm_kind *kind, cublasComputeType_t compute)
{
	return computed_in(compute) == CUDA_R_16F ? CUDA_R_16F : kind->scale;
}

static int more(int a, int b)
{
	return a > b ? a : b;
}

static bool is_operation(cublasOperation_t op)
{
	return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

static cublasStatus_t check(const struct product *p, const struct blas_scalar *alpha)
{
	if (p->m < 0 || p->n < 0 || p->k < 0 || p->batch < 0 || !is_operation(p->transa) || !is_operation(p->transb) ||
	    p->lda < more(1, p->transa == CUBLAS_OP_N ? p->m : p->k) || p->ldb < more(1, p->transb == CUBLAS_OP_N ? p->k : p->n) ||
	    p->ldc < more(1, p->m))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (p->m == 0 || p->n == 0 || p->batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	if (!p->c || (p->k > 0 && !is_nothing(alpha) && (!p->a || !p->b)))
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

static struct blas_matrix factor_matrix(const void *p, cublasOperation_t op, int ld, long long stride)
{
	bool plain = op == CUBLAS_OP_N;

	return (struct blas_matrix){.p = p, .row = plain ? 1 : ld, .column = plain ? ld : 1, .batch = stride};
}

cublasStatus_t gemm_product(cublasHandle_t h, const struct gemm_kind *kind, const struct product *p, struct blas_scalar alpha,
	struct blas_scalar beta)
{
	struct gemm_args g = {
		.a = factor_matrix(p->a, p->transa, p->lda, p->stride_a),
		.b = factor_matrix(p->b, p->transb, p->ldb, p->stride_b),
		.c = factor_matrix(p->c, CUBLAS_OP_N, p->ldc, p->stride_c),
		.d = factor_matrix(p->c, CUBLAS_OP_N, p->ldc, p->stride_c),
		.alpha = alpha,
		.beta = beta,
		.m = p->m,
		.n = p->n,
		.k = p->k,
		.batch = p->batch,
		.conjugate_a = p->transa == CUBLAS_OP_C,
		.conjugate_b = p->transb == CUBLAS_OP_C,
		.arrays = p->arrays,
	};
	cublasStatus_t status = check(p, &alpha);

	return status == CUBLAS_STATUS_SUCCESS ? gemm_launch(kind, &g, h->stream) : status;
}

/* Transposes a matrix: D's transpose is B's transpose times A's. */
static void transpose_matrix(struct blas_matrix *m)
{
	long long row = m->row;

	m->row = m->column;
	m->column = row;
}

static void transpose(struct gemm_args *g)
{
	struct blas_matrix a = g->a;
	int m = g->m, conjugate = g->conjugate_a;

	g->a = g->b;
	g->b = a;
	g->m = g->n;
	g->n = m;
	g->conjugate_a = g->conjugate_b;
	g->conjugate_b = conjugate;
	transpose_matrix(&g->a);
	transpose_matrix(&g->b);
	transpose_matrix(&g->c);
	transpose_matrix(&g->d);
	transpose_matrix(&g->bias);
	transpose_matrix(&g->aux);
}

/* Reports whether computing D's transpose is faster. Lanes are along D's rows, which should be
 * contiguous. If D has few rows or few columns, the smaller number should be the columns, of
 * which a block can have fewer. */
static bool better_transposed(const struct gemm_args *g)
{
	if (g->m < GEMM_LANES || g->n < GEMM_LANES)
		return g->n > g->m;
	return g->d.row != 1;
}

/* Reports whether gemv computes the same product. */
static bool is_vector(const struct gemm_kind *kind, const struct gemm_args *g)
{
	return kind->gemv != KERNELS && g->n == 1 && g->batch == 1 && !g->arrays && !g->conjugate_b && !g->nothing_at_zero && !g->bias.p &&
	       g->activation == BLAS_NONE && ((g->c.p == g->d.p && g->c.row == g->d.row) || is_nothing(&g->beta));
}

static cublasStatus_t launch_vector(const struct gemm_kind *kind, const struct gemm_args *g, CUstream stream)
{
	int rows = g->a.row == 1 ? GEMV_ROWS : GEMV_LINES; /* rows that a block computes */
	struct vector_args v = {.a = g->a.p, .x = g->b.p, .y = (void *)g->d.p, .alpha = g->alpha, .beta = g->beta, .row = g->a.row,
		.column = g->a.column, .incx = g->b.row, .incy = g->d.row, .m = g->m, .n = g->k, .conjugate = g->conjugate_a};

	return from_driver(kernel_launch(kind->gemv, (struct grid){((unsigned int)g->m + (unsigned int)rows - 1) / (unsigned int)rows, 1, 1},
		(struct grid){VECTOR_THREADS, 1, 1}, stream, &v));
}

cublasStatus_t gemm_launch(const struct gemm_kind *kind, struct gemm_args *g, CUstream stream)
{
	enum { MOST_BATCHES = 65535 }; /* the maximum of a grid's third dimension */
	long long columns = (long long)GEMM_LINES * kind->each, tiles;
	unsigned int lines;

	if (g->m == 0 || g->n == 0 || g->batch == 0)
		return CUBLAS_STATUS_SUCCESS;
	if (better_transposed(g))
		transpose(g);
	if (is_vector(kind, g))
		return launch_vector(kind, g, stream);
	lines = g->n < columns ? (unsigned int)((g->n + kind->each - 1) / kind->each) : GEMM_LINES;
	tiles = ((long long)g->m + GEMM_ROWS - 1) / GEMM_ROWS * ((g->n + columns - 1) / columns);
	if (tiles > INT32_MAX)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return from_driver(kernel_launch(kind->kernel, (struct grid){(unsigned int)tiles, 1, (unsigned int)(g->batch < MOST_BATCHES ? g->batch : MOST_BATCHES)},
		(struct grid){GEMM_LANES, lines, 1}, stream, g));
}
