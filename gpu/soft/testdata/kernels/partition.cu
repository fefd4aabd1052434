// Partitions of a warp by a condition or a label, as CUDA's cooperative groups make
// them with binary_partition and labeled_partition: a mask, and ranks in it.
#include "basalt.h"
#define lane __nvvm_read_ptx_sreg_laneid()
#define INLINE static __device__ inline __attribute__((always_inline))

struct group {
  u32 mask;
  __device__ int size() const { return __builtin_popcount(mask); }
  __device__ int rank() const { return __builtin_popcount(mask & ((1u << lane) - 1)); }
  __device__ u32 ballot(bool p) const { return __nvvm_vote_ballot_sync(mask, p); }
  __device__ group binary(bool p) const {
    u32 yes = ballot(p);
    return group{p ? yes : mask & ~yes};
  }
  __device__ group labeled(s32 label) const { return group{(u32)__nvvm_match_any_sync_i32(mask, label)}; }
  // The value of the lane with a rank.
  __device__ s32 shfl(s32 v, int rank) const {
    u32 m = mask;
    for (; rank > 0; rank--) m &= m - 1;
    return __nvvm_shfl_sync_idx_i32(mask, v, __builtin_ctz(m), 31);
  }
};
INLINE group warp() { return group{(u32)__nvvm_vote_ballot_sync(~0u, 1)}; }

// What the lanes from this one on have, added up, in steps that partitions of
// different sizes have different numbers of.
INLINE s32 sumFrom(group g, s32 v) {
  int size = g.size(), rank = g.rank();
  for (int o = 1; o < size; o *= 2) {
    s32 t = g.shfl(v, rank + o < size ? rank + o : rank);
    if (rank + o < size) v += t;
  }
  return v;
}
KERNEL binaries(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 x = a[i], y = b[i];
  group odd = warp().binary(x & 1), both = odd.binary(y & 1);
  c[i] = sumFrom(both, x) * 3 + odd.shfl(y, odd.size() - 1 - odd.rank()) + both.size() * 1000;
}
// Partitions by label of tiles of 16, and again of those.
KERNEL labels(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; s32 x = a[i], y = b[i];
  group tile{0xffffu << (lane & 16)};
  group g = tile.labeled(y & 3), h = g.labeled(x & 1);
  c[i] = sumFrom(g, x) + 7 * sumFrom(h, y) + 100 * g.rank() + h.rank();
}
// One lane of each label counts for all of them; labels come one after another,
// and the lanes of those that are through wait at the end.
KERNEL aggregated(const s32 *a, const s32 *b, s32 *c, int n) {
  __shared__ u32 count[8][4];
  if (lane < 4) count[tidx / 32][lane] = 10 * lane;
  __nvvm_bar_warp_sync(~0u);
  int i = GID; s32 x = a[i], label = b[i] & 3, slot = 0;
  for (group todo = warp();;) {
    s32 next = todo.shfl(label, 0);
    u32 peers = todo.ballot(label == next);
    if (label == next) {
      group g{peers};
      for (int round = x & 3; g.ballot(round > 0); round--) { // until all are through
        if (g.rank() == 0) slot = __nvvm_atom_add_gen_i((int *)&count[tidx / 32][label], g.size());
        slot = g.shfl(slot, 0);
      }
      slot += g.rank();
      break;
    }
    todo.mask &= ~peers;
  }
  __nvvm_bar_warp_sync(~0u);
  c[i] = slot * 1000 + count[tidx / 32][label];
}
