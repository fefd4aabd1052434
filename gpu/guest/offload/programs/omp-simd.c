#include <omp.h>
#include "check.h"
#define N 4000
static int a[N];
int main(void)
{
	int host = 1, sum = 0;

#pragma omp target teams distribute parallel for simd map(from : a) reduction(+ : sum) map(tofrom : sum)
	for (int i = 0; i < N; i++) {
		a[i] = i ^ 5;
		sum += i & 1;
	}
#pragma omp target map(tofrom : host)
	host = omp_is_initial_device();
	CHECK(!host && sum == N / 2);
	for (int i = 0; i < N; i++)
		CHECK(a[i] == (i ^ 5));
	return 0;
}
