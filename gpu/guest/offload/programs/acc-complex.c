#include <complex.h>
#include <openacc.h>
#include "check.h"
#define N 200
int main(void)
{
	static double complex z[N], q[N];
	static int bits[N];
	int device = 0;

	for (int i = 0; i < N; i++)
		z[i] = i + (N - i) * I;
#pragma acc parallel loop copyin(z) copyout(q, bits) copy(device)
	for (int i = 0; i < N; i++) {
		q[i] = z[i] * z[i] / (z[i] + 1);
		bits[i] = __builtin_popcount(i) + __builtin_popcountll(1ull << 40 | i) * 100;
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device);
	for (int i = 0; i < N; i++) {
		double complex w = z[i] * z[i] / (z[i] + 1);

		CHECK(close_to(creal(q[i]), creal(w)) && close_to(cimag(q[i]), cimag(w)));
		CHECK(bits[i] == __builtin_popcount(i) * 101 + 100);
	}
	return 0;
}
