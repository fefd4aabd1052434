// Triangular systems and factorizations of small matrices.
#include "block.h"

// Each lane solves a column of B by substitution. T and the columns are in shared memory
// during that time.
KERNEL(SOLVE_COLUMNS) NAME(solve)(const solve_args g)
{
	__shared__ T t[SOLVE_ORDER][SOLVE_ORDER], x[SOLVE_ORDER][SOLVE_COLUMNS];
	int lane = tid_x, n = g.order, column = block_x * SOLVE_COLUMNS + lane;
	T alpha = scalar<T>(g.alpha);

	for (int z = block_z; z < g.batch; z += grid_z) {
		const T *from = matrix<const T>(g.t, z, g.arrays);
		T *b = matrix<T>(g.b, z, g.arrays) + column * g.b.column;

		// Elements on the other side of the diagonal, and a unit diagonal, are not read.
		for (int i = 0; i < n && !is_zero(alpha); i++)
			if (lane == i ? !g.unit : lane < n && (g.lower != 0) == (lane < i))
				t[i][lane] = conjugate(from[i * g.t.row + lane * g.t.column], g.conjugate);
		for (int i = 0; i < n && column < g.columns; i++)
			x[i][lane] = is_zero(alpha) ? T{} : times(alpha, b[i * g.b.row]);
		__syncthreads();
		for (int s = 0; s < n && !is_zero(alpha); s++) {
			int i = g.lower ? s : n - 1 - s;
			T v = x[i][lane];

			for (int l = g.lower ? 0 : i + 1, end = g.lower ? i : n; l < end; l++)
				v = mad(negative(t[i][l]), x[l][lane], v);
			x[i][lane] = g.unit ? v : quotient(v, t[i][i]);
		}
		for (int i = 0; i < n && column < g.columns; i++)
			b[i * g.b.row] = x[i][lane];
		__syncthreads();
	}
}

// Returns the row of the largest element of a column, from row j on, and the first of equal
// ones.
DEVICE int find_pivot(const T *column, int j, int m, double *most, int *where)
{
	int t = tid_x;

	most[t] = -1;
	where[t] = j;
	for (int i = j + t; i < m; i += FACTOR_THREADS) {
		double size = size_of(column[i]);

		if (size > most[t]) {
			most[t] = size;
			where[t] = i;
		}
	}
	for (int half = FACTOR_THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (t < half && (most[t + half] > most[t] || (most[t + half] == most[t] && where[t + half] < where[t]))) {
			most[t] = most[t + half];
			where[t] = where[t + half];
		}
	}
	__syncthreads();
	int p = where[0];
	__syncthreads();
	return p;
}

DEVICE void exchange(T *a, T *b)
{
	T v = *a;

	*a = *b;
	*b = v;
}

// A = P L U, one block for each matrix of order n.
KERNEL(FACTOR_THREADS) NAME(getrf)(const factor_args g)
{
	__shared__ double most[FACTOR_THREADS];
	__shared__ int where[FACTOR_THREADS];
	int n = g.n, t = tid_x;

	for (int z = block_x; z < g.batch; z += grid_x) {
		T *a = (T *)g.a[z];
		int info = 0;

		for (int j = 0; j < n; j++) {
			T *column = a + j * g.lda;
			int rest = n - j - 1;

			if (g.pivots) {
				int p = find_pivot(column, j, n, most, where);

				if (t == 0)
					g.pivots[(s64)z * n + j] = p + 1;
				for (int c = t; c < n && p != j; c += FACTOR_THREADS)
					exchange(a + j + c * g.lda, a + p + c * g.lda);
				__syncthreads();
			}
			if (is_zero(column[j])) {
				info = info ? info : j + 1;
				continue;
			}
			for (int i = t; i < rest; i += FACTOR_THREADS)
				column[j + 1 + i] = quotient(column[j + 1 + i], column[j]);
			__syncthreads();
			for (int e = t; e < rest * rest; e += FACTOR_THREADS) {
				T *to = column + (1 + e / rest) * g.lda;

				to[j + 1 + e % rest] = mad(negative(column[j + 1 + e % rest]), to[j], to[j + 1 + e % rest]);
			}
			__syncthreads();
		}
		if (t == 0)
			g.info[z] = info;
	}
}

// Exchanges rows of the right-hand sides as getrf did. Each thread has its own columns.
KERNEL(FACTOR_THREADS) NAME(pivot)(const factor_args g)
{
	for (int z = block_x; z < g.batch; z += grid_x)
		for (int c = tid_x; c < g.columns; c += FACTOR_THREADS) {
			T *b = (T *)g.c[z] + c * g.ldc;

			for (int s = 0; s < g.n; s++) {
				int i = g.backward ? g.n - 1 - s : s, p = g.pivots[(s64)z * g.n + i] - 1;

				if (p != i && p >= 0 && p < g.n)
					exchange(b + i, b + p);
			}
		}
}

