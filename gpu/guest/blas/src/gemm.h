/* Matrix times matrix: the choice of the kernel, and its launch. */
#ifndef BLAS_GEMM_H
#define BLAS_GEMM_H

#include "handle.h"
#include "kernel.h"

/* A product, as callers describe it: with column-major matrices. */
struct product {
	cublasOperation_t transa, transb;
	int m, n, k, batch;
	int lda, ldb, ldc;
	long long stride_a, stride_b, stride_c;
	const void *a, *b;
	void *c;
	bool arrays; /* a, b and c are arrays of pointers */
};

/* A combination of types for which a kernel exists. */
struct gemm_kind {
	cudaDataType in, out, scale;
	enum kernel kernel;
	int each; /* columns that a thread computes */
	enum kernel gemv; /* kernel of a product with one vector, or KERNELS if there is none */
};

/* Finds the kind of a combination of types. Returns NULL if it is not supported. */
const struct gemm_kind *gemm_find(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute);
/* Returns the type of alpha and beta. */
cudaDataType gemm_scale(const struct gemm_kind *kind, cublasComputeType_t compute);
cublasStatus_t gemm_product(cublasHandle_t h, const struct gemm_kind *kind, const struct product *p, struct blas_scalar alpha,
	struct blas_scalar beta);
/* Launches the product of args, which must have been checked. */
cublasStatus_t gemm_launch(const struct gemm_kind *kind, struct gemm_args *args, CUstream stream);

#endif
