#include <openacc.h>
#include "check.h"
#define N 64
static float a[N][N], b[N][N], c[N][N];
int main(void)
{
	int device = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (i + j) % 7, b[i][j] = (i * j) % 5;
#pragma acc data copyin(a, b) copyout(c)
#pragma acc parallel loop collapse(2) copy(device)
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float s = 0;

			for (int k = 0; k < N; k++)
				s += a[i][k] * b[k][j];
			c[i][j] = s;
			if (i + j == 0)
				device = acc_on_device(acc_device_nvidia);
		}
	CHECK(device);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float s = 0;

			for (int k = 0; k < N; k++)
				s += a[i][k] * b[k][j];
			CHECK(c[i][j] == s);
		}
	return 0;
}
