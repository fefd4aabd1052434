#include <omp.h>
#include "check.h"
#define N 5000
static float x[N], y[N];
int main(void)
{
	int host = 1;

	for (int i = 0; i < N; i++)
		x[i] = i, y[i] = 1;
#pragma omp target teams distribute parallel for map(to : x) map(tofrom : y, host)
	for (int i = 0; i < N; i++) {
		y[i] += 2 * x[i];
		if (i == 0)
			host = omp_is_initial_device();
	}
	CHECK(!host);
	for (int i = 0; i < N; i++)
		CHECK(y[i] == 1 + 2.0f * i);
	return 0;
}
