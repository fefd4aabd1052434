/* Functions of device code, from clang's builtins: thread indices, barriers, bits, atomics,
 * shuffles and votes. */
#ifndef BASALT_DEVICE_H
#define BASALT_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "vector_functions.h"

#define BASALT_DEVICE static __inline__ __attribute__((always_inline, device))

BASALT_DEVICE void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }
BASALT_DEVICE void *memmove(void *to, const void *from, size_t n) { return __builtin_memmove(to, from, n); }
BASALT_DEVICE void *memset(void *to, int value, size_t n) { return __builtin_memset(to, value, n); }

/* Functions that the driver provides to kernels. */
extern "C" {
__attribute__((device)) void *malloc(size_t) __attribute__((nothrow, malloc));
__attribute__((device)) void free(void *) __attribute__((nothrow));
__attribute__((device)) int vprintf(const char *, const char *);
__attribute__((device)) int printf(const char *, ...);
__attribute__((device)) void __assertfail(const char *what, const char *file, unsigned int line, const char *function, size_t size)
	__attribute__((noreturn));
__attribute__((device)) void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
}
extern "C" __attribute__((device, noreturn)) inline void __assert_fail(const char *what, const char *file, unsigned int line,
									const char *function)
{
	__assertfail(what, file, line, function, sizeof(char));
}

#include <__clang_cuda_builtin_vars.h>

#define BASALT_PLACE(v) \
	__attribute__((device)) inline __cuda_builtin_##v##_t::operator dim3() const { return dim3(x, y, z); } \
	__attribute__((device)) inline __cuda_builtin_##v##_t::operator uint3() const { return make_uint3(x, y, z); }
BASALT_PLACE(threadIdx)
BASALT_PLACE(blockIdx)
BASALT_PLACE(blockDim)
BASALT_PLACE(gridDim)

/* __syncthreads() is a builtin of clang. */
BASALT_DEVICE int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
BASALT_DEVICE int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
BASALT_DEVICE int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
BASALT_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }
BASALT_DEVICE void __threadfence() { __nvvm_membar_gl(); }
BASALT_DEVICE void __threadfence_system() { __nvvm_membar_sys(); }
BASALT_DEVICE void __trap() { __asm__ __volatile__("trap;"); }
BASALT_DEVICE void __brkpt() { __asm__ __volatile__("brkpt;"); }
BASALT_DEVICE long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
BASALT_DEVICE int clock() { return __nvvm_read_ptx_sreg_clock(); }

BASALT_DEVICE int __popc(unsigned int x) { return __builtin_popcount(x); }
BASALT_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
BASALT_DEVICE int __clz(int x) { return x ? __builtin_clz((unsigned int)x) : 32; }
BASALT_DEVICE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
BASALT_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
BASALT_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
BASALT_DEVICE unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }
BASALT_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
BASALT_DEVICE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
BASALT_DEVICE unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned int)(((unsigned long long)a * b) >> 32); }
BASALT_DEVICE int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
BASALT_DEVICE unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffff) * (b & 0xffffff); }
BASALT_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
BASALT_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
BASALT_DEVICE float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
BASALT_DEVICE unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
BASALT_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
BASALT_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }

/* The operand of shuffles: the segment's mask and the last participating lane in one word. */
#define BASALT_SEGMENT(width, last) (((warpSize - (width)) << 8) | (last))
#define BASALT_SHUFFLE(name, instruction, last, t) \
	BASALT_DEVICE int name(unsigned int mask, int v, t n, int width = warpSize) \
	{ \
		return instruction(mask, v, n, BASALT_SEGMENT(width, last)); \
	} \
	BASALT_DEVICE unsigned int name(unsigned int mask, unsigned int v, t n, int width = warpSize) \
	{ \
		return (unsigned int)name(mask, (int)v, n, width); \
	} \
	BASALT_DEVICE float name(unsigned int mask, float v, t n, int width = warpSize) \
	{ \
		return __int_as_float(name(mask, __float_as_int(v), n, width)); \
	} \
	BASALT_DEVICE long long name(unsigned int mask, long long v, t n, int width = warpSize) \
	{ \
		unsigned int low = (unsigned int)name(mask, (int)v, n, width), high = (unsigned int)name(mask, (int)(v >> 32), n, width); \
		return (long long)((unsigned long long)high << 32 | low); \
	} \
	BASALT_DEVICE unsigned long long name(unsigned int mask, unsigned long long v, t n, int width = warpSize) \
	{ \
		return (unsigned long long)name(mask, (long long)v, n, width); \
	} \
	BASALT_DEVICE double name(unsigned int mask, double v, t n, int width = warpSize) \
	{ \
		return __longlong_as_double(name(mask, __double_as_longlong(v), n, width)); \
	}
BASALT_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, 31, int)
BASALT_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, 0, unsigned int)
BASALT_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, 31, unsigned int)
BASALT_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, 31, int)

BASALT_DEVICE void __syncwarp(unsigned int mask = 0xffffffff) { __nvvm_bar_warp_sync(mask); }
BASALT_DEVICE int __all_sync(unsigned int mask, int p) { return __nvvm_vote_all_sync(mask, p); }
BASALT_DEVICE int __any_sync(unsigned int mask, int p) { return __nvvm_vote_any_sync(mask, p); }
BASALT_DEVICE unsigned int __ballot_sync(unsigned int mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
BASALT_DEVICE unsigned int __activemask()
{
	unsigned int mask;

	__asm__ __volatile__("activemask.b32 %0;" : "=r"(mask));
	return mask;
}
template <class T> BASALT_DEVICE T __ldg(const T *p) { return *p; }

/* Atomics are relaxed, as the language defines them. */
#define BASALT_ATOMIC_INTEGER(t) \
	BASALT_DEVICE t atomicAdd(t *p, t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicSub(t *p, t v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicMin(t *p, t v) { return __atomic_fetch_min(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicMax(t *p, t v) { return __atomic_fetch_max(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicAnd(t *p, t v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicOr(t *p, t v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicXor(t *p, t v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicExch(t *p, t v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); } \
	BASALT_DEVICE t atomicCAS(t *p, t old, t v) \
	{ \
		__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
		return old; \
	}
BASALT_ATOMIC_INTEGER(int)
BASALT_ATOMIC_INTEGER(unsigned int)
BASALT_ATOMIC_INTEGER(unsigned long long)
BASALT_ATOMIC_INTEGER(long long)
BASALT_DEVICE float atomicAdd(float *p, float v) { return __nvvm_atom_add_gen_f(p, v); }
BASALT_DEVICE double atomicAdd(double *p, double v) { return __nvvm_atom_add_gen_d(p, v); }
BASALT_DEVICE float atomicExch(float *p, float v) { return __int_as_float(atomicExch((int *)p, __float_as_int(v))); }
BASALT_DEVICE unsigned int atomicInc(unsigned int *p, unsigned int v) { return __nvvm_atom_inc_gen_ui(p, v); }
BASALT_DEVICE unsigned int atomicDec(unsigned int *p, unsigned int v) { return __nvvm_atom_dec_gen_ui(p, v); }

#endif
