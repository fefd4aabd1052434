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
#define ADDRESS(p) (u32)(u64)SHARED(p)
// What the descriptor of a matrix says that lies in rows of 128 swizzled bytes.
__device__ u64 swizzled(const void *p) { return ADDRESS(p) >> 4 & 0x3fff | 1ull << 16 | 64ull << 32 | 1ull << 62; }
// c = a b by a warpgroup, 64 by 64, a by rows and b by columns: tiles come by bulk copies,
// a row at a time, are swizzled by hand, and wait at mbarriers.
KERNEL wgmmapipe(const f16 *a, const f16 *b, float *c, int n) {
  __shared__ __attribute__((aligned(1024))) f16 as[64][64], bs[64][64], raw[2][64][64];
  __shared__ u64 full;
  int t = tidx, row = bidy * 64, col = bidx * 64;
  float d[32];
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(ADDRESS(&full)) : "memory");
  sync();
  for (int k = 0, phase = 0; k < n; k += 64, phase ^= 1) {
    if (t == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(ADDRESS(&full)), "r"(2 * 64 * 128) : "memory");
      for (int i = 0; i < 128; i++) {
        const f16 *from = i < 64 ? a + (row + i) * n + k : b + (col + i - 64) * n + k;
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(ADDRESS(raw[i / 64][i % 64])), "l"(from), "r"(ADDRESS(&full)) : "memory");
      }
    }
    asm volatile("{ .reg .pred p; W%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra W%=; }" :: "r"(ADDRESS(&full)), "r"(phase) : "memory");
    for (int i = t; i < 2 * 64 * 64; i += 128) {
      int r = i / 64 % 64, x = i % 64;
      (i < 4096 ? as : bs)[r][(x / 8 ^ r % 8) * 8 + x % 8] = raw[i / 4096][r][x];
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    sync();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int kk = 0; kk < 64; kk += 16)
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
          "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(swizzled(&as[0][kk])), "l"(swizzled(&bs[0][kk])), "r"(k + kk));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    sync();
  }
  for (int i = 0; i < 32; i++)
    c[(row + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * n + col + i / 4 * 8 + t % 4 * 2 + i % 2] = d[i];
}
