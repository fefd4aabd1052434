// Vectors, and matrix times vector. Results of a vector (dot, nrm2, asum) are computed by one
// block, so nothing has to be initialized, and the result is always the same.
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
	const T *x = &X(tid_x), *y = &Y(tid_x);

	_Pragma("unroll 8")
	for (int i = tid_x; i < g.n; i += VECTOR_THREADS, x += VECTOR_THREADS * g.incx, y += VECTOR_THREADS * g.incy)
		sum = mad(conjugate(widen(*x), g.conjugate), widen(*y), sum);
	sum = over_block<Add>(sum, line);
	if (tid_x == 0)
		*(T *)g.result = narrow<T>::of(sum);
}

// y = alpha A x + beta y, with A of m × n. Lanes are assigned along the dimension of A that is
// contiguous: along rows, each with an eighth of its row's sum, or along the sum.
KERNEL(VECTOR_THREADS) NAME(gemv)(const vector_args g)
{
	__shared__ W line[VECTOR_THREADS];
	W alpha = scalar<W>(g.alpha), beta = scalar<W>(g.beta), sum = {};
	bool rows = g.row == 1;
	int t = tid_x, lane = t % GEMV_ROWS, group = t / GEMV_ROWS, i = rows ? block_x * GEMV_ROWS + lane : block_x * GEMV_LINES + group;
	int first = rows ? group : lane, step = rows ? GEMV_LINES : GEMV_ROWS;
	const T *a = (const T *)g.a + least(i, g.m - 1) * g.row + first * g.column, *x = &X(first);
	s64 a_step = step * g.column, x_step = step * g.incx;

	if (!is_zero(alpha))
		_Pragma("unroll 8")
		for (int l = first; l < g.n; l += step, a += a_step, x += x_step)
			sum = mad(conjugate(widen(*a), g.conjugate), widen(*x), sum);
	line[t] = sum;
	for (int half = step / 2, apart = rows ? GEMV_ROWS : 1; half > 0; half /= 2) {
		__syncthreads();
		if (first < half)
			line[t] = plus(line[t], line[t + half * apart]);
	}
	if (first != 0 || i >= g.m)
		return;
	T *y = (T *)g.y + place(i, g.m, g.incy);
	sum = times(alpha, line[t]);
	*y = narrow<T>::of(is_zero(beta) ? sum : mad(beta, widen(*y), sum));
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

// Computed in units of the largest element, so that squares do not overflow or underflow.
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
#endif
