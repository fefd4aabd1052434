/* The parameters that the library passes to its kernels. C code and the kernels' C++ include this
 * file. Strides and offsets count elements. */
#ifndef BLAS_ARGS_H
#define BLAS_ARGS_H

/* A factor: its address in device memory, or its value. Two doubles represent all of the library's
 * types exactly: the real and the imaginary part. */
struct blas_scalar {
	const void *device;
	double value[2];
	int half; /* *device is an f16, independent of the type that the kernel computes with */
};

/* A batch of matrices. Element (row, column) of matrix z is at p + row * row_step +
 * column * column_step + z * batch_step. If arrays is set, p is an array of pointers in device
 * memory, and the element is at p[z] + offset + ... */
struct blas_matrix {
	const void *p;
	long long row, column, batch, offset;
};

enum blas_activation { BLAS_NONE, BLAS_RELU, BLAS_GELU, BLAS_GELU_GRADIENT };

/* D = activation(alpha A B + beta C + bias); A is m × k, B is k × n. */
struct gemm_args {
	struct blas_matrix a, b, c, d;
	struct blas_matrix bias, aux; /* of D's type; one of bias's steps is 0 */
	struct blas_scalar alpha, beta;
	int m, n, k, batch;
	int conjugate_a, conjugate_b;
	int arrays;         /* a to d are arrays of pointers */
	int nothing_at_zero; /* beta = 0 means that A and B are not read either */
	int activation;
};

/* Vectors and matrix times vector. A single number is stored at result, in device memory. */
struct vector_args {
	const void *a, *x;
	void *y, *result;
	struct blas_scalar alpha, beta;
	long long row, column; /* strides of a */
	long long incx, incy;
	int m, n; /* a is m × n; without a, vectors have n elements */
	int conjugate;
};

/* Solves T X = alpha B for X, and stores it in B. T is triangular with order at most SOLVE_ORDER,
 * B is order × columns. */
struct solve_args {
	struct blas_matrix t, b;
	struct blas_scalar alpha;
	int order, columns, batch;
	int lower, unit, conjugate, arrays;
};

/* Factorizations of a batch of small matrices, one block of threads each. */
struct factor_args {
	void *const *a;   /* matrices of m × n, by columns */
	void *const *tau; /* factors of geqrf's reflectors */
	void *const *c;   /* right-hand sides of m × columns */
	int *pivots;      /* n for each matrix, counted from 1; NULL: no pivoting */
	int *info;        /* one element for each matrix */
	long long lda, ldc;
	int m, n, columns, batch;
	int backward; /* pivots are applied from last to first */
};

enum {
	GEMM_ROWS = 64,  /* rows of D that a block of threads computes */
	GEMM_LANES = 32, /* a block's threads along D's rows */
	GEMM_LINES = 8,  /* a block's threads along D's columns */
	GEMM_DEPTH = 8,
	GEMM_WIDE = 4,   /* columns that a thread computes, for real types of 32 bits */
	GEMM_NARROW = 2, /* the same for other types */
	VECTOR_THREADS = 256,
	GEMV_ROWS = 32, /* rows of a block, if they are contiguous */
	GEMV_LINES = VECTOR_THREADS / GEMV_ROWS, /* rows of a block otherwise */
	SOLVE_ORDER = 32,
	SOLVE_COLUMNS = 32,
	FACTOR_THREADS = 256,
};

#endif
