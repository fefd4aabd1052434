#include <openacc.h>
#include "check.h"
#define N 20
#pragma acc routine seq
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void)
{
	int f[N], device = 0;

#pragma acc parallel loop vector copyout(f) copy(device)
	for (int i = 0; i < N; i++) {
		f[i] = fib(i);
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device && f[0] == 0 && f[1] == 1);
	for (int i = 2; i < N; i++)
		CHECK(f[i] == f[i - 1] + f[i - 2]);
	return 0;
}
