#include <openacc.h>
#include "check.h"
#define N 4096
int main(void)
{
	int *h = malloc(2 * N * sizeof *h), *d = acc_malloc(2 * N * sizeof *d), device = 0;

	for (int i = 0; i < 2 * N; i++)
		h[i] = i;
	acc_memcpy_to_device(d, h, 2 * N * sizeof *h);
#pragma acc parallel loop deviceptr(d) async(1)
	for (int i = 0; i < N; i++)
		d[i] *= 3;
#pragma acc parallel loop deviceptr(d) async(2)
	for (int i = N; i < 2 * N; i++)
		d[i] += 5;
#pragma acc wait(1) async(2)
#pragma acc parallel loop deviceptr(d) async(2)
	for (int i = 0; i < 2 * N; i++)
		d[i] += 1;
#pragma acc parallel copy(device) async(3)
	device = acc_on_device(acc_device_nvidia);
#pragma acc wait
	acc_memcpy_from_device(h, d, 2 * N * sizeof *h);
	acc_free(d);
	CHECK(device);
	for (int i = 0; i < 2 * N; i++)
		CHECK(h[i] == (i < N ? 3 * i : i + 5) + 1);
	return 0;
}
