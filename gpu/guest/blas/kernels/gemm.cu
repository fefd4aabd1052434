// Matrix times matrix, for every type and transposition: strides describe where elements are, so
// that one kernel serves all of them. A block of 32 × 8 threads computes 64 rows of D, and 8
// columns for each column of a thread; for a narrow D it has fewer threads. The lanes of a warp
// have adjacent rows. The soft GPU's machine code is fast with this shape: eight lanes load from
// A in one piece, the elements of B are the same for all lanes, and sums stay in registers.
#include "types.h"

template <class Out, class S> struct epilogue {
	static __device__ S of(const gemm_args &, int, int, int, S v) { return v; }
};
template <class Out> struct epilogue<Out, float> {
	static __device__ float logistic(float x) { return 1 / (1 + __nvvm_ex2_approx_f(-1.442695041f * x)); }

	// GELU by its approximation with tanh, as frameworks define it for this library:
	// x (1 + tanh u) / 2 = x s, s = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3);
	// and its derivative, s + x s (1 - s) 2 u'.
	static __device__ float gelu(float x, bool gradient)
	{
		float s = logistic(1.595769122f * x * mad(0.044715f * x, x, 1.0f));

		return gradient ? mad(x * s * (1 - s), 1.595769122f * mad(0.134145f * x, x, 1.0f), s) : x * s;
	}

	// Not inlined, because it is rarely needed, and would otherwise be in the code once for
	// each element.
	static __device__ __attribute__((noinline)) float activate(int activation, float v, Out *aux)
	{
		if (activation == BLAS_GELU_GRADIENT)
			return v * gelu(widen(*aux), true);
		if (aux)
			*aux = narrow<Out>::of(v);
		return activation == BLAS_RELU ? (v <= 0 ? 0 : v) : gelu(v, false);
	}

	static __device__ float of(const gemm_args &g, int z, int row, int column, float v)
	{
		if (g.bias.p)
			v += widen(matrix<const Out>(g.bias, z, 0)[row * g.bias.row + column * g.bias.column]);
		if (g.activation == BLAS_NONE)
			return v;
		return activate(g.activation, v, g.aux.p ? matrix<Out>(g.aux, z, 0) + row * g.aux.row + column * g.aux.column : nullptr);
	}
};

// Computes and stores an element of D. C and D may be the same matrix.
template <class Out, class S, class W> DEVICE void finish(const gemm_args &g, int z, int row, int column, S alpha, S beta, W sum)
{
	S v = times(alpha, narrow<S>::of(sum));

	if (!is_zero(beta))
		v = mad(beta, narrow<S>::of(widen(matrix<const Out>(g.c, z, g.arrays)[row * g.c.row + column * g.c.column])), v);
	matrix<Out>(g.d, z, g.arrays)[row * g.d.row + column * g.d.column] = narrow<Out>::of(epilogue<Out, S>::of(g, z, row, column, v));
}

// Loads an element of a matrix into shared memory, tile[step][line]: lines are A's rows or B's
// columns. Elements beyond the matrix are 0. There the last element is read instead, so that
// lanes do not diverge.
template <int LINES, int PITCH, class T, class W>
DEVICE void bring_one(int x, W (*tile)[PITCH], const T *p, s64 line_step, s64 depth_step, int line, int lines, int depth, int depths, int conj)
{
	bool across = line_step == 1;
	int i = across ? x % LINES : x / GEMM_DEPTH, l = across ? x / LINES : x % GEMM_DEPTH;
	W v = conjugate(widen(p[least(line + i, lines - 1) * line_step + least(depth + l, depths - 1) * depth_step]), conj);

	tile[l][i] = depth + l < depths ? v : W{};
}

// Loads a tile. The share of each thread of a full block is known, so the code has no loop, which
// is fastest in machine code of the soft GPU.
template <int LINES, int PITCH, class T, class W>
DEVICE void bring(W (*tile)[PITCH], const T *p, s64 line_step, s64 depth_step, int line, int lines, int depth, int depths, int conj)
{
	const int threads = GEMM_LANES * GEMM_LINES;
	int t = tid_y * GEMM_LANES + tid_x;

	if (threads_y == GEMM_LINES) {
		UNROLL
		for (int x = t; x < LINES * GEMM_DEPTH; x += threads)
			bring_one<LINES>(x, tile, p, line_step, depth_step, line, lines, depth, depths, conj);
		return;
	}
	for (int x = t; x < LINES * GEMM_DEPTH; x += GEMM_LANES * threads_y)
		bring_one<LINES>(x, tile, p, line_step, depth_step, line, lines, depth, depths, conj);
}

