/* Functions and macros of the tests of the BLAS library. A failed check prints its line and ends
 * the program. */
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
			FAIL("%s: error %d of the driver, want success", #call, (int)check_err); \
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
			FAIL("expected %s", #what); \
	} while (0)

/* The type in which numbers of all types are compared. */
typedef _Complex long double value;

size_t type_size(cudaDataType type);
bool type_complex(cudaDataType type);
/* Returns the largest rounding error of a type, relative to 1: half the distance from 1 to the
 * next number. It is 0 for exact types. */
long double type_unit(cudaDataType type);
value get(cudaDataType type, const void *p, size_t i);
void put(cudaDataType type, void *p, size_t i, value v);
/* Returns a number rounded to the type, by put and get. */
value rounded(cudaDataType type, value v);

/* Random numbers that are the same on every machine: small, of both signs, with fractions. */
unsigned int random_word(void);
value random_value(cudaDataType type);
void fill_random(cudaDataType type, void *p, size_t count);
/* Fills with NaNs or, for integers, with a value that is not a result. */
void fill_nan(cudaDataType type, void *p, size_t count);

/* Ends the program if got differs from want by more than error. */
void near_value(const char *what, int row, int column, value got, value want, long double error);

/* Returns device memory for a test, which is the same for each call with a slot. */
CUdeviceptr device_memory(int slot, size_t bytes);
void to_device(CUdeviceptr to, const void *from, size_t bytes);
void from_device(void *to, CUdeviceptr from, size_t bytes);
void *on_device(int slot, const void *from, size_t bytes);
cublasHandle_t handle(void);

/* Calls the function whose name has the type's letter. */
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
