// Clusters of blocks: their numbers, their barrier, each other's shared memory.
#include "basalt.h"
#define crank __nvvm_read_ptx_sreg_cluster_ctarank()
#define csize __nvvm_read_ptx_sreg_cluster_nctarank()
#define csync() (__nvvm_barrier_cluster_arrive(), __nvvm_barrier_cluster_wait())
KERNEL places(s32 *c) {
  s32 *p = c + 16 * (bidx + gdimx * (bidy + gdimy * bidz));
  p[0] = __nvvm_read_ptx_sreg_cluster_ctaid_x(); p[1] = __nvvm_read_ptx_sreg_cluster_ctaid_y(); p[2] = __nvvm_read_ptx_sreg_cluster_ctaid_z();
  p[3] = __nvvm_read_ptx_sreg_cluster_nctaid_x(); p[4] = __nvvm_read_ptx_sreg_cluster_nctaid_y(); p[5] = __nvvm_read_ptx_sreg_cluster_nctaid_z();
  p[6] = __nvvm_read_ptx_sreg_clusterid_x(); p[7] = __nvvm_read_ptx_sreg_clusterid_y(); p[8] = __nvvm_read_ptx_sreg_clusterid_z();
  p[9] = __nvvm_read_ptx_sreg_nclusterid_x(); p[10] = __nvvm_read_ptx_sreg_nclusterid_y(); p[11] = __nvvm_read_ptx_sreg_nclusterid_z();
  p[12] = crank; p[13] = csize;
}
// Each thread takes the next block's values round by round, and adds to a count of
// the first block's.
KERNEL ring(const s32 *a, s32 *c, s32 *counts, int rounds) {
  __shared__ s32 v[256], count;
  int l = tidx;
  v[l] = a[GID]; if (l == 0) count = 0;
  csync();
  s32 *next = (s32 *)__nvvm_mapa(v, (crank + 1) % csize), *first = (s32 *)__nvvm_mapa(&count, 0);
  for (int k = 0; k < rounds; k++) {
    s32 x = next[(l + k) % bdimx];
    csync();
    v[l] = v[l] * 3 + x;
    __nvvm_atom_add_gen_i(first, x & 7);
    csync();
  }
  c[GID] = v[l] + 1000 * (__nvvm_getctarank(next) == (crank + 1) % csize) + 10000 * (__nvvm_getctarank(v) == crank);
  if (crank == 0 && l == 0) counts[bidx / csize] = count;
}
// The same through addresses of 32 bits, in a cluster that the test makes required;
// some threads end before the others meet again.
KERNEL narrow(const s32 *a, s32 *c) {
  __shared__ s32 v[256];
  int l = tidx;
  v[l] = a[GID];
  csync();
  u32 at, own = (u32)(u64)(__attribute__((address_space(3))) s32 *)v + 4 * l, r, got;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(own), "r"(crank ^ 1));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(at) : "memory");
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(r) : "r"(at));
  c[GID] = got + 1000000 * r;
  if (l & 1) return;
  csync();
  asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(at), "r"(got + 5) : "memory");
  csync();
  c[GID] += v[l];
}
KERNEL outside(s32 *c) { __shared__ s32 v; *(s32 *)__nvvm_mapa(&v, 7) = 1; c[0] = 1; }
