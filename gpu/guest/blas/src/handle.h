/* What a handle is. A cuBLAS handle can be used as a cuBLASLt handle: frameworks cast
 * one to the other, as the documentation allows. So both libraries, which are built
 * from the same files, have handles of this form. */
#ifndef BLAS_HANDLE_H
#define BLAS_HANDLE_H

#include <pthread.h>
#include <stdbool.h>

#include "cublas_v2.h"
#include "args.h"
#include "driver.h"

struct cublasContext {
	uint64_t magic; /* HANDLE_MAGIC while it lives */
	CUcontext context; /* where it was made */
	CUstream stream;
	cublasPointerMode_t pointers;
	cublasAtomicsMode_t atomics;
	cublasMath_t math;
	int sm_count;
	pthread_mutex_t results; /* guards result */
	CUdeviceptr result;      /* RESULT_BYTES for what a kernel gives to host memory */
};

enum { RESULT_BYTES = 64 };
#define HANDLE_MAGIC 0x42534c5442534c31ull

cublasStatus_t handle_create(cublasHandle_t *handle);
cublasStatus_t handle_destroy(cublasHandle_t handle);

/* Checks the handle, and sees to a current context in this thread. */
cublasStatus_t enter(cublasHandle_t h);
cublasStatus_t from_driver(CUresult err);

/* A factor, as the handle's pointer mode says; type is what is at p. */
struct blas_scalar factor(cublasHandle_t h, const void *p, cudaDataType type);
struct blas_scalar host_factor(const void *p, cudaDataType type);
struct blas_scalar constant(double value);
/* The factor is known to be 0: what it stands before is not read. */
bool is_nothing(const struct blas_scalar *s);

#endif
