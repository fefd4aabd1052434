/* The part of the cuBLAS API that Basalt's libcublas.so.12 has. Names, values and layouts are
 * those of NVIDIA's public documentation ("cuBLAS"). As there, the names of some functions
 * without a suffix are macros for their current versions. */
#ifndef BASALT_CUBLAS_H
#define BASALT_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

#include "basalt_cublas_types.h"

#ifdef __cplusplus
extern "C" {
#endif

CUBLASAPI cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
CUBLASAPI cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
CUBLASAPI cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
CUBLASAPI cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value);
CUBLASAPI cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
CUBLASAPI cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
CUBLASAPI cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
CUBLASAPI cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
CUBLASAPI cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode);
CUBLASAPI cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
CUBLASAPI cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode);
CUBLASAPI cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
CUBLASAPI cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
CUBLASAPI cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count);
CUBLASAPI cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int *count);
CUBLASAPI const char *cublasGetStatusName(cublasStatus_t status);
CUBLASAPI const char *cublasGetStatusString(cublasStatus_t status);

/* Functions that exist for several types. L is the type's letter. */
#define BASALT_CUBLAS_GEMM(L, T) \
	CUBLASAPI cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const T *alpha, const T *A, int lda, long long strideA, const T *B, int ldb, long long strideB, \
		const T *beta, T *C, int ldc, long long strideC, int count); \
	CUBLASAPI cublasStatus_t cublas##L##gemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const T *alpha, const T *const A[], int lda, const T *const B[], int ldb, \
		const T *beta, T *const C[], int ldc, int count);
#define BASALT_CUBLAS_GEMM_V2(L, SUFFIX, T) \
	CUBLASAPI cublasStatus_t cublas##L##gemm##SUFFIX(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc);
BASALT_CUBLAS_GEMM(S, float)
BASALT_CUBLAS_GEMM(D, double)
BASALT_CUBLAS_GEMM(C, cuComplex)
BASALT_CUBLAS_GEMM(Z, cuDoubleComplex)
BASALT_CUBLAS_GEMM(H, __half)
BASALT_CUBLAS_GEMM_V2(S, _v2, float)
BASALT_CUBLAS_GEMM_V2(D, _v2, double)
BASALT_CUBLAS_GEMM_V2(C, _v2, cuComplex)
BASALT_CUBLAS_GEMM_V2(Z, _v2, cuDoubleComplex)
BASALT_CUBLAS_GEMM_V2(H, , __half)
#undef BASALT_CUBLAS_GEMM
#undef BASALT_CUBLAS_GEMM_V2

CUBLASAPI cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
	const float *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
	const float *beta, void *C, cudaDataType Ctype, int ldc);
CUBLASAPI cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
	const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
	const void *beta, void *C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo);
CUBLASAPI cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
	const void *alpha, const void *const A[], cudaDataType Atype, int lda, const void *const B[], cudaDataType Btype, int ldb,
	const void *beta, void *const C[], cudaDataType Ctype, int ldc, int count, cublasComputeType_t computeType, cublasGemmAlgo_t algo);
CUBLASAPI cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
	int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda, long long strideA,
	const void *B, cudaDataType Btype, int ldb, long long strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
	long long strideC, int count, cublasComputeType_t computeType, cublasGemmAlgo_t algo);

/* T is the type, R the type of absolute values. */
#define BASALT_CUBLAS_VECTOR(L, T) \
	CUBLASAPI cublasStatus_t cublas##L##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y, int incy); \
	CUBLASAPI cublasStatus_t cublas##L##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx); \
	CUBLASAPI cublasStatus_t cublas##L##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy); \
	CUBLASAPI cublasStatus_t cublas##L##swap_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy); \
	CUBLASAPI cublasStatus_t cublas##L##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha, \
		const T *A, int lda, const T *x, int incx, const T *beta, T *y, int incy);
#define BASALT_CUBLAS_DOT(L, NAME, T) \
	CUBLASAPI cublasStatus_t cublas##L##NAME##_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy, T *result);
#define BASALT_CUBLAS_NORM(NAME, T, R) \
	CUBLASAPI cublasStatus_t cublas##NAME##_v2(cublasHandle_t handle, int n, const T *x, int incx, R *result);
