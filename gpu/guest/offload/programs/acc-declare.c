#include <openacc.h>
#include "check.h"
int table[8];
#pragma acc declare create(table)
int main(void)
{
	int sum = 0, device = 0;

	for (int i = 0; i < 8; i++)
		table[i] = 1 << i;
	acc_update_device(table, sizeof table);
#pragma acc parallel loop reduction(+ : sum) copy(sum, device) present(table)
	for (int i = 0; i < 8; i++) {
		sum += table[i];
		if (i == 0)
			device = acc_on_device(acc_device_nvidia);
	}
	CHECK(device && sum == 255);
	return 0;
}
