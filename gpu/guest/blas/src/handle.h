/* Handles. A cuBLAS handle can be used as a cuBLASLt handle: frameworks cast one to the other, as
 * the documentation allows. So both libraries, which are built from the same files, have handles
 * of this form. */
#ifndef BLAS_HANDLE_H
#define BLAS_HANDLE_H

#include <pthread.h>
#include <stdbool.h>

#include "cublas_v2.h"
#include "args.h"
#include "driver.h"

struct cublasContext {
	uint64_t magic; /* HANDLE_MAGIC while the handle is valid */
	CUcontext context; /* the context in which it was created */
	CUstream stream;
	cublasPointerMode_t pointers;
	cublasAtomicsMode_t atomics;
	cublasMath_t math;
	int sm_count;
	pthread_mutex_t results; /* guards result */
	CUdeviceptr result;      /* RESULT_BYTES of device memory for results that go to host memory */
};

enum { RESULT_BYTES = 64 };
#define HANDLE_MAGIC 0x42534c5442534c31ull

cublasStatus_t handle_create(cublasHandle_t *handle);
cublasStatus_t handle_destroy(cublasHandle_t handle);

/* Checks the handle, and makes its context current if this thread has none. */
cublasStatus_t enter(cublasHandle_t h);
cublasStatus_t from_driver(CUresult err);

/* Returns the factor at p, which is in host or device memory as the handle's pointer mode
 * determines. type is the type at p. */
struct blas_scalar factor(cublasHandle_t h, const void *p, cudaDataType type);
struct blas_scalar host_factor(const void *p, cudaDataType type);
struct blas_scalar constant(double value);
/* Reports whether the factor is known to be 0, so that the matrix that it multiplies is not
 * read. */
bool is_nothing(const struct blas_scalar *s);

#endif