template <class V> DEVICE double square(V v) { return (double)v * v; }
template <class V> DEVICE double square(complex<V> v) { return square(v.x) + square(v.y); }
template <class V> DEVICE double real(V v) { return v; }
template <class V> DEVICE double real(complex<V> v) { return v.x; }
template <class V> DEVICE double imaginary(V) { return 0; }
template <class V> DEVICE double imaginary(complex<V> v) { return v.y; }

// Computes the reflector I - tau v v^H that makes a column 0 below row j. v is 1 in row j and is
// stored below it. Row j gets the norm, with the sign that avoids cancellation.
DEVICE T reflector(T *column, int j, int m, double *line)
{
	T alpha = column[j];
	double sum = 0;

	for (int i = j + 1 + tid_x; i < m; i += FACTOR_THREADS)
		sum += square(column[i]);
	sum = over_block<Add>(sum, line);
	if (sum == 0 && imaginary(alpha) == 0)
		return T{};
	double norm = __builtin_sqrt(sum + square(alpha)), beta = real(alpha) < 0 ? norm : -norm;
	T below = plus(alpha, number<T>::of(-beta, 0));
	for (int i = j + 1 + tid_x; i < m; i += FACTOR_THREADS)
		column[i] = quotient(column[i], below);
	if (tid_x == 0)
		column[j] = number<T>::of(beta, 0);
	return number<T>::of((beta - real(alpha)) / beta, -imaginary(alpha) / beta);
}

// Returns column c of A, or of the right-hand sides if c is larger.
DEVICE T *column_of(const factor_args &g, T *a, T *right, int c)
{
	return c < g.n ? a + c * g.lda : right + (c - g.n) * g.ldc;
}

// Applies the reflector's conjugate transpose to the columns after j, eight at a time with 32
// lanes each.
DEVICE void reflect(const factor_args &g, T *a, T *right, int j, T tau, T *line)
{
	int lane = tid_x % 32, group = tid_x / 32, all = g.n + g.columns;
	const T *v = a + j * g.lda;

	for (int first = j + 1; first < all; first += 8) {
		bool mine = first + group < all;
		T *to = column_of(g, a, right, mine ? first + group : all - 1), sum = {};

		for (int i = j + lane; i < g.m; i += 32)
			sum = i == j ? plus(sum, to[i]) : mad(conjugate(v[i], 1), to[i], sum);
		line[tid_x] = sum;
		for (int half = 16; half > 0; half /= 2) {
			__syncthreads();
			if (lane < half)
				line[tid_x] = plus(line[tid_x], line[tid_x + half]);
		}
		__syncthreads();
		sum = negative(times(conjugate(tau, 1), line[group * 32]));
		for (int i = j + lane; i < g.m && mine; i += 32)
			to[i] = i == j ? plus(to[i], sum) : mad(sum, v[i], to[i]);
		__syncthreads();
	}
}

// Solves R X = C for the upper triangle of A, and stores X in C.
DEVICE void substitute(const factor_args &g, const T *a, T *right)
{
	for (int j = g.n - 1; j >= 0; j--) {
		for (int c = tid_x; c < g.columns; c += FACTOR_THREADS)
			right[j + c * g.ldc] = quotient(right[j + c * g.ldc], a[j + j * g.lda]);
		__syncthreads();
		for (int e = tid_x; e < j * g.columns; e += FACTOR_THREADS) {
			T *c = right + e / j * g.ldc;

			c[e % j] = mad(negative(a[e % j + j * g.lda]), c[j], c[e % j]);
		}
		__syncthreads();
	}
}

// A = Q R, with one block for each matrix of m × n. Right-hand sides are replaced by the
// solutions of the least-squares problems.
KERNEL(FACTOR_THREADS) NAME(geqrf)(const factor_args g)
{
	__shared__ T line[FACTOR_THREADS];
	__shared__ double sums[FACTOR_THREADS];

	for (int z = block_x; z < g.batch; z += grid_x) {
		T *a = (T *)g.a[z], *right = g.c ? (T *)g.c[z] : nullptr;
		int info = 0;

		for (int j = 0; j < g.n && j < g.m; j++) {
			__syncthreads();
			T tau = reflector(a + j * g.lda, j, g.m, sums);

			if (tid_x == 0 && g.tau)
				((T *)g.tau[z])[j] = tau;
			__syncthreads();
			if (!is_zero(tau))
				reflect(g, a, right, j, tau, line);
			if (is_zero(a[j + j * g.lda]))
				info = info ? info : j + 1;
		}
		if (right && !info)
			substitute(g, a, right);
		if (tid_x == 0 && g.info)
			g.info[z] = info;
		__syncthreads();
	}
}
