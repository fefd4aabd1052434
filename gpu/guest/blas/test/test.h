/* What the tests of the BLAS library share: a failed check names its line and ends the
 * program. */
#ifndef BLAS_TEST_H
#define BLAS_TEST_H

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basalt_cuda.h"
#include "cublas_v2.h"

#define FAIL(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define CHECK(call) \
	do { \
		CUresult check_err = (call); \
		if (check_err != CUDA_SUCCESS) \
			FAIL("%s: driver's error %d", #call, (int)check_err); \
	} while (0)
#define WANT(call, status) \
	do { \
		cublasStatus_t want_got = (call); \
		if (want_got != (status)) \
			FAIL("%s: %s, want %s", #call, cublasGetStatusName(want_got), cublasGetStatusName(status)); \
	} while (0)
#define OK(call) WANT(call, CUBLAS_STATUS_SUCCESS)
#define ASSERT(what) \
	do { \
		if (!(what)) \
			FAIL("not so: %s", #what); \
	} while (0)

/* Numbers of every type are compared as these. */
typedef _Complex long double value;

size_t type_size(cudaDataType type);
bool type_complex(cudaDataType type);
/* Half the distance from 1 to the next number, in what the type is summed up with or,
 * for its own precision, rounded to. 0: exact. */
long double type_unit(cudaDataType type);
value get(cudaDataType type, const void *p, size_t i);
void put(cudaDataType type, void *p, size_t i, value v);
/* What put and get make of a number. */
value rounded(cudaDataType type, value v);

/* The same numbers on every machine: small, of both signs, with fractions. */
unsigned int random_word(void);
value random_value(cudaDataType type);
void fill_random(cudaDataType type, void *p, size_t count);
/* NaNs, or for whole numbers one that nothing computes. */
void fill_nan(cudaDataType type, void *p, size_t count);

/* Ends the program unless got is want, but for error. */
void near_value(const char *what, int row, int column, value got, value want, long double error);

/* Device memory for a test, at the same place each time. */
CUdeviceptr device_memory(int slot, size_t bytes);
void to_device(CUdeviceptr to, const void *from, size_t bytes);
void from_device(void *to, CUdeviceptr from, size_t bytes);
void *on_device(int slot, const void *from, size_t bytes);
cublasHandle_t handle(void);

/* The function of that name of the type's letter. */
#define CALL(type, name, ...) \
	((type) == CUDA_R_32F   ? cublasS##name(handle(), __VA_ARGS__) \
	 : (type) == CUDA_R_64F ? cublasD##name(handle(), __VA_ARGS__) \
	 : (type) == CUDA_C_32F ? cublasC##name(handle(), __VA_ARGS__) \
				: cublasZ##name(handle(), __VA_ARGS__))
long double size_of(value v); /* |re| + |im| */
extern const cudaDataType letter_types[4];

static inline int most(int a, int b)
{
	return a > b ? a : b;
}

#define BLAS_TEST_NAMES(T) \
	T(handles) \
	T(gemm) \
	T(gemm_bad) \
	T(capture) \
	T(threads) \
	T(vectors) \
	T(vectors_bad) \
	T(gemv) \
	T(trsm) \
	T(lu) \
	T(qr) \
	T(lt) \
	T(lt_bad)
#define T(name) void test_##name(void);
BLAS_TEST_NAMES(T)
#undef T

#endif
