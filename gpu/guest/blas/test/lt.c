/* Compares cublasLtMatmul with sums in long double: types, transpositions, orders, batches and
 * epilogues. */
#include "cublasLt.h"
#include "test.h"

enum { M = 37, N = 34, K = 13 };

static const struct kind {
	const char *name;
	cudaDataType in, out, scale;
	cublasComputeType_t compute;
} kinds[] = {
	{"Lt f32", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
	{"Lt f64", CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
	{"Lt c32", CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F},
	{"Lt f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
	{"Lt f16 in f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F},
	{"Lt bf16", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
	{"Lt bf16 to f32", CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
	{"Lt s8", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
};

/* A matrix of a product, with gaps between its rows or columns and between matrices. */
struct operand {
	cudaDataType type;
	int rows, columns, ld, count;
	bool by_rows;
	size_t size; /* elements of one matrix */
	char *host;
	void *device;
	cublasLtMatrixLayout_t layout;
};

static struct operand operand_of(cudaDataType type, int slot, int rows, int columns, bool by_rows, int count)
{
	struct operand o = {type, rows, columns, (by_rows ? columns : rows) + slot, count, by_rows, 0, NULL, NULL, NULL};
	int order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
	int64_t stride;

	o.size = (size_t)(o.ld * (by_rows ? rows : columns)) + 1;
	stride = (int64_t)o.size;
	o.host = malloc(o.size * (size_t)count * type_size(type));
	ASSERT(o.host);
	fill_random(type, o.host, o.size * (size_t)count);
	o.device = on_device(slot, o.host, o.size * (size_t)count * type_size(type));
	OK(cublasLtMatrixLayoutCreate(&o.layout, type, (uint64_t)rows, (uint64_t)columns, o.ld));
	OK(cublasLtMatrixLayoutSetAttribute(o.layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
	OK(cublasLtMatrixLayoutSetAttribute(o.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
	OK(cublasLtMatrixLayoutSetAttribute(o.layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
	return o;
}

static void drop(struct operand *o)
{
	free(o->host);
	OK(cublasLtMatrixLayoutDestroy(o->layout));
}

static value at(const struct operand *o, int z, int i, int j)
{
	return get(o->type, o->host, (size_t)z * o->size + (size_t)(o->by_rows ? i * o->ld + j : i + j * o->ld));
}

static value of_factor(const struct operand *o, cublasOperation_t op, int z, int i, int j)
{
	value v = op == CUBLAS_OP_N ? at(o, z, i, j) : at(o, z, j, i);

	return op == CUBLAS_OP_C ? conjl(v) : v;
}

struct product {
	const struct kind *kind;
	cublasOperation_t transa, transb;
	struct operand a, b, c, d, aux;
	char *bias;
	uint32_t epilogue;
	value alpha, beta;
	bool device_factors;
};

static bool has_bias(uint32_t epilogue)
{
	return epilogue & CUBLASLT_EPILOGUE_BIAS;
}

static bool has_aux(uint32_t epilogue)
{
	return epilogue & 128;
}

static cublasLtMatmulDesc_t describe(const struct product *p)
{
	cublasLtMatmulDesc_t desc;
	int ops[] = {p->transa, p->transb}, pointers = p->device_factors ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
	int64_t stride = M, ld = p->aux.ld, aux_stride = (int64_t)p->aux.size;

	OK(cublasLtMatmulDescCreate(&desc, p->kind->compute, p->kind->scale));
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof ops[0]));
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof ops[1]));
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, &pointers, sizeof pointers));
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue));
	if (has_bias(p->epilogue)) {
		void *bias = on_device(7, p->bias, (size_t)(M * p->d.count) * type_size(p->d.type));

		OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
		OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &stride, sizeof stride));
	}
	if (has_aux(p->epilogue)) {
		OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux.device, sizeof p->aux.device));
		OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld));
		OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &aux_stride, sizeof aux_stride));
	}
	return desc;
}

static void multiply(const struct product *p)
{
	cublasLtHandle_t lt = (cublasLtHandle_t)handle(); /* as frameworks do */
	cublasLtMatmulDesc_t desc = describe(p);
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t found;
	char factors[2][16];
	char *where = factors[0];
	int count = 0;

	put(p->kind->scale, factors[0], 0, p->alpha);
	put(p->kind->scale, factors[1], 0, p->beta);
	if (p->device_factors)
		where = on_device(8, factors, sizeof factors);
	OK(cublasLtMatmulPreferenceCreate(&preference));
	OK(cublasLtMatmulAlgoGetHeuristic(lt, desc, p->a.layout, p->b.layout, p->c.layout, p->d.layout, preference, 1, &found, &count));
	ASSERT(count == 1 && found.state == CUBLAS_STATUS_SUCCESS && found.workspaceSize == 0);
	OK(cublasLtMatmul(lt, desc, where, p->a.device, p->a.layout, p->b.device, p->b.layout, where + sizeof factors[0], p->c.device, p->c.layout,
		p->d.device, p->d.layout, count % 2 ? &found.algo : NULL, NULL, 0, NULL));
	OK(cublasLtMatmulPreferenceDestroy(preference));
	OK(cublasLtMatmulDescDestroy(desc));
}

