#include <omp.h>
#include "check.h"
#define N 1000
static int a[N], b[N];
int main(void)
{
	int host = 1;

#pragma omp target enter data map(alloc : a, b)
#pragma omp target teams distribute parallel for nowait depend(out : a)
	for (int i = 0; i < N; i++)
		a[i] = i;
#pragma omp target teams distribute parallel for nowait depend(in : a) depend(out : b)
	for (int i = 0; i < N; i++)
		b[i] = a[i] * 2;
#pragma omp target nowait depend(inout : b) map(tofrom : host)
	{
		host = omp_is_initial_device();
		b[0] = 7;
	}
#pragma omp taskwait
#pragma omp target exit data map(from : a, b)
	CHECK(!host && b[0] == 7);
	for (int i = 1; i < N; i++)
		CHECK(a[i] == i && b[i] == 2 * i);
	return 0;
}
