#include <openacc.h>
#include "check.h"
#define N 100
int main(void)
{
	static int sum[N];
	int device = 0;

#pragma acc parallel loop copyout(sum) copy(device)
	for (int i = 0; i < N; i++) {
		int *p = malloc((i + 1) * sizeof *p);

		sum[i] = 0;
		for (int k = 0; k <= i; k++)
			p[k] = k;
		for (int k = 0; k <= i; k++)
			sum[i] += p[k];
		free(p);
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device);
	for (int i = 0; i < N; i++)
		CHECK(sum[i] == i * (i + 1) / 2);
	return 0;
}
