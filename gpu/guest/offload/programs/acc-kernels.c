#include <openacc.h>
#include "check.h"
#define N 3000
int main(void)
{
	static int a[N], b[N], device;

#pragma acc kernels copyout(a, b)
	{
		for (int i = 0; i < N; i++)
			a[i] = i * i;
		for (int i = 0; i < N; i++)
			b[i] = a[i] + 1;
	}
#pragma acc parallel copy(device)
	device = acc_on_device(acc_device_nvidia);
	CHECK(device);
	for (int i = 0; i < N; i++)
		CHECK(b[i] == i * i + 1);
	return 0;
}
