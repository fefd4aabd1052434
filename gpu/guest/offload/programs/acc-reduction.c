#include <openacc.h>
#include "check.h"
#define N 5000
static double v[N];
int main(void)
{
	double sum = 0, want = 0, most = -1;
	long count = 0;
	int device = 0;

	for (int i = 0; i < N; i++)
		v[i] = (i * 37) % 1001, want += v[i];
#pragma acc parallel loop reduction(+ : sum, count) reduction(max : most) copyin(v) copy(sum, count, most)
	for (int i = 0; i < N; i++) {
		sum += v[i];
		count += v[i] > 500;
		if (v[i] > most)
			most = v[i];
	}
#pragma acc parallel copy(device)
	device = acc_on_device(acc_device_nvidia);
	long above = 0;
	for (int i = 0; i < N; i++)
		above += v[i] > 500;
	CHECK(device && sum == want && most == 1000 && count == above);
	return 0;
}
