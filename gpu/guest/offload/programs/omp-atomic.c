#include <omp.h>
#include "check.h"
#define N 1500
static int seen[N];
int main(void)
{
	int hist[8] = {0}, ticket = 0, host = 1;
	double total = 0;

#pragma omp target teams distribute parallel for map(tofrom : hist, ticket, total, seen, host)
	for (int i = 0; i < N; i++) {
		int mine;

#pragma omp atomic
		hist[i & 7]++;
#pragma omp atomic capture
		mine = ticket++;
#pragma omp atomic
		total += i;
		seen[mine] = 1;
		if (i == 0)
			host = omp_is_initial_device();
	}
	CHECK(!host && ticket == N && total == N * (N - 1) / 2);
	for (int i = 0; i < N; i++)
		CHECK(seen[i] == 1);
	CHECK(hist[0] + hist[1] + hist[2] + hist[3] + hist[4] + hist[5] + hist[6] + hist[7] == N);
	return 0;
}
