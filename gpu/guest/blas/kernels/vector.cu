// Vectors, and matrix times vector. Results of a vector (dot, nrm2, asum) are computed
// by one block: nothing has to be set before, and it is the same each time.
#include "block.h"

DEVICE s64 place(s64 i, s64 n, s64 step)
{
	return step < 0 ? (i - n + 1) * step : i * step;
}
#define EACH_ELEMENT(i, n) for (s64 i = (s64)block_x * VECTOR_THREADS + tid_x; i < n; i += (s64)grid_x * VECTOR_THREADS)
#define X(i) ((const T *)g.x)[place(i, g.n, g.incx)]
#define Y(i) ((T *)g.y)[place(i, g.n, g.incy)]

KERNEL(VECTOR_THREADS) NAME(dot)(const vector_args g)
{
	__shared__ W line[VECTOR_THREADS];
	W sum = {};

	for (int i = tid_x; i < g.n; i += VECTOR_THREADS)
		sum = mad(conjugate(widen(X(i)), g.conjugate), widen(Y(i)), sum);
	sum = over_block<Add>(sum, line);
	if (tid_x == 0)
		*(T *)g.result = narrow<T>::of(sum);
}

#if !defined MODULE_f16 && !defined MODULE_bf16
KERNEL(VECTOR_THREADS) NAME(axpy)(const vector_args g)
{
	T alpha = scalar<T>(g.alpha);

	if (!is_zero(alpha))
		EACH_ELEMENT(i, g.n) Y(i) = mad(alpha, X(i), Y(i));
}

KERNEL(VECTOR_THREADS) NAME(scal)(const vector_args g)
{
	T alpha = scalar<T>(g.alpha);

	EACH_ELEMENT(i, g.n) ((T *)g.y)[i * g.incy] = times(alpha, ((T *)g.y)[i * g.incy]);
}

KERNEL(VECTOR_THREADS) NAME(copy)(const vector_args g)
{
	EACH_ELEMENT(i, g.n) Y(i) = X(i);
}

KERNEL(VECTOR_THREADS) NAME(swap)(const vector_args g)
{
	EACH_ELEMENT(i, g.n)
	{
		T x = X(i);

		((T *)g.x)[place(i, g.n, g.incx)] = Y(i);
		Y(i) = x;
	}
}

template <class V> DEVICE double square(V v, double unit) { return (v / unit) * (v / unit); }
template <class V> DEVICE double square(complex<V> v, double unit) { return square(v.x, unit) + square(v.y, unit); }

// In units of the greatest element, so that no square overflows or vanishes.
KERNEL(VECTOR_THREADS) NAME(nrm2)(const vector_args g)
{
	__shared__ double line[VECTOR_THREADS];
	double most = 0, sum = 0;

	for (int i = tid_x; i < g.n; i += VECTOR_THREADS)
		most = Greater::of(size_of(X(i)), most);
	most = over_block<Greater>(most, line);
	if (most == 0 || most == __builtin_inf())
		most = 1;
	for (int i = tid_x; i < g.n; i += VECTOR_THREADS)
		sum += square(X(i), most);
	sum = over_block<Add>(sum, line);
	if (tid_x == 0)
		*(R *)g.result = (R)(most * __builtin_sqrt(sum));
}

KERNEL(VECTOR_THREADS) NAME(asum)(const vector_args g)
{
	__shared__ double line[VECTOR_THREADS];
	double sum = 0;

	for (int i = tid_x; i < g.n; i += VECTOR_THREADS)
		sum += size_of(X(i));
	sum = over_block<Add>(sum, line);
	if (tid_x == 0)
		*(R *)g.result = (R)sum;
}

// y = alpha A x + beta y, A of m × n. Lanes go along whichever of A's dimensions lies
// side by side: along rows, each with an eighth of its row's sum, or along the sum.
KERNEL(VECTOR_THREADS) NAME(gemv)(const vector_args g)
{
	__shared__ T line[VECTOR_THREADS];
	T alpha = scalar<T>(g.alpha), beta = scalar<T>(g.beta), sum = {};
	bool rows = g.row == 1;
	int t = tid_x, lane = t % 32, group = t / 32, i = rows ? block_x * 32 + lane : block_x * 8 + group;
	const T *a = (const T *)g.a + (i < g.m ? i : g.m - 1) * g.row;

	if (!is_zero(alpha))
		for (int l = rows ? group : lane; l < g.n; l += rows ? 8 : 32)
			sum = mad(conjugate(a[l * g.column], g.conjugate), X(l), sum);
	line[t] = sum;
	for (int half = rows ? 4 : 16, step = rows ? 32 : 1; half > 0; half /= 2) {
		__syncthreads();
		if ((rows ? group : lane) < half)
			line[t] = plus(line[t], line[t + half * step]);
	}
	if ((rows ? group : lane) != 0 || i >= g.m)
		return;
	T *y = (T *)g.y + place(i, g.m, g.incy);
	sum = times(alpha, line[t]);
	*y = is_zero(beta) ? sum : mad(beta, *y, sum);
}
#endif
