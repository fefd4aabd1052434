#include <omp.h>
#include "check.h"
#define N 48
static double a[N][N], b[N][N], c[N][N];
int main(void)
{
	int host = 1;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = c[i][j] = i == 0 ? 1 : 0;
#pragma omp target data map(tofrom : a) map(alloc : b)
	for (int step = 0; step < 4; step++) {
#pragma omp target teams distribute parallel for collapse(2) map(tofrom : host)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++) {
				b[i][j] = (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]) / 4;
				if (i + j == 2)
					host = omp_is_initial_device();
			}
#pragma omp target teams distribute parallel for collapse(2)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				a[i][j] = b[i][j];
	}
	for (int step = 0; step < 4; step++) {
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				b[i][j] = (c[i - 1][j] + c[i + 1][j] + c[i][j - 1] + c[i][j + 1]) / 4;
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				c[i][j] = b[i][j];
	}
	CHECK(!host);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			CHECK(a[i][j] == c[i][j]);
	return 0;
}
