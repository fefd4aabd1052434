/* Matrix times matrix: which kernel computes it, and its launch. */
#ifndef BLAS_GEMM_H
#define BLAS_GEMM_H

#include "handle.h"
#include "kernel.h"

/* What is to be multiplied, as callers say it: column-major matrices. */
struct product {
	cublasOperation_t transa, transb;
	int m, n, k, batch;
	int lda, ldb, ldc;
	long long stride_a, stride_b, stride_c;
	const void *a, *b;
	void *c;
	bool arrays; /* a, b and c are arrays of pointers */
};

/* A combination of types that there is a kernel for. */
struct gemm_kind {
	cudaDataType in, out, scale;
	enum kernel kernel;
	int each; /* columns that a thread computes */
	enum kernel gemv; /* of a product with one vector; KERNELS: there is none */
};

/* NULL: not supported. */
const struct gemm_kind *gemm_find(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute);
/* The type of alpha and beta. */
cudaDataType gemm_scale(const struct gemm_kind *kind, cublasComputeType_t compute);
cublasStatus_t gemm_product(cublasHandle_t h, const struct gemm_kind *kind, const struct product *p, struct blas_scalar alpha,
	struct blas_scalar beta);
/* Launches what args says, all of it checked. */
cublasStatus_t gemm_launch(const struct gemm_kind *kind, struct gemm_args *args, CUstream stream);

#endif