#define BASALT_CUBLAS_SOLVE(L, T) \
	CUBLASAPI cublasStatus_t cublas##L##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, \
		cublasDiagType_t diag, int m, int n, const T *alpha, const T *A, int lda, T *B, int ldb); \
	CUBLASAPI cublasStatus_t cublas##L##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
		cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha, const T *const A[], int lda, T *const B[], int ldb, \
		int count); \
	CUBLASAPI cublasStatus_t cublas##L##getrfBatched(cublasHandle_t handle, int n, T *const A[], int lda, int *pivots, int *info, int count); \
	CUBLASAPI cublasStatus_t cublas##L##getrsBatched(cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs, const T *const A[], \
		int lda, const int *pivots, T *const B[], int ldb, int *info, int count); \
	CUBLASAPI cublasStatus_t cublas##L##geqrfBatched(cublasHandle_t handle, int m, int n, T *const A[], int lda, T *const tau[], int *info, \
		int count); \
	CUBLASAPI cublasStatus_t cublas##L##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, int nrhs, T *const A[], \
		int lda, T *const C[], int ldc, int *info, int *device_info, int count);
#define BASALT_CUBLAS_ALL(L, T) \
	BASALT_CUBLAS_VECTOR(L, T) \
	BASALT_CUBLAS_SOLVE(L, T)
BASALT_CUBLAS_ALL(S, float)
BASALT_CUBLAS_ALL(D, double)
BASALT_CUBLAS_ALL(C, cuComplex)
BASALT_CUBLAS_ALL(Z, cuDoubleComplex)
BASALT_CUBLAS_DOT(S, dot, float)
BASALT_CUBLAS_DOT(D, dot, double)
BASALT_CUBLAS_DOT(C, dotu, cuComplex)
BASALT_CUBLAS_DOT(C, dotc, cuComplex)
BASALT_CUBLAS_DOT(Z, dotu, cuDoubleComplex)
BASALT_CUBLAS_DOT(Z, dotc, cuDoubleComplex)
BASALT_CUBLAS_NORM(Snrm2, float, float)
BASALT_CUBLAS_NORM(Dnrm2, double, double)
BASALT_CUBLAS_NORM(Scnrm2, cuComplex, float)
BASALT_CUBLAS_NORM(Dznrm2, cuDoubleComplex, double)
BASALT_CUBLAS_NORM(Sasum, float, float)
BASALT_CUBLAS_NORM(Dasum, double, double)
BASALT_CUBLAS_NORM(Scasum, cuComplex, float)
BASALT_CUBLAS_NORM(Dzasum, cuDoubleComplex, double)
#undef BASALT_CUBLAS_VECTOR
#undef BASALT_CUBLAS_DOT
#undef BASALT_CUBLAS_NORM
#undef BASALT_CUBLAS_SOLVE
#undef BASALT_CUBLAS_ALL

CUBLASAPI cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx,
	const void *y, cudaDataType yType, int incy, void *result, cudaDataType resultType, cudaDataType executionType);
CUBLASAPI cublasStatus_t cublasDotcEx(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx,
	const void *y, cudaDataType yType, int incy, void *result, cudaDataType resultType, cudaDataType executionType);

#ifdef __cplusplus
}
#endif

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSgemm cublasSgemm_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSscal cublasSscal_v2
#define cublasScopy cublasScopy_v2
#define cublasSswap cublasSswap_v2
#define cublasSgemv cublasSgemv_v2
#define cublasStrsm cublasStrsm_v2
#define cublasDgemm cublasDgemm_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasDscal cublasDscal_v2
#define cublasDcopy cublasDcopy_v2
#define cublasDswap cublasDswap_v2
#define cublasDgemv cublasDgemv_v2
#define cublasDtrsm cublasDtrsm_v2
#define cublasCgemm cublasCgemm_v2
#define cublasCaxpy cublasCaxpy_v2
#define cublasCscal cublasCscal_v2
#define cublasCcopy cublasCcopy_v2
#define cublasCswap cublasCswap_v2
#define cublasCgemv cublasCgemv_v2
#define cublasCtrsm cublasCtrsm_v2
#define cublasZgemm cublasZgemm_v2
#define cublasZaxpy cublasZaxpy_v2
#define cublasZscal cublasZscal_v2
#define cublasZcopy cublasZcopy_v2
#define cublasZswap cublasZswap_v2
#define cublasZgemv cublasZgemv_v2
#define cublasZtrsm cublasZtrsm_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasCdotu cublasCdotu_v2
#define cublasCdotc cublasCdotc_v2
#define cublasZdotu cublasZdotu_v2
#define cublasZdotc cublasZdotc_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasScnrm2 cublasScnrm2_v2
#define cublasDznrm2 cublasDznrm2_v2
#define cublasSasum cublasSasum_v2
#define cublasDasum cublasDasum_v2
#define cublasScasum cublasScasum_v2
#define cublasDzasum cublasDzasum_v2

#endif
