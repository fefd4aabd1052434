#include <math.h>
#include <openacc.h>
#include "check.h"
#define N 500
int main(void)
{
	static double s[N], e[N];
	static float f[N];
	int device = 0;

#pragma acc parallel loop copyout(s, e, f) copy(device)
	for (int i = 0; i < N; i++) {
		double x = i * 0.01;

		s[i] = sin(x) + cos(2 * x);
		e[i] = exp(x) * log(x + 1) + pow(x, 1.5);
		f[i] = sqrtf(i) + fminf(i, 100.0f);
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device);
	for (int i = 0; i < N; i++) {
		double x = i * 0.01;

		CHECK(close_to(s[i], sin(x) + cos(2 * x)));
		CHECK(close_to(e[i], exp(x) * log(x + 1) + pow(x, 1.5)));
		CHECK(close_to(f[i], sqrtf(i) + fminf(i, 100.0f)));
	}
	return 0;
}
