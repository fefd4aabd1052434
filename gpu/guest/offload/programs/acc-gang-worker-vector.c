#include <openacc.h>
#include "check.h"
#define G 6
#define W 5
#define V 70
static int a[G][W][V];
int main(void)
{
	int device = 0;

#pragma acc parallel num_gangs(G) num_workers(4) vector_length(32) copy(a, device)
	{
#pragma acc loop gang
		for (int g = 0; g < G; g++) {
			if (g == 0)
				device = acc_on_device(acc_device_nvidia);
#pragma acc loop worker
			for (int w = 0; w < W; w++)
#pragma acc loop vector
				for (int v = 0; v < V; v++)
					a[g][w][v] += g * 10000 + w * 100 + v;
		}
	}
	CHECK(device);
	for (int i = 0; i < G * W * V; i++)
		CHECK(a[i / V / W][i / V % W][i % V] == i / V / W * 10000 + i / V % W * 100 + i % V);
	return 0;
}
