#include "basalt.h"
KERNEL diverge(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  s32 x = a[i], r = 0;
  if (x & 1) { if (x & 2) r = x * 3; else { r = x + 7; if (x & 4) { c[i] = -1; return; } } }
  else { for (int k = 0; k < (x & 31); k++) { if (k == b[i] % 13) continue; if (k > 20) break; r += k * x; } }
  c[i] = r;
}
KERNEL switches(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  s32 r = b[i];
  switch (a[i] & 15) {
  case 0: r += 5; break; case 1: r *= 7; case 2: r ^= 99; break; case 3: r = -r; break;
  case 5: for (int k = 0; k < (r & 7); k++) r = r * 3 + k; break; case 6: r -= a[i]; break;
  case 9: r = r / 3; break; case 12: c[i] = 12; return; default: r++; }
  c[i] = r;
}
KERNEL collatz(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  u32 x = (a[i] & 1023) + 1; s32 k = 0; while (x != 1) { x = x & 1 ? 3 * x + 1 : x / 2; k++; } c[i] = k + b[i];
}
KERNEL mandelbrot(const float *a, const float *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  float cx = a[i], cy = b[i], x = 0, y = 0; int k = 0;
  for (; k < 100 && x * x + y * y < 4.0f; k++) { float t = x * x - y * y + cx; y = 2 * x * y + cy; x = t; }
  c[i] = k;
}
NOINLINE __device__ s32 helper(s32 x, s32 y) { if (x < y) return x * 2; return y - x; }
NOINLINE __device__ float helperf(float x, s32 k) { float r = 1; for (int i = 0; i < k; i++) r = r * x + 1; return r; }
KERNEL calls(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  s32 r = helper(a[i], b[i]); if (a[i] & 1) r += (s32)helperf(0.5f, a[i] & 7); c[i] = r;
}
KERNEL locals(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  s32 v[16]; for (int k = 0; k < 16; k++) v[(k * 5) & 15] = a[i] + k; 
  s32 r = 0; for (int k = 0; k < 16; k++) { r = r * 3 + v[(b[i] + k) & 15]; v[(r & 15)] = k; } c[i] = r;
}
KERNEL grid3d(const s32 *a, const s32 *b, s32 *c, int n) {
  int x = bidx * bdimx + tidx, y = bidy * bdimy + tidy, z = bidz * bdimz + tidz;
  int i = (z * (gdimy * bdimy) + y) * (gdimx * bdimx) + x; if (i < n) c[i] = a[i] + x + 100 * y + 10000 * z + b[i];
}
