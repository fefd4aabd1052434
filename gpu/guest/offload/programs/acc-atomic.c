#include <openacc.h>
#include "check.h"
#define N 2000
static int seen[N];
int main(void)
{
	int hist[10] = {0}, ticket = 0, device = 0;

#pragma acc parallel loop copy(hist, ticket, seen, device)
	for (int i = 0; i < N; i++) {
		int mine;

#pragma acc atomic update
		hist[i % 10]++;
#pragma acc atomic capture
		mine = ticket++;
		seen[mine] = 1;
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device && ticket == N);
	for (int i = 0; i < N; i++)
		CHECK(seen[i] == 1 && hist[i % 10] == N / 10);
	return 0;
}
