/* The library's kernels: each module is PTX in this library (kernels/), loaded once
 * in a process when something of it is first launched. The driver loads it into the
 * contexts where it is launched. */
#ifndef BLAS_KERNEL_H
#define BLAS_KERNEL_H

#include "driver.h"

/* MODULE(name) and the KERNEL(name) that it has. */
#define BLAS_KERNELS(MODULE, KERNEL) \
	MODULE(gemm_f32) KERNEL(gemm_f32) \
	MODULE(gemm_f64) KERNEL(gemm_f64) \
	MODULE(gemm_c32) KERNEL(gemm_c32) \
	MODULE(gemm_c64) KERNEL(gemm_c64) \
	MODULE(gemm_f16) KERNEL(gemm_f16) KERNEL(gemm_f16_f32) \
	MODULE(gemm_bf16) KERNEL(gemm_bf16) KERNEL(gemm_bf16_f32) \
	MODULE(gemm_s8) KERNEL(gemm_s8_s32) KERNEL(gemm_s8_f32)

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
