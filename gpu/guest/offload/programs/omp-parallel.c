#include <omp.h>
#include "check.h"
#define N 256
int main(void)
{
	int a[N], b[N], singles = 0, threads = 0, host = 1;

#pragma omp target map(from : a, b) map(tofrom : singles, threads, host)
	{
		host = omp_is_initial_device();
#pragma omp parallel num_threads(4)
		{
#pragma omp single
			{
				singles++;
				threads = omp_get_num_threads();
			}
#pragma omp for schedule(dynamic, 8)
			for (int i = 0; i < N; i++)
				a[i] = i;
#pragma omp barrier
#pragma omp for
			for (int i = 0; i < N; i++)
				b[i] = a[N - 1 - i];
		}
	}
	CHECK(!host && singles == 1 && threads >= 1);
	for (int i = 0; i < N; i++)
		CHECK(b[i] == N - 1 - i);
	return 0;
}
