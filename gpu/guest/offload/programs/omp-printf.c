#include <omp.h>
#include "check.h"
int main(void)
{
	int host = 1;

#pragma omp target map(tofrom : host)
	{
		host = omp_is_initial_device();
		printf("on the device\n");
	}
	CHECK(!host);
	return 0;
}
