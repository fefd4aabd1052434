#include <openacc.h>
#include "check.h"
#define N 10000
static float x[N], y[N];
int main(void)
{
	int device = 0;

	for (int i = 0; i < N; i++)
		x[i] = i, y[i] = 1;
#pragma acc parallel loop copyin(x) copy(y, device)
	for (int i = 0; i < N; i++) {
		y[i] += 2 * x[i];
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device);
	for (int i = 0; i < N; i++)
		CHECK(y[i] == 1 + 2.0f * i);
	return 0;
}
