/* Layouts, descriptors and preferences of cuBLASLt: creation, and attributes to set and get,
 * which are rows of tables. */
#include <stdlib.h>
#include <string.h>

#include "lt.h"

struct attribute {
	int id;
	size_t offset, size;
};
#define FIELD(id, Struct, field) {id, offsetof(struct Struct, field), sizeof(((struct Struct *)0)->field)}

static const struct attribute layout_attributes[] = {
	FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, cublasLtMatrixLayout, type),
	FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, cublasLtMatrixLayout, order),
	FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, cublasLtMatrixLayout, rows),
	FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, cublasLtMatrixLayout, columns),
	FIELD(CUBLASLT_MATRIX_LAYOUT_LD, cublasLtMatrixLayout, ld),
	FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, cublasLtMatrixLayout, batch),
	FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, cublasLtMatrixLayout, stride),
	FIELD(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, cublasLtMatrixLayout, plane),
	{0},
};

static const struct attribute desc_attributes[] = {
	FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, cublasLtMatmulDesc, compute),
	FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, cublasLtMatmulDesc, scale),
	FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, cublasLtMatmulDesc, pointers),
	FIELD(CUBLASLT_MATMUL_DESC_TRANSA, cublasLtMatmulDesc, transa),
	FIELD(CUBLASLT_MATMUL_DESC_TRANSB, cublasLtMatmulDesc, transb),
	FIELD(CUBLASLT_MATMUL_DESC_TRANSC, cublasLtMatmulDesc, transc),
	FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, cublasLtMatmulDesc, fill),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, cublasLtMatmulDesc, epilogue),
	FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, cublasLtMatmulDesc, bias),
	FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, cublasLtMatmulDesc, bias_stride),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, cublasLtMatmulDesc, aux),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, cublasLtMatmulDesc, aux_ld),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, cublasLtMatmulDesc, aux_stride),
	FIELD(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, cublasLtMatmulDesc, alpha_stride),
	FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, cublasLtMatmulDesc, sm_count),
	FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, cublasLtMatmulDesc, scale_a),
	FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, cublasLtMatmulDesc, scale_b),
	FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, cublasLtMatmulDesc, scale_c),
	FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, cublasLtMatmulDesc, scale_d),
	FIELD(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, cublasLtMatmulDesc, amax_d),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, cublasLtMatmulDesc, aux_type),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, cublasLtMatmulDesc, aux_scale),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, cublasLtMatmulDesc, aux_amax),
	FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, cublasLtMatmulDesc, fast),
	FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cublasLtMatmulDesc, bias_type),
	{0},
};

static const struct attribute preference_attributes[] = {
	FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, cublasLtMatmulPreference, search),
	FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, cublasLtMatmulPreference, workspace),
	FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, cublasLtMatmulPreference, reductions),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, cublasLtMatmulPreference, align_a),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, cublasLtMatmulPreference, align_b),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, cublasLtMatmulPreference, align_c),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, cublasLtMatmulPreference, align_d),
	FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, cublasLtMatmulPreference, waves),
	FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, cublasLtMatmulPreference, implementations),
	{0},
};

bool lt_is(const void *p, uint32_t magic)
{
	return p && (uintptr_t)p % _Alignof(uint64_t) == 0 && *(const uint32_t *)p == magic;
}

static cublasStatus_t create(void *to, const void *value, size_t bytes)
{
	void *p;

	if (!to)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!(p = malloc(bytes)))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(p, value, bytes);
	*(void **)to = p;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(void *p, uint32_t magic)
{
	if (!p)
		return CUBLAS_STATUS_SUCCESS;
	if (!lt_is(p, magic))
		return CUBLAS_STATUS_INVALID_VALUE;
	*(volatile uint32_t *)p = 0;
	free(p);
	return CUBLAS_STATUS_SUCCESS;
}

static const struct attribute *find(const struct attribute *rows, int id)
{
	for (; rows->size > 0; rows++)
		if (rows->id == id)
			return rows;
	return NULL;
}

static cublasStatus_t set(void *p, uint32_t magic, const struct attribute *rows, int id, const void *from, size_t bytes)
{
	const struct attribute *a = find(rows, id);

	if (!lt_is(p, magic) || !a || !from || bytes != a->size)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy((char *)p + a->offset, from, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

/* Gets an attribute. With a size of 0 it only returns the required size, as documented. */
static cublasStatus_t read(const void *p, uint32_t magic, const struct attribute *rows, int id, void *to, size_t bytes, size_t *written)
{
	const struct attribute *a = find(rows, id);

	if (!lt_is(p, magic) || !a || (bytes == 0 && !written) || (bytes != 0 && (!to || bytes < a->size)))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (written)
		*written = a->size;
	if (bytes > 0)
		memcpy(to, (const char *)p + a->offset, a->size);
	return CUBLAS_STATUS_SUCCESS;
}

#define DESCRIPTION(Name, Type, Attribute, magic, rows) \
	CUBLASAPI cublasStatus_t cublasLt##Name##Destroy(Type p) \
	{ \
		return destroy(p, magic); \
	} \
	CUBLASAPI cublasStatus_t cublasLt##Name##SetAttribute(Type p, Attribute attribute, const void *from, size_t bytes) \
	{ \
		return set(p, magic, rows, (int)attribute, from, bytes); \
	} \
	CUBLASAPI cublasStatus_t cublasLt##Name##GetAttribute(Type p, Attribute attribute, void *to, size_t bytes, size_t *written) \
	{ \
		return read(p, magic, rows, (int)attribute, to, bytes, written); \
	}
DESCRIPTION(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, LAYOUT_MAGIC, layout_attributes)
DESCRIPTION(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, DESC_MAGIC, desc_attributes)
DESCRIPTION(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, PREFERENCE_MAGIC, preference_attributes)

CUBLASAPI cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	return create(layout, &(struct cublasLtMatrixLayout){.magic = LAYOUT_MAGIC, .type = (int32_t)type, .batch = 1, .rows = rows, .columns = cols,
		.ld = ld}, sizeof **layout);
}

CUBLASAPI cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType scale)
{
	return create(desc, &(struct cublasLtMatmulDesc){.magic = DESC_MAGIC, .compute = (int32_t)compute, .scale = (int32_t)scale,
		.fill = CUBLAS_FILL_MODE_FULL, .epilogue = CUBLASLT_EPILOGUE_DEFAULT, .aux_type = -1, .bias_type = -1}, sizeof **desc);
}

CUBLASAPI cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	return create(preference, &(struct cublasLtMatmulPreference){.magic = PREFERENCE_MAGIC, .reductions = UINT32_MAX, .align_a = 256,
		.align_b = 256, .align_c = 256, .align_d = 256, .implementations = UINT64_MAX}, sizeof **preference);
}
