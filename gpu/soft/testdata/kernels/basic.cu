#include "basalt.h"
KERNEL vecadd(const float *a, const float *b, float *c, int n) { int i = GID; if (i < n) c[i] = a[i] + b[i]; }
KERNEL saxpy(const float *x, const float *b, float *y, int n) { int i = GID; if (i < n) y[i] = __builtin_fmaf(2.5f, x[i], b[i]); }
KERNEL intmath(const s32 *a, const s32 *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  s32 x = a[i], y = b[i] | 1; u32 ux = x, uy = y;
  c[i] = x * y + x / y - x % y + (s32)(ux / uy) + (s32)(ux % uy) + (x >> 3) + (s32)(ux >> 5) + (x << 2) + (x > y ? x : y) + (ux < uy ? 1 : 2);
}
KERNEL longmath(const s64 *a, const s64 *b, s64 *c, int n) {
  int i = GID; if (i >= n) return;
  s64 x = a[i], y = b[i] | 1; u64 ux = x, uy = y;
  c[i] = x * y + x / y - x % y + (s64)(ux / uy) + (s64)(ux % uy) + (x >> 3) + (s64)(ux >> 37) + (x << 21) + (x > y ? x : y);
}
KERNEL doublemath(const double *a, const double *b, double *c, int n) {
  int i = GID; if (i >= n) return;
  double x = a[i], y = b[i];
  c[i] = __builtin_fma(x, y, x / y) + __builtin_sqrt(x < 0 ? -x : x) - y * y;
}
KERNEL floatmath(const float *a, const float *b, float *c, int n) {
  int i = GID; if (i >= n) return;
  float x = a[i], y = b[i];
  c[i] = x / y + __builtin_sqrtf(__builtin_fabsf(x)) - x * y;
}
KERNEL convert(const float *a, const float *b, s32 *c, int n) {
  int i = GID; if (i >= n) return;
  float x = a[i] * 100.0f; double d = b[i];
  c[i] = (s32)x + (s32)(u8)(u32)(x < 0 ? -x : x) + (s32)(short)(s32)x + (s32)(s64)(d * 1000.0) + (s32)(float)(s32)(x) ;
}
KERNEL bitops(const u32 *a, const u32 *b, u32 *c, int n) {
  int i = GID; if (i >= n) return;
  u32 x = a[i], y = b[i];
  c[i] = (x & y) ^ (x | ~y) ^ __builtin_popcount(x) ^ __builtin_clz(x | 1) ^ __builtin_ctz(y | 0x80000000u) ^ __builtin_bitreverse32(x) ^ ((x << (y & 31)) | (x >> (-y & 31)));
}
KERNEL halfmath(const u16 *a, const u16 *b, u16 *c, int n) {
  int i = GID; if (i >= n) return;
  _Float16 x, y; __builtin_memcpy(&x, a + i, 2); __builtin_memcpy(&y, b + i, 2);
  _Float16 z = x * y + x; __builtin_memcpy(c + i, &z, 2);
}
struct P { float k; s32 m; u8 t; s64 q; };
KERNEL structs(const s32 *a, const s32 *b, s32 *c, int n, struct P p) {
  int i = GID; if (i < n) c[i] = a[i] * p.m + (s32)p.k + p.t + (s32)p.q + b[i];
}
struct V4 { float x, y, z, w; } __attribute__((aligned(16)));
KERNEL vectors(const struct V4 *a, const struct V4 *b, struct V4 *c, int n) {
  int i = GID; if (i * 4 >= n) return;
  struct V4 x = a[i], y = b[i], z; z.x = x.x + y.w; z.y = x.y * y.z; z.z = x.z - y.y; z.w = x.w + y.x; c[i] = z;
}
__constant__ s32 table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ s32 gtable[4] = {10, 20, 30, 40};
KERNEL constants(const s32 *a, const s32 *b, s32 *c, int n) { int i = GID; if (i < n) c[i] = table[a[i] & 7] + gtable[b[i] & 3]; }
