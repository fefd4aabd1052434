/* The kernels of vector.cu in C. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

void saxpy_in_c(const struct job *j)
{
	const float *restrict a = j->a, *restrict b = j->b;
	float *restrict out = j->out;

#pragma omp parallel for simd
	for (unsigned i = 0; i < j->n; i++)
		out[i] = 2.5f * a[i] + b[i];
}

void reduction_in_c(const struct job *j)
{
	const float *a = j->a;
	float sum = 0;

#pragma omp parallel for simd reduction(+ : sum)
	for (unsigned i = 0; i < j->n; i++)
		sum += a[i];
	*(float *)j->out = sum;
}

/* Returns this thread's part of n words. */
static void part(unsigned n, unsigned *from, unsigned *to)
{
	uint64_t me = (uint64_t)omp_get_thread_num(), all = (uint64_t)omp_get_num_threads();

	*from = (unsigned)(n * me / all);
	*to = (unsigned)(n * (me + 1) / all);
}

#define MAX_THREADS 1024

void scan_in_c(const struct job *j)
{
	const uint32_t *a = j->a;
	uint32_t *out = j->out, totals[MAX_THREADS + 1] = {0};

#pragma omp parallel num_threads(omp_get_max_threads() < MAX_THREADS ? omp_get_max_threads() : MAX_THREADS)
	{
		unsigned from, to, me = (unsigned)omp_get_thread_num();
		uint32_t sum = 0;

		part(j->n, &from, &to);
		for (unsigned i = from; i < to; i++)
			sum += a[i];
		totals[me + 1] = sum;
#pragma omp barrier
		sum = 0;
		for (unsigned t = 0; t <= me; t++)
			sum += totals[t];
		for (unsigned i = from; i < to; i++)
			out[i] = sum += a[i];
	}
}

void histogram_in_c(const struct job *j)
{
	const uint8_t *a = j->a;
	uint32_t bins[256] = {0};

#pragma omp parallel for reduction(+ : bins)
	for (unsigned i = 0; i < 4 * j->n; i++)
		bins[a[i]]++;
	memcpy(j->out, bins, sizeof bins);
}

/* One pass of a stable sort by eight bits. */
static void sort_pass(const uint32_t *from, uint32_t *to, unsigned n, unsigned shift)
{
	static uint32_t counts[MAX_THREADS][256];

#pragma omp parallel num_threads(omp_get_max_threads() < MAX_THREADS ? omp_get_max_threads() : MAX_THREADS)
	{
		unsigned begin, end;
		uint32_t *own = counts[omp_get_thread_num()];

		part(n, &begin, &end);
		memset(own, 0, sizeof counts[0]);
		for (unsigned i = begin; i < end; i++)
			own[from[i] >> shift & 255]++;
#pragma omp barrier
#pragma omp single
		{
			uint32_t sum = 0;

			for (unsigned d = 0; d < 256; d++)
				for (int t = 0; t < omp_get_num_threads(); t++) {
					uint32_t count = counts[t][d];

					counts[t][d] = sum;
					sum += count;
				}
		}
		for (unsigned i = begin; i < end; i++)
			to[own[from[i] >> shift & 255]++] = from[i];
	}
}

void radixsort_in_c(const struct job *j)
{
	uint32_t *out = j->out, *other = malloc(j->n * sizeof *other);

	if (!other)
		abort();
	sort_pass(j->a, other, j->n, 0);
	sort_pass(other, out, j->n, 8);
	sort_pass(out, other, j->n, 16);
	sort_pass(other, out, j->n, 24);
	free(other);
}

void nothing_in_c(const struct job *j)
{
	(void)j;
#pragma omp parallel
	__asm__ volatile("");
}
