// The kernels of the GPU check. kernels.sh compiles them with clang to
// kernels.ptx, which is in the tree; check_test.go has the expected results.
#define KERNEL extern "C" __attribute__((global)) void
#define TID __nvvm_read_ptx_sreg_tid_x()
#define CTA __nvvm_read_ptx_sreg_ctaid_x()
#define NTID __nvvm_read_ptx_sreg_ntid_x()
#define SHARED __attribute__((shared))
#define BARRIER __nvvm_bar_sync(0)
typedef unsigned u32;
typedef unsigned long long u64;

KERNEL add(const float *a, const float *b, float *out, u32 n) {
	u32 i = CTA * NTID + TID;
	if (i < n) out[i] = a[i] + b[i];
}

KERNEL saxpy(const float *x, const float *y, float *out, u32 n) {
	u32 i = CTA * NTID + TID;
	if (i < n) out[i] = __builtin_fmaf(2.5f, x[i], y[i]);
}

KERNEL daxpy(const double *x, const double *y, double *out, u32 n) {
	u32 i = CTA * NTID + TID;
	if (i < n) out[i] = __builtin_fma(-0.75, x[i], y[i]);
}

// 16 × 16 tiles; the matrices are n × n, n a multiple of 16; one-dimensional
// blocks of 256.
KERNEL matmul(const float *a, const float *b, float *out, u32 n) {
	static SHARED float ta[256], tb[256];
	u32 tiles = n / 16, row = CTA / tiles * 16 + TID / 16, col = CTA % tiles * 16 + TID % 16;
	float sum = 0;
	for (u32 t = 0; t < tiles; t++) {
		ta[TID] = a[row * n + t * 16 + TID % 16];
		tb[TID] = b[(t * 16 + TID / 16) * n + col];
		BARRIER;
		for (u32 k = 0; k < 16; k++) sum = __builtin_fmaf(ta[TID / 16 * 16 + k], tb[k * 16 + TID % 16], sum);
		BARRIER;
	}
	out[row * n + col] = sum;
}

// Sums each block of 256 in shared memory, then uses one atomic.
KERNEL sum(const u32 *a, const u32 *, u32 *out, u32 n) {
	static SHARED u32 s[256];
	u32 i = CTA * NTID + TID;
	s[TID] = i < n ? a[i] : 0;
	BARRIER;
	for (u32 w = 128; w; w /= 2) {
		if (TID < w) s[TID] += s[TID + w];
		BARRIER;
	}
	if (TID == 0) __nvvm_atom_add_gen_i((int *)out, (int)s[0]);
}

// Divergence: the length of the Collatz sequence, at most 1000.
KERNEL collatz(const u32 *a, const u32 *, u32 *out, u32 n) {
	u32 i = CTA * NTID + TID;
	if (i >= n) return;
	u64 x = a[i] % 10000 + 1;
	u32 steps = 0;
	while (x != 1 && steps < 1000) {
		if (x & 1) x = 3 * x + 1;
		else x /= 2;
		steps++;
	}
	out[i] = steps;
}

// Reverses each block of 256 through shared memory.
KERNEL reverse(const u32 *a, const u32 *, u32 *out, u32 n) {
	static SHARED u32 s[256];
	u32 i = CTA * NTID + TID;
	s[TID] = i < n ? a[i] : 0;
	BARRIER;
	if (i < n) out[i] = s[255 - TID];
}

// Integers: signed division, high products, counting.
KERNEL integers(const u32 *a, const u32 *b, u32 *out, u32 n) {
	u32 i = CTA * NTID + TID;
	if (i >= n) return;
	int x = (int)a[i], y = (int)(b[i] % 1000) + 1;
	out[i] = (u32)(x / y) ^ (u32)(x % y) ^ (u32)((u64)a[i] * b[i] >> 32) ^ (u32)__builtin_popcount(a[i]) ^ (a[i] ? (u32)__builtin_clz(a[i]) : 32);
}
