/* The structures that describe a product to cuBLASLt. Each begins with a number that
 * distinguishes it from others and from destroyed ones. */
#ifndef BLAS_LT_H
#define BLAS_LT_H

#include "cublasLt.h"
#include "gemm.h"

struct cublasLtMatrixLayout {
	uint32_t magic;
	int32_t type, order, batch;
	uint64_t rows, columns;
	int64_t ld, stride, plane;
};

struct cublasLtMatmulDesc {
	uint32_t magic;
	int32_t compute, scale, pointers, transa, transb, transc, fill;
	uint32_t epilogue;
	int32_t sm_count, aux_type, bias_type;
	int8_t fast;
	const void *bias;
	void *aux;
	int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
	const void *scale_a, *scale_b, *scale_c, *scale_d, *amax_d, *aux_scale, *aux_amax;
};

struct cublasLtMatmulPreference {
	uint32_t magic;
	uint32_t search, reductions, align_a, align_b, align_c, align_d;
	float waves;
	uint64_t workspace, implementations;
};

enum { LAYOUT_MAGIC = 0x4c54ca01, DESC_MAGIC = 0x4c54ca02, PREFERENCE_MAGIC = 0x4c54ca03 };

/* Reports whether p is a description of that kind. */
bool lt_is(const void *p, uint32_t magic);

#endif
