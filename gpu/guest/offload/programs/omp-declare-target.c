#include <omp.h>
#include "check.h"
#define N 64
#pragma omp declare target
int table[4] = {3, 5, 7, 9};
static int plus(int a, int b) { return a + b; }
static int times(int a, int b) { return a * b; }
static int (*const ops[2])(int, int) = {plus, times};
#pragma omp end declare target
int main(void)
{
	int r[N], host = 1;

	table[2] = 100;
#pragma omp target update to(table)
#pragma omp target teams distribute parallel for map(from : r) map(tofrom : host)
	for (int i = 0; i < N; i++) {
		r[i] = ops[i & 1](table[i & 3], i);
		if (i == 0)
			host = omp_is_initial_device();
	}
	CHECK(!host);
	for (int i = 0; i < N; i++)
		CHECK(r[i] == (i & 1 ? table[i & 3] * i : table[i & 3] + i));
	return 0;
}
