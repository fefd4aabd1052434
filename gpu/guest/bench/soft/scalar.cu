// Kernels whose threads are independent: an orbit, a generator.
#include "kernels.h"

// All sums and products are written so that every compiler rounds them in the same way, because a
// point's iterations depend on every bit.
__global__ void mandelbrot_kernel(uint32_t *out, unsigned n)
{
	unsigned px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
	float step = 3.0f / n, cx = fmaf(px, step, -2.0f), cy = fmaf(py, step, -1.5f), x = 0, y = 0;
	uint32_t k = 0;

	if (px >= n || py >= n)
		return;
	while (k < ITERATIONS && fmaf(x, x, y * y) <= 4) {
		float next = fmaf(x, x, fmaf(-y, y, cx));

		y = fmaf(2 * x, y, cy);
		x = next;
		k++;
	}
	out[py * n + px] = k;
}

void mandelbrot(const struct job *j)
{
	mandelbrot_kernel<<<dim3((j->n + 15) / 16, (j->n + 15) / 16), dim3(16, 16)>>>((uint32_t *)j->out, j->n);
}

// MT19937, with one generator for each thread. The words of a state are n apart, so that the
// threads of a warp read adjacent words.
__global__ void mersenne_kernel(uint32_t *states, uint32_t *out, unsigned n)
{
	unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t *state = states + t, sum = 0, v = t + 1;

	if (t >= n)
		return;
	for (unsigned i = 0; i < MT_STATE; i++) {
		state[i * n] = v;
		v = 1812433253u * (v ^ v >> 30) + i + 1;
	}
	for (unsigned turn = 0; turn < MT_TURNS; turn++)
		for (unsigned i = 0; i < MT_STATE; i++) {
			unsigned next = i + 1 < MT_STATE ? i + 1 : 0, far = i + 397 < MT_STATE ? i + 397 : i + 397 - MT_STATE;
			uint32_t mixed = (state[i * n] & 0x80000000u) | (state[next * n] & 0x7fffffffu);

			v = state[far * n] ^ mixed >> 1 ^ (mixed & 1 ? 0x9908b0dfu : 0);
			state[i * n] = v;
			v ^= v >> 11;
			v ^= v << 7 & 0x9d2c5680u;
			v ^= v << 15 & 0xefc60000u;
			sum += v ^ v >> 18;
		}
	out[t] = sum;
}

void mersenne(const struct job *j) { mersenne_kernel<<<(j->n + 127) / 128, 128>>>((uint32_t *)j->scratch, (uint32_t *)j->out, j->n); }
