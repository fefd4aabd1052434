/* cublasLtMatmul: D = epilogue(alpha op(A) op(B) + beta C + bias). */
#include "lt.h"

#define ALGO_MAGIC 0x4c54a160ull /* the only algorithm */

/* The parts of an epilogue. */
static const struct epilogue {
	uint32_t id;
	enum blas_activation activation;
	bool bias, aux;
} epilogues[] = {
	{CUBLASLT_EPILOGUE_DEFAULT, BLAS_NONE, false, false},
	{CUBLASLT_EPILOGUE_BIAS, BLAS_NONE, true, false},
	{CUBLASLT_EPILOGUE_RELU, BLAS_RELU, false, false},
	{CUBLASLT_EPILOGUE_RELU_BIAS, BLAS_RELU, true, false},
	{CUBLASLT_EPILOGUE_GELU, BLAS_GELU, false, false},
	{CUBLASLT_EPILOGUE_GELU_BIAS, BLAS_GELU, true, false},
	{CUBLASLT_EPILOGUE_GELU_AUX, BLAS_GELU, false, true},
	{CUBLASLT_EPILOGUE_GELU_AUX_BIAS, BLAS_GELU, true, true},
	{CUBLASLT_EPILOGUE_DGELU, BLAS_GELU_GRADIENT, false, true},
};

static const struct epilogue *find_epilogue(uint32_t id)
{
	for (size_t i = 0; i < sizeof epilogues / sizeof *epilogues; i++)
		if (epilogues[i].id == id)
			return &epilogues[i];
	return NULL;
}

/* The descriptions of a product. */
struct described {
	const struct cublasLtMatmulDesc *desc;
	const struct cublasLtMatrixLayout *a, *b, *c, *d;
};

static bool is_operation(int op)
{
	return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

/* Return the rows and columns of op(X). */
static uint64_t rows_of(const struct cublasLtMatrixLayout *x, int op)
{
	return op == CUBLAS_OP_N ? x->rows : x->columns;
}

static uint64_t columns_of(const struct cublasLtMatrixLayout *x, int op)
{
	return op == CUBLAS_OP_N ? x->columns : x->rows;
}

static bool layout_holds(const struct cublasLtMatrixLayout *x)
{
	uint64_t least = x->order == CUBLASLT_ORDER_ROW ? x->columns : x->rows;

	return x->rows <= INT32_MAX && x->columns <= INT32_MAX && x->ld >= 0 && (uint64_t)x->ld >= least && x->batch >= 1;
}

/* Checks a product. Sizes that do not fit are invalid; products without a kernel are not
 * supported. */
static cublasStatus_t check(const struct described *p, const struct gemm_kind **kind, const struct epilogue **epilogue)
{
	const struct cublasLtMatmulDesc *desc = p->desc;
	const struct cublasLtMatrixLayout *all[] = {p->a, p->b, p->c, p->d};

	if (!lt_is(desc, DESC_MAGIC))
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		if (!lt_is(all[i], LAYOUT_MAGIC) || !layout_holds(all[i]) || all[i]->batch != p->d->batch)
			return CUBLAS_STATUS_INVALID_VALUE;
	if (!is_operation(desc->transa) || !is_operation(desc->transb) || rows_of(p->a, desc->transa) != p->d->rows ||
	    columns_of(p->b, desc->transb) != p->d->columns || columns_of(p->a, desc->transa) != rows_of(p->b, desc->transb) ||
	    p->c->rows != p->d->rows || p->c->columns != p->d->columns)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		if ((all[i]->order != CUBLASLT_ORDER_COL && all[i]->order != CUBLASLT_ORDER_ROW) || all[i]->plane != 0)
			return CUBLAS_STATUS_NOT_SUPPORTED;
	*kind = gemm_find((cudaDataType)p->a->type, (cudaDataType)p->b->type, (cudaDataType)p->d->type, (cublasComputeType_t)desc->compute);
	*epilogue = find_epilogue(desc->epilogue);
	if (!*kind || !*epilogue || p->c->type != p->d->type || desc->scale != (int)gemm_scale(*kind, (cublasComputeType_t)desc->compute) ||
	    (desc->pointers != CUBLASLT_POINTER_MODE_HOST && desc->pointers != CUBLASLT_POINTER_MODE_DEVICE) || desc->transc != CUBLAS_OP_N ||
	    desc->fill != CUBLAS_FILL_MODE_FULL || desc->scale_a || desc->scale_b || desc->scale_c || desc->scale_d || desc->amax_d ||
	    desc->aux_scale || desc->aux_amax)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT)
		return CUBLAS_STATUS_SUCCESS;
	/* Epilogues are computed in f32; bias and aux have D's type. */
	if ((*kind)->scale != CUDA_R_32F || ((*epilogue)->bias && desc->bias_type != -1 && desc->bias_type != p->d->type) ||
	    ((*epilogue)->aux && desc->aux_type != -1 && desc->aux_type != p->d->type))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return CUBLAS_STATUS_SUCCESS;
}

