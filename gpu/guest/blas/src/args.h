/* What the library hands to its kernels: read by C here and by the kernels' C++.
 * Strides and offsets count elements. */
#ifndef BLAS_ARGS_H
#define BLAS_ARGS_H

/* A factor: in device memory, or its value (any of the library's types is exact in
 * two doubles: the real and the imaginary part). */
struct blas_scalar {
	const void *device;
	double value[2];
	int half; /* *device is an f16, whatever the kernel computes with */
};

/* Where element (row, column) of matrix z of a batch is: at p + row * row_step +
 * column * column_step + z * batch_step, or, where arrays is set, p is an array of
 * pointers in device memory, and it is at p[z] + offset + ... */
struct blas_matrix {
	const void *p;
	long long row, column, batch, offset;
};

enum blas_activation { BLAS_NONE, BLAS_RELU, BLAS_GELU, BLAS_GELU_GRADIENT };

/* D = activation(alpha A B + beta C + bias); A is m × k, B is k × n. */
struct gemm_args {
	struct blas_matrix a, b, c, d;
	struct blas_matrix bias, aux; /* of D's type; bias has one step that is 0 */
	struct blas_scalar alpha, beta;
	int m, n, k, batch;
	int conjugate_a, conjugate_b;
	int arrays;         /* a to d are arrays of pointers */
	int nothing_at_zero; /* beta = 0 means that A and B are not read either */
	int activation;
};

/* Vectors and matrix times vector. A result goes to result, in device memory. */
struct vector_args {
	const void *a, *x;
	void *y, *result;
	struct blas_scalar alpha, beta;
	long long row, column; /* of a */
	long long incx, incy;
	int m, n; /* a is m × n; vectors alone have n elements */
	int conjugate;
};

/* Solves T X = alpha B for X, in B's place: T is triangular with order at most
 * SOLVE_ORDER, B is order × columns. */
struct solve_args {
	struct blas_matrix t, b;
	struct blas_scalar alpha;
	int order, columns, batch;
	int lower, unit, conjugate, arrays;
};

/* Factorizations of a batch of small matrices, one block of threads each. */
struct factor_args {
	void *const *a;   /* m × n each, column by column */
	void *const *tau; /* of geqrf */
	void *const *c;   /* m × columns each: right-hand sides */
	int *pivots;      /* n for each matrix, counted from 1; NULL: none */
	int *info;        /* one for each matrix */
	long long lda, ldc;
	int m, n, columns, batch;
	int backward; /* pivots are applied from the last one on */
};

enum {
	GEMM_ROWS = 64,  /* of D that a block of threads computes */
	GEMM_LANES = 32, /* a block's threads along D's rows, */
	GEMM_LINES = 8,  /* and along its columns */
	GEMM_DEPTH = 8,
	GEMM_WIDE = 4,   /* columns that a thread computes, of real types of 32 bits */
	GEMM_NARROW = 2, /* and of the others */
	VECTOR_THREADS = 256,
	GEMV_ROWS = 32, /* of a block, where they lie side by side, */
	GEMV_LINES = VECTOR_THREADS / GEMV_ROWS, /* or else */
	SOLVE_ORDER = 32,
	SOLVE_COLUMNS = 32,
	FACTOR_THREADS = 256,
};

#endif
