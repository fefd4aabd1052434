#include <math.h>
#include <omp.h>
#include "check.h"
#define N 300
static double r[N];
int main(void)
{
	int host = 1;

#pragma omp target teams distribute parallel for map(from : r) map(tofrom : host)
	for (int i = 0; i < N; i++) {
		r[i] = sin(i * 0.1) * exp(-i * 0.01) + atan2(i, 3) + fmod(i, 7);
		if (i == 0)
			host = omp_is_initial_device();
	}
	CHECK(!host);
	for (int i = 0; i < N; i++)
		CHECK(close_to(r[i], sin(i * 0.1) * exp(-i * 0.01) + atan2(i, 3) + fmod(i, 7)));
	return 0;
}
