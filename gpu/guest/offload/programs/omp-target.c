#include <omp.h>
#include "check.h"
int main(void)
{
	int host = 1, x = 41;

#pragma omp target map(tofrom : host, x)
	{
		host = omp_is_initial_device();
		x++;
	}
	CHECK(!host && x == 42 && omp_get_num_devices() >= 1);
	return 0;
}
