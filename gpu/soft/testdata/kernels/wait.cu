// Kernels whose threads and blocks wait for each other through memory.
#include "basalt.h"
#define INLINE static __device__ inline __attribute__((always_inline))
#define lane __nvvm_read_ptx_sreg_laneid()

INLINE void lock(s32 *l) { while (__nvvm_atom_cas_gen_i(l, 0, 1) != 0); __nvvm_membar_gl(); }
INLINE void unlock(s32 *l) { __nvvm_membar_gl(); __nvvm_atom_xchg_gen_i(l, 0); }
// All blocks meet at a word: each adds, and waits until the highest bit changes.
INLINE void gridsync(s32 *word) {
  sync();
  if (tidx == 0) {
    __nvvm_membar_gl();
    s32 old = __nvvm_atom_add_gen_i(word, bidx == 0 ? 0x80000000 - (gdimx - 1) : 1);
    while (((old ^ *(volatile s32 *)word) & 0x80000000) == 0);
    __nvvm_membar_gl();
  }
  sync();
}
// Every thread takes one lock, in a loop that lets others pass and in one that does not.
KERNEL locked(s32 *l, volatile s32 *sum, const s32 *a, int rounds) {
  for (int k = 0; k < rounds; k++) {
    lock(l);
    *sum = *sum * 3 % 1000003 + a[k];
    unlock(l);
  }
}
KERNEL trylocked(s32 *l, volatile s32 *sum, const s32 *a, int rounds) {
  for (int k = 0; k < rounds; k++)
    for (int done = 0; !done;)
      if (__nvvm_atom_cas_gen_i(l, 0, 1) == 0) {
        *sum = *sum * 3 % 1000003 + a[k];
        unlock(l);
        done = 1;
      }
}
// Threads are served in the order of their tickets, and sleep meanwhile.
KERNEL tickets(volatile s32 *l, volatile s32 *sum, const s32 *a, int rounds) {
  for (int k = 0; k < rounds; k++) {
    s32 mine = __nvvm_atom_add_gen_i((s32 *)l, 1);
    while (l[1] != mine) asm volatile("nanosleep.u32 100;");
    *sum = *sum * 3 % 1000003 + a[k];
    __nvvm_membar_gl();
    l[1] = mine + 1;
  }
}
// Rounds of a stencil over a ring, with a barrier of the grid between them: by a
// word of the program's, or by that of a cooperative launch.
INLINE void stencil(s32 *word, s32 *x, s32 *y, int rounds) {
  int i = GID, n = gdimx * bdimx;
  for (int k = 0; k < rounds; k++) {
    y[i] = 3 * x[i] + x[(i + n - 1) % n] - 5 * x[(i + bdimx) % n];
    gridsync(word);
    s32 *t = x; x = y; y = t;
  }
}
KERNEL gridstencil(s32 *word, s32 *x, s32 *y, int rounds) { stencil(word, x, y, rounds); }
INLINE u64 workspace() { u64 w; asm("mov.b64 %0, {%%envreg2, %%envreg1};" : "=l"(w)); return w; }
KERNEL coopstencil(s32 *, s32 *x, s32 *y, int rounds) { stencil((s32 *)workspace() + 1, x, y, rounds); }
KERNEL hasworkspace(s32 *c) { c[GID] = workspace() != 0; }
// Inclusive sums in one pass: a block adds up what the blocks before it have
// published, its own sum (1) or all up to it (2), and waits for those that have not.
KERNEL lookback(const s32 *a, volatile s64 *state, s32 *c) {
  extern __shared__ s32 d[];
  int l = tidx, i = GID;
  d[l] = a[i]; sync();
  for (int o = 1; o < (int)bdimx; o *= 2) { s32 v = l >= o ? d[l - o] : 0; sync(); d[l] += v; sync(); }
  s32 own = d[bdimx - 1], before = 0;
  sync();
  if (l == 0) {
    if (bidx > 0) {
      state[bidx] = 1ll << 32 | (u32)own;
      for (int b = bidx - 1; b >= 0; b--) {
        s64 s;
        do s = state[b]; while (s >> 32 == 0);
        before += (s32)s;
        if (s >> 32 == 2) break;
      }
    }
    state[bidx] = 2ll << 32 | (u32)(before + own);
    d[0] = before;
  }
  s32 mine = l == 0 ? a[i] : d[l];
  sync();
  c[i] = mine + d[0];
}
// A bounded queue: the first half of the blocks take what the others bring. A
// slot's turn says whose it is: 2t for who brings the t-th, 2t + 1 for who takes it.
struct slot { volatile s32 turn, value; };
KERNEL queue(s32 *ends, struct slot *q, s32 *sums, int size) {
  int half = gdimx / 2, n = 16;
  s32 sum = 0;
  for (int k = 0; k < n; k++) {
    if ((int)bidx >= half) {
      s32 t = __nvvm_atom_add_gen_i(ends, 1);
      struct slot *s = q + t % size;
      while (s->turn != 2 * (t / size));
      s->value = (bidx - half) * bdimx + tidx + k * 1000;
      __nvvm_membar_gl();
      s->turn = 2 * (t / size) + 1;
    } else {
      s32 t = __nvvm_atom_add_gen_i(ends + 1, 1);
      struct slot *s = q + t % size;
      while (s->turn != 2 * (t / size) + 1);
      sum += s->value;
      __nvvm_membar_gl();
      s->turn = 2 * (t / size) + 2;
    }
  }
  __nvvm_atom_add_gen_i(sums, sum);
}
// Each block waits for the one after it.
KERNEL relay(volatile s32 *c) {
  if (tidx == 0) {
    if (bidx + 1 < gdimx) while (c[bidx + 1] == 0);
    c[bidx] = bidx + 1 < gdimx ? c[bidx + 1] + 1 : 1;
  }
}
// Spins for ever.
KERNEL forever(volatile s32 *c) { while (*c == 0); }
KERNEL nothing(s32 *c) {}
