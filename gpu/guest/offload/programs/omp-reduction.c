#include <omp.h>
#include "check.h"
#define N 2000
static double v[N];
int main(void)
{
	double sum = 0, want = 0, most = -1;
	int host = 1;

	for (int i = 0; i < N; i++)
		v[i] = (i * 37) % 1001, want += v[i];
#pragma omp target teams distribute parallel for reduction(+ : sum) reduction(max : most) map(to : v) map(tofrom : sum, most)
	for (int i = 0; i < N; i++) {
		sum += v[i];
		if (v[i] > most)
			most = v[i];
	}
#pragma omp target map(tofrom : host)
	host = omp_is_initial_device();
	double top = 0;
	for (int i = 0; i < N; i++)
		top = v[i] > top ? v[i] : top;
	CHECK(!host && sum == want && most == top);
	return 0;
}
