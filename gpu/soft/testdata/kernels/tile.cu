// Groups of threads smaller than a warp, as CUDA's cooperative groups make
// them: tiles of a fixed size, and partitions by a label.
#include "basalt.h"
#define lane __nvvm_read_ptx_sreg_laneid()
#define INLINE static __device__ inline __attribute__((always_inline))

INLINE s32 reduxAdd(u32 mask, s32 v) { s32 d; asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(d) : "r"(v), "r"(mask)); return d; }
INLINE s32 reduxMax(u32 mask, s32 v) { s32 d; asm volatile("redux.sync.max.s32 %0, %1, %2;" : "=r"(d) : "r"(v), "r"(mask)); return d; }

// What tile<N> computes of x and y with every operation that a tile has.
template <int N> INLINE s32 tile(s32 x, s32 y) {
  const int width = (32 - N) << 8 | 31;
  u32 first = lane & ~(N - 1u), mask = ((1u << N) - 1) << first;
  s32 h = __nvvm_vote_ballot_sync(mask, x & 1) >> first;
  h = h * 31 + __nvvm_vote_any_sync(mask, (x & 7) == 0) + 2 * __nvvm_vote_all_sync(mask, (y & 3) != 0) + 4 * __nvvm_vote_uni_sync(mask, y & 1);
  s32 s = x;
  for (int o = N / 2; o > 0; o /= 2) s += __nvvm_shfl_sync_down_i32(mask, s, o, width);
  h = h * 31 + __nvvm_shfl_sync_idx_i32(mask, s, 0, width);
  h = h * 31 + __nvvm_shfl_sync_bfly_i32(mask, y, N / 2, width);
  h = h * 31 + (__nvvm_match_any_sync_i32(mask, y & 3) >> first);
  int same;
  h = h * 31 + (__nvvm_match_all_sync_i32p(mask, x & 1, &same) >> first) + same;
  __nvvm_bar_warp_sync(mask);
  return h * 31 + reduxAdd(mask, y) + reduxMax(mask, x);
}
KERNEL tiles(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 x = a[i], y = b[i];
  c[i] = tile<2>(x, y) + 3 * tile<4>(x, y) + 5 * tile<8>(x, y) + 7 * tile<16>(x, y);
}
// Tiles of one warp in different code, which come there at different times.
KERNEL tilesapart(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 x = a[i], y = b[i], r;
  if (tidx / 16 & 1) {
    for (int k = x & 7; k > 0; k--) x = x * 3 + y;
    r = tile<16>(x, y) + tile<2>(y, x);
  } else {
    r = tile<16>(y, x) + tile<8>(x, y);
  }
  c[i] = r;
}
// Partitions of a warp by a label, and of the lanes of a branch.
KERNEL labeled(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 x = a[i], label = b[i] & 3, sum = 0, odd = 0;
  u32 mask = __nvvm_match_any_sync_i32(~0u, label), less = (1u << lane) - 1;
  for (u32 m = mask; m; m &= m - 1) sum = sum * 3 + __nvvm_shfl_sync_idx_i32(mask, x, __builtin_ctz(m), 31);
  u32 active = __nvvm_vote_ballot_sync(~0u, x & 1);
  if (x & 1) {
    u32 part = __nvvm_match_any_sync_i32(active, label);
    odd = reduxAdd(part, x) + 100 * __builtin_popcount(part) + __nvvm_vote_ballot_sync(part, x & 2);
  }
  c[i] = sum + 5 * odd + 7 * __builtin_popcount(mask & less) + __nvvm_vote_any_sync(mask, x < 0);
}
// A block's sum by tiles of 16: each tile, then one tile over the tiles.
KERNEL tilereduce(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ s32 t[16];
  const int width = 16 << 8 | 31;
  u32 mask = 0xffffu << (lane & 16);
  s32 s = a[GID];
  for (int o = 8; o > 0; o /= 2) s += __nvvm_shfl_sync_down_i32(mask, s, o, width);
  if (tidx % 16 == 0) t[tidx / 16] = s;
  sync();
  if (tidx < 16) {
    s = tidx < bdimx / 16 ? t[tidx] : 0;
    for (int o = 8; o > 0; o /= 2) s += __nvvm_shfl_sync_down_i32(0xffff, s, o, width);
    if (tidx == 0) c[bidx] = s;
  }
}
// A warp takes a lock with one lane, adds to a sum, and releases the lock with
// all lanes.
KERNEL lockedsum(s64 *lock, volatile s32 *sum, const s32 *a, int rounds) {
  for (int k = 0; k < rounds; k++) {
    if (lane == 0)
      while (__nvvm_atom_cas_gen_ll(lock, 0, 1) != 0);
    __nvvm_bar_warp_sync(~0u);
    s32 v = *sum + a[bidx * rounds + k];
    __nvvm_bar_warp_sync(~0u);
    *sum = v;
    __nvvm_membar_gl();
    *(volatile s64 *)lock = 0;
  }
}
// The form of cuda_fp16.h: directives without a blank.
KERNEL halfasm(const u16 *a, const u16 *b, u16 *c, int n) {
  int i = GID; if (i >= n) return;
  u16 d;
  asm("{.reg.b32 f, g;\n .reg.b16 h,r;\n mov.b16 h,%1;\n cvt.f32.f16 f,h;\n mov.b16 r,%2;\n cvt.f32.f16 g,r;\n"
      " fma.rn.f32 f,f,g,g;\n cvt.rn.f16.f32 r,f;\n mov.b16 %0,r;\n}" : "=h"(d) : "h"(a[i]), "h"(b[i]));
  c[i] = d;
}
