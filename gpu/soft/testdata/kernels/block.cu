#include "basalt.h"
#define T 16
KERNEL matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float as[T][T], bs[T][T];
  int r = bidy * T + tidy, k = bidx * T + tidx; float s = 0;
  for (int t = 0; t < n / T; t++) {
    as[tidy][tidx] = a[r * n + t * T + tidx]; bs[tidy][tidx] = b[(t * T + tidy) * n + k]; sync();
    for (int i = 0; i < T; i++) s = __builtin_fmaf(as[tidy][i], bs[i][tidx], s);
    sync();
  }
  c[r * n + k] = s;
}
KERNEL transpose(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ s32 t[T][T + 1];
  t[tidy][tidx] = a[(bidy * T + tidy) * n + bidx * T + tidx]; sync();
  c[(bidx * T + tidy) * n + bidy * T + tidx] = t[tidx][tidy];
}
KERNEL reduce(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ s32 t[256]; int l = tidx, i = GID;
  t[l] = i < n ? a[i] : 0; sync();
  for (int s = 128; s > 0; s >>= 1) { if (l < s) t[l] += t[l + s]; sync(); }
  if (l == 0) c[bidx] = t[0];
}
KERNEL scan(const s32 *a, const s32 *b, s32 *c, int n) {
  extern __shared__ s32 d[]; int l = tidx, i = GID;
  d[l] = i < n ? a[i] : 0; sync();
  for (int o = 1; o < (int)bdimx; o *= 2) { s32 v = l >= o ? d[l - o] : 0; sync(); d[l] += v; sync(); }
  if (i < n) c[i] = d[l];
}
KERNEL bitonic(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ s32 t[256]; int l = tidx; t[l] = a[GID]; sync();
  for (int k = 2; k <= 256; k *= 2) for (int j = k / 2; j > 0; j /= 2) {
    int p = l ^ j; if (p > l) { s32 x = t[l], y = t[p]; if ((x > y) == ((l & k) == 0)) { t[l] = y; t[p] = x; } } sync(); }
  c[GID] = t[l];
}
KERNEL histogram(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ s32 h[64]; if (tidx < 64) h[tidx] = 0; sync();
  int i = GID; if (i < n) __nvvm_atom_add_gen_i(&h[a[i] & 63], 1); sync();
  if (tidx < 64) __nvvm_atom_add_gen_i(&c[tidx], h[tidx]);
}
KERNEL atomics(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  __nvvm_atom_add_gen_i(c, a[i]); __nvvm_atom_max_gen_i(c + 1, a[i]); __nvvm_atom_min_gen_i(c + 2, a[i]);
  __nvvm_atom_or_gen_i(c + 3, a[i]); __nvvm_atom_xor_gen_i(c + 4, b[i]);
  __nvvm_atom_add_gen_f((float *)c + 5, 1.0f); s32 old = c[6], want;
  do { want = old; old = __nvvm_atom_cas_gen_i(c + 6, want, want + 3); } while (old != want);
}
KERNEL shuffles(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 v = i < n ? a[i] : 0;
  for (int o = 16; o > 0; o /= 2) v += __nvvm_shfl_sync_bfly_i32(~0u, v, o, 31);
  s32 w = __nvvm_shfl_sync_up_i32(~0u, i < n ? b[i] : 0, 1, 0), x = __nvvm_shfl_sync_down_i32(~0u, v + tidx, 2, 31), y = __nvvm_shfl_sync_idx_i32(~0u, w, 5, 31);
  if (i < n) c[i] = v + 3 * w + 5 * x + 7 * y;
}
KERNEL votes(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 v = i < n ? a[i] : 0;
  u32 m = __nvvm_vote_ballot_sync(~0u, v & 1); int any = __nvvm_vote_any_sync(~0u, v > 900), all = __nvvm_vote_all_sync(~0u, v >= 0);
  if (i < n) c[i] = (s32)m + any * 3 + all * 5;
}
// Lanes of a warp come to one barrier at two places, which __syncthreads may not.
KERNEL splitbar(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ s32 t[256]; int l = tidx;
  if (l & 1) { t[l] = a[GID]; __nvvm_barrier_sync(0); c[GID] = t[l ^ 1] * 2; } else { t[l] = b[GID]; __nvvm_barrier_sync(0); c[GID] = t[l ^ 1] + 1; }
}
