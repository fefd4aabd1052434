/* Multiplies two matrices on the device, by tiles in shared memory, and checks
 * the product. */
#include "demo.h"

int main(int argc, char **argv)
{
	unsigned int n = number(argc > 1 ? argv[1] : NULL, 256), seed = 2;
	size_t count = (size_t)n * n, bytes = count * sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
	double worst = 0;
	CUfunction f = demo_start("matmul");
	CUdeviceptr da, db, dc;

	if (!a || !b || !c || n == 0)
		return 2;
	for (size_t i = 0; i < count; i++) {
		a[i] = demo_random(&seed) - 0.5f;
		b[i] = demo_random(&seed) - 0.5f;
	}
	CHECK(cuMemAlloc(&da, bytes));
	CHECK(cuMemAlloc(&db, bytes));
	CHECK(cuMemAlloc(&dc, bytes));
	CHECK(cuMemcpyHtoD(da, a, bytes));
	CHECK(cuMemcpyHtoD(db, b, bytes));
	void *params[] = {&da, &db, &dc, &n};

	CHECK(cuLaunchKernel(f, (n + 15) / 16, (n + 15) / 16, 1, 16, 16, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(c, dc, bytes));
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int j = 0; j < n; j++) {
			double want = 0, e;

			for (unsigned int k = 0; k < n; k++)
				want += (double)a[i * n + k] * b[k * n + j];
			e = want - c[i * n + j];
			e = e < 0 ? -e : e;
			worst = e <= worst ? worst : e; /* a NaN counts as an error too */
		}
	}
	CHECK(cuMemFree(da));
	CHECK(cuMemFree(db));
	CHECK(cuMemFree(dc));
	/* n products of at most 1/4, each rounded to 24 bits. */
	int ok = worst <= n * 0.25 * 6e-8 * 4;

	printf("matmul: %u x %u, max error %.3g, %s\n", n, n, worst, ok ? "OK" : "WRONG");
	return ok ? 0 : 1;
}
