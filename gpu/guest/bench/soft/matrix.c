/* The kernels of matrix.cu in C. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* Computes rows of the result, in steps of the depth that keep b's rows in the cache. */
void sgemm_in_c(const struct job *j)
{
	enum { DEPTH = 64 };
	const float *a = j->a, *b = j->b;
	float *out = j->out;
	size_t n = j->n;

#pragma omp parallel for
	for (size_t row = 0; row < n; row++)
		memset(out + row * n, 0, n * sizeof *out);
	for (size_t start = 0; start < n; start += DEPTH)
#pragma omp parallel for
		for (size_t row = 0; row < n; row++) {
			float *restrict sums = out + row * n;

			for (size_t k = start; k < start + DEPTH && k < n; k++) {
				float factor = a[row * n + k];
				const float *restrict line = b + k * n;

				for (size_t column = 0; column < n; column++)
					sums[column] += factor * line[column];
			}
		}
}

void cublas_in_c(const struct job *j)
{
	sgemm_in_c(j);
}

void stencil_in_c(const struct job *j)
{
	const float *restrict in = j->a;
	float *restrict out = j->out;
	size_t n = j->n;

#pragma omp parallel for
	for (size_t y = 0; y < n; y++) {
		const float *row = in + y * n;
		float *to = out + y * n;

		if (y == 0 || y == n - 1) {
			memcpy(to, row, n * sizeof *row);
			continue;
		}
		to[0] = row[0];
		to[n - 1] = row[n - 1];
#pragma omp simd
		for (size_t x = 1; x < n - 1; x++)
			to[x] = 0.2f * (row[x] + row[x - 1] + row[x + 1] + row[x - n] + row[x + n]);
	}
}

void nbody_in_c(const struct job *j)
{
	const float(*bodies)[4] = j->a;
	float(*out)[4] = j->out;

#pragma omp parallel for
	for (unsigned i = 0; i < j->n; i++) {
		float x = 0, y = 0, z = 0;

#pragma omp simd reduction(+ : x, y, z)
		for (unsigned k = 0; k < j->n; k++) {
			float dx = bodies[k][0] - bodies[i][0], dy = bodies[k][1] - bodies[i][1], dz = bodies[k][2] - bodies[i][2];
			float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
			float s = bodies[k][3] * r * r * r;

			x += dx * s;
			y += dy * s;
			z += dz * s;
		}
		out[i][0] = x;
		out[i][1] = y;
		out[i][2] = z;
		out[i][3] = 0;
	}
}

static float greatest(const float *v, size_t n)
{
	float most = v[0];

#pragma omp simd reduction(max : most)
	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

void softmax_in_c(const struct job *j)
{
	const float *in = j->a;
	float *out = j->out;
	size_t n = j->n;

#pragma omp parallel for
	for (size_t y = 0; y < n; y++) {
		float *to = out + y * n, most = greatest(in + y * n, n), sum = 0;

		for (size_t x = 0; x < n; x++)
			sum += to[x] = expf(in[y * n + x] - most);
		sum = 1 / sum;
		for (size_t x = 0; x < n; x++)
			to[x] *= sum;
	}
}

void attention_in_c(const struct job *j)
{
	const float(*queries)[HEAD] = j->a, (*keys)[HEAD] = j->b, (*values)[HEAD] = keys + j->n;
	float(*out)[HEAD] = j->out;

#pragma omp parallel for
	for (unsigned q = 0; q < j->n; q++) {
		float *scores = malloc(j->n * sizeof *scores), mean[HEAD] = {0}, sum = 0, most;

		if (!scores)
			abort();
		for (unsigned k = 0; k < j->n; k++) {
			float dot = 0;

#pragma omp simd reduction(+ : dot)
			for (unsigned d = 0; d < HEAD; d++)
				dot += queries[q][d] * keys[k][d];
			scores[k] = dot * 0.125f;
		}
		most = greatest(scores, j->n);
		for (unsigned k = 0; k < j->n; k++) {
			float weight = expf(scores[k] - most);

			sum += weight;
			for (unsigned d = 0; d < HEAD; d++)
				mean[d] += weight * values[k][d];
		}
		for (unsigned d = 0; d < HEAD; d++)
			out[q][d] = mean[d] / sum;
		free(scores);
	}
}
