/* The kernels of scalar.cu in C. */
#include <math.h>
#include <stddef.h>

#include "kernels.h"

static uint32_t iterations(float cx, float cy)
{
	float x = 0, y = 0;
	uint32_t k = 0;

	while (k < ITERATIONS && fmaf(x, x, y * y) <= 4) {
		float next = fmaf(x, x, fmaf(-y, y, cx));

		y = fmaf(2 * x, y, cy);
		x = next;
		k++;
	}
	return k;
}

void mandelbrot_in_c(const struct job *j)
{
	uint32_t *out = j->out;
	size_t n = j->n;
	float step = 3.0f / (float)n;

#pragma omp parallel for schedule(dynamic, 16)
	for (size_t py = 0; py < n; py++)
		for (size_t px = 0; px < n; px++)
			out[py * n + px] = iterations(fmaf((float)px, step, -2.0f), fmaf((float)py, step, -1.5f));
}

static uint32_t generator(uint32_t seed)
{
	uint32_t state[MT_STATE], sum = 0, v = seed;

	for (unsigned i = 0; i < MT_STATE; i++) {
		state[i] = v;
		v = 1812433253u * (v ^ v >> 30) + i + 1;
	}
	for (unsigned turn = 0; turn < MT_TURNS; turn++)
		for (unsigned i = 0; i < MT_STATE; i++) {
			unsigned next = i + 1 < MT_STATE ? i + 1 : 0, far = i + 397 < MT_STATE ? i + 397 : i + 397 - MT_STATE;
			uint32_t mixed = (state[i] & 0x80000000u) | (state[next] & 0x7fffffffu);

			v = state[i] = state[far] ^ mixed >> 1 ^ (mixed & 1 ? 0x9908b0dfu : 0);
			v ^= v >> 11;
			v ^= v << 7 & 0x9d2c5680u;
			v ^= v << 15 & 0xefc60000u;
			sum += v ^ v >> 18;
		}
	return sum;
}

void mersenne_in_c(const struct job *j)
{
	uint32_t *out = j->out;

#pragma omp parallel for
	for (unsigned t = 0; t < j->n; t++)
		out[t] = generator(t + 1);
}