static struct blas_matrix matrix_of(const void *p, const struct cublasLtMatrixLayout *x, int op)
{
	bool along = (x->order == CUBLASLT_ORDER_COL) == (op == CUBLAS_OP_N);

	return (struct blas_matrix){.p = p, .row = along ? 1 : x->ld, .column = along ? x->ld : 1, .batch = x->stride};
}

/* Adds bias and aux of the epilogue. aux has D's order. */
static cublasStatus_t add_epilogue(struct gemm_args *g, const struct described *p, const struct epilogue *e)
{
	const struct cublasLtMatmulDesc *desc = p->desc;
	struct cublasLtMatrixLayout aux = *p->d;

	g->activation = e->activation;
	aux.ld = desc->aux_ld;
	aux.stride = desc->aux_stride;
	if ((e->bias && !desc->bias) || (e->aux && (!desc->aux || !layout_holds(&aux))))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (e->bias)
		g->bias = (struct blas_matrix){.p = desc->bias, .row = 1, .batch = desc->bias_stride};
	if (e->aux)
		g->aux = matrix_of(desc->aux, &aux, CUBLAS_OP_N);
	return CUBLAS_STATUS_SUCCESS;
}

CUBLASAPI cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
	cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C, cublasLtMatrixLayout_t c, void *D,
	cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
	struct described p = {desc, a, b, c, d};
	const struct gemm_kind *kind;
	const struct epilogue *epilogue;
	struct gemm_args g;
	cublasStatus_t status = enter(handle);

	(void)workspace;
	(void)workspace_bytes;
	if (status != CUBLAS_STATUS_SUCCESS || (status = check(&p, &kind, &epilogue)) != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!alpha || !beta || (algo && algo->data[0] != ALGO_MAGIC))
		return CUBLAS_STATUS_INVALID_VALUE;
	g = (struct gemm_args){.a = matrix_of(A, a, desc->transa), .b = matrix_of(B, b, desc->transb), .c = matrix_of(C, c, CUBLAS_OP_N),
		.d = matrix_of(D, d, CUBLAS_OP_N), .m = (int)d->rows, .n = (int)d->columns, .k = (int)columns_of(a, desc->transa), .batch = d->batch,
		.conjugate_a = desc->transa == CUBLAS_OP_C, .conjugate_b = desc->transb == CUBLAS_OP_C};
	if (desc->pointers == CUBLASLT_POINTER_MODE_DEVICE) {
		g.alpha = (struct blas_scalar){.device = alpha, .half = desc->scale == CUDA_R_16F};
		g.beta = (struct blas_scalar){.device = beta, .half = desc->scale == CUDA_R_16F};
	} else {
		g.alpha = host_factor(alpha, (cudaDataType)desc->scale);
		g.beta = host_factor(beta, (cudaDataType)desc->scale);
	}
	if (!D || (!C && !is_nothing(&g.beta)) || (g.k > 0 && !is_nothing(&g.alpha) && (!A || !B)))
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((status = add_epilogue(&g, &p, epilogue)) != CUBLAS_STATUS_SUCCESS)
		return status;
	return gemm_launch(kind, &g, stream);
}

/* There is one algorithm, which needs neither a workspace nor alignment. */
CUBLASAPI cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
	cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int requested,
	cublasLtMatmulHeuristicResult_t results[], int *returned)
{
	struct described p = {desc, a, b, c, d};
	const struct gemm_kind *kind;
	const struct epilogue *epilogue;
	cublasStatus_t status = enter(handle);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!lt_is(preference, PREFERENCE_MAGIC) || requested <= 0 || !results || !returned)
		return CUBLAS_STATUS_INVALID_VALUE;
	*returned = 0;
	if ((status = check(&p, &kind, &epilogue)) != CUBLAS_STATUS_SUCCESS)
		return status;
	results[0] = (cublasLtMatmulHeuristicResult_t){.algo.data[0] = ALGO_MAGIC, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
	*returned = 1;
	return CUBLAS_STATUS_SUCCESS;
}
