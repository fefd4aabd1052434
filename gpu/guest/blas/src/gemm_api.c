/* The functions of the gemm family. */
#include "gemm.h"

static cublasStatus_t multiply(cublasHandle_t h, const void *alpha, const void *beta, cudaDataType a, cudaDataType b, cudaDataType c,
	cublasComputeType_t compute, const struct product *p)
{
	const struct gemm_kind *kind;
	cublasStatus_t status = enter(h);
	cudaDataType scale;

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!alpha || !beta)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!(kind = gemm_find(a, b, c, compute)))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	scale = gemm_scale(kind, compute);
	return gemm_product(h, kind, p, factor(h, alpha, scale), factor(h, beta, scale));
}

#define TYPED(L, SUFFIX, T, type, compute) \
	CUBLASAPI cublasStatus_t cublas##L##gemm##SUFFIX(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc) \
	{ \
		return multiply(handle, alpha, beta, type, type, type, compute, \
			&(struct product){transa, transb, m, n, k, 1, lda, ldb, ldc, 0, 0, 0, A, B, C, false}); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const T *alpha, const T *A, int lda, long long strideA, const T *B, int ldb, long long strideB, \
		const T *beta, T *C, int ldc, long long strideC, int count) \
	{ \
		return multiply(handle, alpha, beta, type, type, type, compute, \
			&(struct product){transa, transb, m, n, k, count, lda, ldb, ldc, strideA, strideB, strideC, A, B, C, false}); \
	} \
	CUBLASAPI cublasStatus_t cublas##L##gemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const T *alpha, const T *const A[], int lda, const T *const B[], int ldb, \
		const T *beta, T *const C[], int ldc, int count) \
	{ \
		return multiply(handle, alpha, beta, type, type, type, compute, \
			&(struct product){transa, transb, m, n, k, count, lda, ldb, ldc, 0, 0, 0, A, B, (void *)C, true}); \
	}
TYPED(S, _v2, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
TYPED(D, _v2, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
TYPED(C, _v2, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
TYPED(Z, _v2, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)
TYPED(H, , __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)

CUBLASAPI cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
	const float *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
	const float *beta, void *C, cudaDataType Ctype, int ldc)
{
	return multiply(handle, alpha, beta, Atype, Btype, Ctype, CUBLAS_COMPUTE_32F,
		&(struct product){transa, transb, m, n, k, 1, lda, ldb, ldc, 0, 0, 0, A, B, C, false});
}

/* The algorithm is a hint, which has no effect: there is only one. */
CUBLASAPI cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
	const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
	const void *beta, void *C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
	(void)algo;
	return multiply(handle, alpha, beta, Atype, Btype, Ctype, computeType,
		&(struct product){transa, transb, m, n, k, 1, lda, ldb, ldc, 0, 0, 0, A, B, C, false});
}

CUBLASAPI cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
	const void *alpha, const void *const A[], cudaDataType Atype, int lda, const void *const B[], cudaDataType Btype, int ldb,
	const void *beta, void *const C[], cudaDataType Ctype, int ldc, int count, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
	(void)algo;
	return multiply(handle, alpha, beta, Atype, Btype, Ctype, computeType,
		&(struct product){transa, transb, m, n, k, count, lda, ldb, ldc, 0, 0, 0, A, B, (void *)C, true});
}

CUBLASAPI cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
	int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda, long long strideA,
	const void *B, cudaDataType Btype, int ldb, long long strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
	long long strideC, int count, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
	(void)algo;
	return multiply(handle, alpha, beta, Atype, Btype, Ctype, computeType,
		&(struct product){transa, transb, m, n, k, count, lda, ldb, ldc, strideA, strideB, strideC, A, B, C, false});
}
