#include <openacc.h>
#include "check.h"
#define R 20
#define N 100
static int a[R][N];
int scale = 3;
#pragma acc declare create(scale)
#pragma acc routine vector
static void row(int *p, int n)
{
#pragma acc loop vector
	for (int i = 0; i < n; i++)
		p[i] = p[i] * scale + 1;
}
#pragma acc routine seq
static int twice(int x) { return 2 * x; }
int main(void)
{
	int device = 0;

	acc_update_device(&scale, sizeof scale);
	for (int i = 0; i < R * N; i++)
		a[i / N][i % N] = i;
#pragma acc parallel loop gang copy(a, device)
	for (int r = 0; r < R; r++) {
		row(a[r], N);
		a[r][0] = twice(a[r][0]);
		if (r == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device);
	for (int i = 0; i < R * N; i++)
		CHECK(a[i / N][i % N] == (i * 3 + 1) * (i % N ? 1 : 2));
	return 0;
}
