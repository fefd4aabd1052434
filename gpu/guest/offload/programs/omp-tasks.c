#include <omp.h>
#include "check.h"
int main(void)
{
	int done[20] = {0}, host = 1;

#pragma omp target map(tofrom : done, host)
	{
		host = omp_is_initial_device();
#pragma omp parallel num_threads(3)
#pragma omp single
		for (int i = 0; i < 20; i++) {
#pragma omp task firstprivate(i)
			done[i] = i + 1;
		}
	}
	CHECK(!host);
	for (int i = 0; i < 20; i++)
		CHECK(done[i] == i + 1);
	return 0;
}