static long double gelu(long double x)
{
	return x / 2 * (1 + tanhl(0.79788456080286535588L * (x + 0.044715L * x * x * x)));
}

static long double gelu_gradient(long double x)
{
	long double h = 1e-5L; /* its third derivative is below 3 */

	return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

/* Checks an element. Epilogues are functions of f32: their error is some units, plus the error of
 * their argument times their slope, which is at most 1.13. */
static void check_element(const struct product *p, const struct operand *d, const struct operand *aux, int z, int i, int j)
{
	cudaDataType sums = type_unit(p->kind->in) > 0x1p-24L ? CUDA_R_32F : p->kind->in == CUDA_R_8I ? CUDA_R_32I : p->kind->in;
	value v = 0;
	long double sizes = 0, error, unit = type_unit(d->type);

	for (int l = 0; l < K; l++) {
		value a = of_factor(&p->a, p->transa, z, i, l), b = of_factor(&p->b, p->transb, z, l, j);

		v += a * b;
		sizes += size_of(a) * size_of(b);
	}
	v = p->alpha * v;
	sizes *= size_of(p->alpha);
	if (p->beta != 0) {
		v += p->beta * at(&p->c, z, i, j);
		sizes += size_of(p->beta) * size_of(at(&p->c, z, i, j));
	}
	if (has_bias(p->epilogue)) {
		value bias = get(d->type, p->bias, (size_t)(z * M + i));

		v += bias;
		sizes += size_of(bias);
	}
	error = type_unit(sums) * (K + 4) * (type_complex(sums) ? 2 : 1) * sizes;
	if (p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX || p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
		near_value("what GELU keeps", i, j, at(aux, z, i, j), v, error + unit * (size_of(v) + error) + 0x1p-25L);
	if (p->epilogue == CUBLASLT_EPILOGUE_DGELU) {
		long double g = gelu_gradient(creall(at(&p->aux, z, i, j)));

		error = error * 1.2L + size_of(v) * 0x1p-18L;
		v *= g;
	} else if (p->epilogue & CUBLASLT_EPILOGUE_GELU) {
		error = error * 1.2L + size_of(v) * 0x1p-19L;
		v = gelu(creall(v));
	} else if (p->epilogue & CUBLASLT_EPILOGUE_RELU)
		v = creall(v) > 0 ? v : 0;
	near_value(p->kind->name, i, j, at(d, z, i, j), v, error + unit * (size_of(v) + error) + (d->type == CUDA_R_16F ? 0x1p-25L : 0));
}

static struct operand receive(const struct operand *o)
{
	struct operand got = *o;

	got.host = malloc(o->size * (size_t)o->count * type_size(o->type));
	ASSERT(got.host);
	from_device(got.host, (CUdeviceptr)(uintptr_t)o->device, o->size * (size_t)o->count * type_size(o->type));
	return got;
}

static void run(struct product p, unsigned int orders, int count)
{
	bool na = p.transa == CUBLAS_OP_N, nb = p.transb == CUBLAS_OP_N;
	struct operand d, aux;

	p.a = operand_of(p.kind->in, 0, na ? M : K, na ? K : M, orders & 1, count);
	p.b = operand_of(p.kind->in, 1, nb ? K : N, nb ? N : K, orders & 2, count);
	p.c = operand_of(p.kind->out, 2, M, N, orders & 4, count);
	p.d = operand_of(p.kind->out, 3, M, N, orders & 8, count);
	p.aux = operand_of(p.kind->out, 4, M, N, orders & 8, count);
	p.bias = malloc((size_t)(M * count) * type_size(p.kind->out));
	ASSERT(p.bias);
	fill_random(p.kind->out, p.bias, (size_t)(M * count));
	if (p.beta == 0) {
		fill_nan(p.kind->out, p.c.host, p.c.size * (size_t)count);
		p.c.device = on_device(2, p.c.host, p.c.size * (size_t)count * type_size(p.kind->out));
	}
	multiply(&p);
	d = receive(&p.d);
	aux = receive(&p.aux);
	for (int z = 0; z < count; z++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++)
				check_element(&p, &d, &aux, z, i, j);
	free(d.host);
	free(aux.host);
	free(p.bias);
	drop(&p.a);
	drop(&p.b);
	drop(&p.c);
	drop(&p.d);
	drop(&p.aux);
}

void test_lt(void)
{
	static const uint32_t epilogues[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU,
		CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU};

	for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
		for (int ops = 0; ops < 9; ops++)
			run((struct product){.kind = &kinds[k], .transa = (cublasOperation_t)(ops / 3), .transb = (cublasOperation_t)(ops % 3),
				.epilogue = CUBLASLT_EPILOGUE_DEFAULT, .alpha = ops % 2 ? 1 : 3, .beta = (ops + k) % 3, .device_factors = (ops + k) % 4 == 0},
				(unsigned int)(ops * 7 + k), 1 + (ops + k) % 2);
	for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
		for (int e = 0; e < 8 && kinds[k].scale == CUDA_R_32F; e++)
			run((struct product){.kind = &kinds[k], .transa = CUBLAS_OP_T, .transb = CUBLAS_OP_N, .epilogue = epilogues[e],
				.alpha = 0.5L, .beta = e % 2, .device_factors = e % 3 == 0}, (unsigned int)(e * 5 + k), 1 + (e + k) % 2);
}

/* Attributes of the wrong size, layouts that do not fit, and products without a kernel. */
void test_lt_bad(void)
{
	struct operand a = operand_of(CUDA_R_32F, 0, 4, 4, false, 1), b = operand_of(CUDA_R_32F, 1, 4, 3, false, 1);
	cublasLtHandle_t lt;
	cublasLtMatmulDesc_t desc;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t found;
	cublasLtMatmulAlgo_t other = {{1}};
	uint64_t n = 0;
	int count = 5, bad = 7;
	uint32_t mask = CUBLASLT_EPILOGUE_RELU_AUX;
	float one = 1;
	size_t written = 0;

	OK(cublasLtCreate(&lt));
	OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	OK(cublasLtMatmulPreferenceCreate(&preference));
	WANT(cublasLtMatrixLayoutSetAttribute(a.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasLtMatrixLayoutSetAttribute(a.layout, (cublasLtMatrixLayoutAttribute_t)99, &n, 8), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasLtMatrixLayoutSetAttribute((cublasLtMatrixLayout_t)desc, CUBLASLT_MATRIX_LAYOUT_ROWS, &n, 8), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, NULL, 4), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatrixLayoutGetAttribute(a.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, NULL, 0, &written));
	ASSERT(written == 8);
	OK(cublasLtMatrixLayoutGetAttribute(a.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &n, sizeof n, NULL));
	ASSERT(n == 4);
	WANT(cublasLtMatrixLayoutGetAttribute(a.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &n, 4, &written), CUBLAS_STATUS_INVALID_VALUE);
#define MATMUL(x, y, z, algo) \
	cublasLtMatmul(lt, desc, &one, a.device, x, b.device, y, &one, b.device, z, b.device, z, algo, NULL, 0, NULL)
	OK(MATMUL(a.layout, b.layout, b.layout, NULL));
	WANT(MATMUL(a.layout, a.layout, b.layout, NULL), CUBLAS_STATUS_INVALID_VALUE);
	WANT(MATMUL(a.layout, NULL, b.layout, NULL), CUBLAS_STATUS_INVALID_VALUE);
	WANT(MATMUL(a.layout, b.layout, b.layout, &other), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &mask, sizeof mask));
	WANT(MATMUL(a.layout, b.layout, b.layout, NULL), CUBLAS_STATUS_NOT_SUPPORTED);
	WANT(cublasLtMatmulAlgoGetHeuristic(lt, desc, a.layout, b.layout, b.layout, b.layout, preference, 1, &found, &count), CUBLAS_STATUS_NOT_SUPPORTED);
	ASSERT(count == 0);
	mask = CUBLASLT_EPILOGUE_BIAS; /* without a bias pointer */
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &mask, sizeof mask));
	WANT(MATMUL(a.layout, b.layout, b.layout, NULL), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &bad, sizeof bad));
	WANT(MATMUL(a.layout, b.layout, b.layout, NULL), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasLtMatmulAlgoGetHeuristic(lt, desc, a.layout, b.layout, b.layout, b.layout, preference, 0, &found, &count), CUBLAS_STATUS_INVALID_VALUE);
#undef MATMUL
	OK(cublasLtMatmulPreferenceDestroy(preference));
	OK(cublasLtMatmulDescDestroy(desc));
	OK(cublasLtDestroy(lt));
	WANT(cublasLtDestroy(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	ASSERT(cublasLtGetVersion() == CUBLAS_VERSION);
	drop(&a);
	drop(&b);
}
