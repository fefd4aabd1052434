// Products of matrices on tensor cores: by clang's wmma builtins, and by ldmatrix,
// mma and cp.async as libraries of kernels use them.
#include "basalt.h"
typedef _Float16 f16;
#define SHARED(p) (__attribute__((address_space(3))) void *)(p)
#define GLOBAL(p) (const __attribute__((address_space(1))) void *)(p)
// c = a b, of n by n, a by rows, b by columns; one warp makes 16 by 16.
KERNEL wmmahalf(const f16 *a, const f16 *b, float *c, int n) {
  int fa[8], fb[8]; float fc[8];
  for (int i = 0; i < 8; i++) fc[i] = 0;
  int row = bidy * 16, col = bidx * 16;
  for (int k = 0; k < n; k += 16) {
    __hmma_m16n16k16_ld_a(fa, (const int *)(a + row * n + k), n, 0);
    __hmma_m16n16k16_ld_b(fb, (const int *)(b + col * n + k), n, 1);
    __hmma_m16n16k16_mma_f32f32(fc, fa, fb, fc, 1, 0);
  }
  for (int i = 0; i < 8; i++) fc[i] *= 2;
  __hmma_m16n16k16_st_c_f32(c + row * n + col, fc, n, 0);
}
KERNEL wmmachar(const signed char *a, const signed char *b, int *c, int n) {
  int fa[2], fb[2], fc[8];
  for (int i = 0; i < 8; i++) fc[i] = 3;
  int row = bidy * 16, col = bidx * 16;
  for (int k = 0; k < n; k += 16) {
    __imma_m16n16k16_ld_a_s8(fa, (const int *)(a + row * n + k), n, 0);
    __imma_m16n16k16_ld_b_s8(fb, (const int *)(b + col * n + k), n, 1);
    __imma_m16n16k16_mma_s8(fc, fa, fb, fc, 1, 0);
  }
  __imma_m16n16k16_st_c_i32(c + row * n + col, fc, n, 0);
}
KERNEL wmmadouble(const double *a, const double *b, double *c, int n) {
  double fa, fb, fc[2] = {0, 0};
  int row = bidy * 8, col = bidx * 8;
  for (int k = 0; k < n; k += 4) {
    __dmma_m8n8k4_ld_a(&fa, a + row * n + k, n, 0);
    __dmma_m8n8k4_ld_b(&fb, b + col * n + k, n, 1);
    __dmma_m8n8k4_mma_f64(fc, &fa, &fb, fc, 1, 0);
  }
  __dmma_m8n8k4_st_c_f64(c + row * n + col, fc, n, 0);
}
// Four warps make 32 by 16: b by rows, two stages of cp.async, ldmatrix with .trans for b.
KERNEL mmapipe(const f16 *a, const f16 *b, float *c, int n) {
  __shared__ __attribute__((aligned(128))) f16 as[2][32][24], bs[2][16][24];
  int t = tidx, lane = t & 31, warp = t >> 5, row = bidy * 32, col = bidx * 16;
  float d[4] = {0, 0, 0, 0};
  auto fetch = [&] __device__ (int s, int k) {
    if (t < 64) __nvvm_cp_async_cg_shared_global_16(SHARED(&as[s][t / 2][t % 2 * 8]), GLOBAL(a + (row + t / 2) * n + k + t % 2 * 8));
    else if (t < 96) __nvvm_cp_async_cg_shared_global_16(SHARED(&bs[s][(t - 64) / 2][t % 2 * 8]), GLOBAL(b + (k + (t - 64) / 2) * n + col + t % 2 * 8));
    __nvvm_cp_async_commit_group();
  };
  fetch(0, 0);
  for (int k = 0, s = 0; k < n; k += 16, s ^= 1) {
    if (k + 16 < n) fetch(s ^ 1, k + 16); else __nvvm_cp_async_commit_group();
    __nvvm_cp_async_wait_group(1);
    sync();
    unsigned ra[4], rb[2];
    u32 pa = (u32)(u64)SHARED(&as[s][(warp & 1) * 16 + lane % 16][lane / 16 * 8]);
    u32 pb = (u32)(u64)SHARED(&bs[s][lane % 16][(warp >> 1) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    sync();
  }
  float *p = c + (row + (warp & 1) * 16 + lane / 4) * n + col + (warp >> 1) * 8 + lane % 4 * 2;
  p[0] = d[0]; p[1] = d[1]; p[8 * n] = d[2]; p[8 * n + 1] = d[3];
}
