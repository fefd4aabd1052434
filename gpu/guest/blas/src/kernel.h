/* The library's kernels. Each module is PTX in this library (kernels/). It is loaded once in a
 * process, when a kernel of it is first launched, and the driver loads it into the contexts in
 * which it is launched. */
#ifndef BLAS_KERNEL_H
#define BLAS_KERNEL_H

#include "driver.h"

/* The modules, MODULE(name), each followed by its kernels, KERNEL(name). */
#define BLAS_KERNELS(MODULE, KERNEL) \
	MODULE(gemm_f32) KERNEL(gemm_f32) \
	MODULE(gemm_f64) KERNEL(gemm_f64) \
	MODULE(gemm_c32) KERNEL(gemm_c32) \
	MODULE(gemm_c64) KERNEL(gemm_c64) \
	MODULE(gemm_f16) KERNEL(gemm_f16) KERNEL(gemm_f16_f32) \
	MODULE(gemm_bf16) KERNEL(gemm_bf16) KERNEL(gemm_bf16_f32) \
	MODULE(gemm_s8) KERNEL(gemm_s8_s32) KERNEL(gemm_s8_f32) \
	BLAS_VECTOR(MODULE, KERNEL, f32) \
	BLAS_VECTOR(MODULE, KERNEL, f64) \
	BLAS_VECTOR(MODULE, KERNEL, c32) \
	BLAS_VECTOR(MODULE, KERNEL, c64) \
	MODULE(vector_f16) KERNEL(dot_f16) KERNEL(gemv_f16) \
	MODULE(vector_bf16) KERNEL(dot_bf16) KERNEL(gemv_bf16) \
	BLAS_SOLVE(MODULE, KERNEL, f32) \
	BLAS_SOLVE(MODULE, KERNEL, f64) \
	BLAS_SOLVE(MODULE, KERNEL, c32) \
	BLAS_SOLVE(MODULE, KERNEL, c64)
#define BLAS_VECTOR(MODULE, KERNEL, t) \
	MODULE(vector_##t) KERNEL(dot_##t) KERNEL(axpy_##t) KERNEL(scal_##t) KERNEL(copy_##t) KERNEL(swap_##t) KERNEL(nrm2_##t) \
	KERNEL(asum_##t) KERNEL(gemv_##t)
#define BLAS_SOLVE(MODULE, KERNEL, t) \
	MODULE(solve_##t) KERNEL(solve_##t) KERNEL(getrf_##t) KERNEL(pivot_##t) KERNEL(geqrf_##t)

#define NOTHING(name)
enum kernel {
#define K(name) K_##name,
	BLAS_KERNELS(NOTHING, K)
#undef K
	KERNELS
};

struct grid {
	unsigned int x, y, z;
};

/* Launches a kernel whose one parameter is the structure at args. */
CUresult kernel_launch(enum kernel k, struct grid blocks, struct grid threads, CUstream stream, const void *args);
void kernels_after_fork(void);

#endif
