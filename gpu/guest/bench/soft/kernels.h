/* The kernels of the soft GPU's benchmark. Each exists in CUDA for the device (NAME) and in C for
 * the host's processors (NAME_in_c), and works on the same words. */
#ifndef BASALT_BENCH_KERNELS_H
#define BASALT_BENCH_KERNELS_H

#include <stdint.h>

/* The data of a kernel. The words of a, b and out are float or uint32_t, depending on the kernel.
 * scratch is temporary memory, which only the device uses. */
struct job {
	unsigned n;
	const void *a, *b;
	void *out, *scratch;
};

#define HEAD 64 /* length of a row of attention's matrices */
#define ITERATIONS 256 /* maximum for a point of the Mandelbrot set */
#define MT_STATE 624 /* words of the state of a Mersenne Twister */
#define MT_TURNS 2 /* number of times that each state is used up */
#define SORT_TILE 2048 /* keys that a block sorts */

#ifdef __cplusplus
extern "C" {
#endif

#define KERNEL(name) \
	void name(const struct job *j); \
	void name##_in_c(const struct job *j);

KERNEL(saxpy) /* float a[n], b[n], out[n] */
KERNEL(reduction) /* float a[n], out[1]: the sum of a */
KERNEL(scan) /* uint32_t a[n], out[n]: prefix sums */
KERNEL(histogram) /* bytes a[4 n], uint32_t out[256] */
KERNEL(stencil) /* float a[n][n], out[n][n]: the mean of five points */
KERNEL(sgemm) /* float a[n][n], b[n][n], out[n][n]; n is a multiple of 16 */
KERNEL(cublas) /* the same as sgemm, by libcublas.so.12 */
KERNEL(nbody) /* float a[n][4]: positions and masses, out[n][4]: accelerations; n is a multiple of 128 */
KERNEL(softmax) /* float a[n][n], out[n][n]: of each row */
KERNEL(attention) /* float a[n][HEAD]: queries, b[2][n][HEAD]: keys and values, out[n][HEAD] */
KERNEL(radixsort) /* uint32_t a[n], out[n] */
KERNEL(mandelbrot) /* uint32_t out[n][n]: iterations */
KERNEL(mersenne) /* uint32_t out[n]: sums of the numbers of the generators with seeds 1 to n */
KERNEL(nothing)

#undef KERNEL
#ifdef __cplusplus
}
#endif
#endif