template <class In, class Out, class S, int EACH> DEVICE void multiply(const gemm_args &g, int z)
{
	typedef typename type<In>::Wide W;
	const int rows_each = GEMM_ROWS / GEMM_LANES, columns = GEMM_LINES * EACH;
	// Four more columns, which avoids bank conflicts in the shared memory of a physical GPU.
	__shared__ W tile_a[GEMM_DEPTH][GEMM_ROWS + 4], tile_b[GEMM_DEPTH][columns + 4];
	int row_tiles = (g.m + GEMM_ROWS - 1) / GEMM_ROWS;
	int row = block_x % row_tiles * GEMM_ROWS, column = block_x / row_tiles * columns;
	S alpha = scalar<S>(g.alpha), beta = scalar<S>(g.beta);
	int k = is_zero(alpha) || (g.nothing_at_zero && is_zero(beta)) ? 0 : g.k;
	const In *a = k > 0 ? matrix<const In>(g.a, z, g.arrays) : nullptr, *b = k > 0 ? matrix<const In>(g.b, z, g.arrays) : nullptr;
	W sums[EACH][rows_each] = {};

	for (int depth = 0; depth < k; depth += GEMM_DEPTH) {
		bring<GEMM_ROWS>(tile_a, a, g.a.row, g.a.column, row, g.m, depth, k, g.conjugate_a);
		bring<columns>(tile_b, b, g.b.column, g.b.row, column, g.n, depth, k, g.conjugate_b);
		__syncthreads();
		UNROLL
		for (int l = 0; l < GEMM_DEPTH; l++) {
			W from_a[rows_each], from_b[EACH];

			UNROLL
			for (int i = 0; i < rows_each; i++)
				from_a[i] = tile_a[l][tid_x + GEMM_LANES * i];
			UNROLL
			for (int j = 0; j < EACH; j++)
				from_b[j] = tile_b[l][tid_y * EACH + j];
			UNROLL
			for (int j = 0; j < EACH; j++)
				UNROLL
				for (int i = 0; i < rows_each; i++)
					sums[j][i] = mad(from_a[i], from_b[j], sums[j][i]);
		}
		__syncthreads();
	}
	UNROLL
	for (int j = 0; j < EACH; j++)
		UNROLL
		for (int i = 0; i < rows_each; i++) {
			int r = row + tid_x + GEMM_LANES * i, c = column + tid_y * EACH + j;

			if (r < g.m && c < g.n)
				finish<Out>(g, z, r, c, alpha, beta, sums[j][i]);
		}
}

#define GEMM(name, In, Out, S, EACH) \
	KERNEL(GEMM_LANES *GEMM_LINES) gemm_##name(const gemm_args g) \
	{ \
		for (int z = block_z; z < g.batch; z += grid_z) \
			multiply<In, Out, S, EACH>(g, z); \
	}

#if defined MODULE_f32
GEMM(f32, float, float, float, GEMM_WIDE)
#elif defined MODULE_f64
GEMM(f64, double, double, double, GEMM_NARROW)
#elif defined MODULE_c32
GEMM(c32, complex32, complex32, complex32, GEMM_NARROW)
#elif defined MODULE_c64
GEMM(c64, complex64, complex64, complex64, GEMM_NARROW)
#elif defined MODULE_f16
GEMM(f16, half, half, float, GEMM_WIDE)
GEMM(f16_f32, half, float, float, GEMM_WIDE)
#elif defined MODULE_bf16
GEMM(bf16, bfloat, bfloat, float, GEMM_WIDE)
GEMM(bf16_f32, bfloat, float, float, GEMM_WIDE)
#elif defined MODULE_s8
GEMM(s8_s32, signed char, int, int, GEMM_WIDE)
GEMM(s8_f32, signed char, float, float, GEMM_WIDE)
#endif
