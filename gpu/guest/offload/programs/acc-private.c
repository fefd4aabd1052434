#include <openacc.h>
#include "check.h"
#define N 300
int main(void)
{
	static int out[N], device;
	int t[16];

#pragma acc parallel loop gang vector private(t) copyout(out) copy(device)
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 16; k++)
			t[k] = i + k;
		for (int k = 1; k < 16; k++)
			t[k] += t[(k * i) % k];
		out[i] = t[15] + t[i % 16];
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 16; k++)
			t[k] = i + k;
		for (int k = 1; k < 16; k++)
			t[k] += t[(k * i) % k];
		CHECK(out[i] == t[15] + t[i % 16]);
	}
	return 0;
}
