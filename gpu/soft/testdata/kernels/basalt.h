// What kernels need of CUDA C, in terms of clang's builtins; no vendor file.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define NOINLINE __attribute__((noinline))
#define KERNEL extern "C" __global__ void
#define tidx __nvvm_read_ptx_sreg_tid_x()
#define tidy __nvvm_read_ptx_sreg_tid_y()
#define tidz __nvvm_read_ptx_sreg_tid_z()
#define bidx __nvvm_read_ptx_sreg_ctaid_x()
#define bidy __nvvm_read_ptx_sreg_ctaid_y()
#define bidz __nvvm_read_ptx_sreg_ctaid_z()
#define bdimx __nvvm_read_ptx_sreg_ntid_x()
#define bdimy __nvvm_read_ptx_sreg_ntid_y()
#define bdimz __nvvm_read_ptx_sreg_ntid_z()
#define gdimx __nvvm_read_ptx_sreg_nctaid_x()
#define gdimy __nvvm_read_ptx_sreg_nctaid_y()
#define sync() __syncthreads()
#define GID (int)(bidx * bdimx + tidx)
typedef unsigned u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef unsigned short u16;
typedef unsigned char u8;
