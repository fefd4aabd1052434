#include <omp.h>
#include "check.h"
int main(void)
{
	int n = 0, most = 0, host = 1;

#pragma omp target teams num_teams(2) thread_limit(4) map(tofrom : n, most, host)
#pragma omp parallel for num_threads(4)
	for (int i = 0; i < 32; i++) {
#pragma omp critical
		{
			n++;
			if (i > most)
				most = i;
		}
		if (i == 0)
			host = omp_is_initial_device();
	}
	CHECK(!host && n == 64 && most == 31);
	return 0;
}
