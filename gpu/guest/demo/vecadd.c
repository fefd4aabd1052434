/* Adds two vectors on the device and checks the sums. */
#include "demo.h"

int main(int argc, char **argv)
{
	unsigned int n = number(argc > 1 ? argv[1] : NULL, 1u << 20), seed = 1;
	size_t bytes = n * sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes), worst = 0;
	CUfunction f = demo_start("vecadd");
	CUdeviceptr da, db, dc;

	if (!a || !b || !c || n == 0)
		return 2;
	for (unsigned int i = 0; i < n; i++) {
		a[i] = demo_random(&seed);
		b[i] = demo_random(&seed);
	}
	CHECK(cuMemAlloc(&da, bytes));
	CHECK(cuMemAlloc(&db, bytes));
	CHECK(cuMemAlloc(&dc, bytes));
	CHECK(cuMemcpyHtoD(da, a, bytes));
	CHECK(cuMemcpyHtoD(db, b, bytes));
	void *params[] = {&da, &db, &dc, &n};

	CHECK(cuLaunchKernel(f, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(c, dc, bytes));
	for (unsigned int i = 0; i < n; i++) {
		float e = c[i] - (a[i] + b[i]);

		e = e < 0 ? -e : e;
		worst = e <= worst ? worst : e; /* a NaN counts as an error too */
	}
	CHECK(cuMemFree(da));
	CHECK(cuMemFree(db));
	CHECK(cuMemFree(dc));
	printf("vecadd: %u elements, max error %g, %s\n", n, worst, worst == 0 ? "OK" : "WRONG");
	return worst == 0 ? 0 : 1;
}
