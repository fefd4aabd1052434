/* Attributes of CUDA functions and variables, in clang's form. */
#ifndef BASALT_HOST_DEFINES_H
#define BASALT_HOST_DEFINES_H

#ifdef __CUDA__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#else
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __launch_bounds__(...)
#endif
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#ifndef __noinline__ /* a keyword of newer compilers, and a name in the C++ library */
#define __noinline__ __attribute__((noinline))
#endif
#ifndef CUDARTAPI
#define CUDARTAPI
#endif
#define CUDART_CB

#endif
