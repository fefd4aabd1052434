/* Uses the vGPU for a while and checks all results: loop MIB SECONDS [STOP]. It ends when the
 * time has passed, or as soon as the file STOP exists.
 *
 * It holds MIB MiB of VRAM and launches acc += step repeatedly, in whole numbers, so that a
 * launch that is lost or executed twice is detected. The last line of its output is "loop: N
 * launches OK". */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"

#define N (1u << 14)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static float acc[N], step[N];
	size_t mib = number(argc > 1 ? argv[1] : NULL, 16);
	const char *stop = argc > 3 ? argv[3] : "";
	double end = now() + number(argc > 2 ? argv[2] : NULL, 10);
	unsigned int n = N, launches = 0;
	CUdeviceptr ballast, dacc, dstep;
	CUfunction f = demo_start("vecadd");

	for (unsigned int i = 0; i < N; i++)
		step[i] = (float)(i % 7);
	CHECK(cuMemAlloc(&ballast, mib << 20));
	CHECK(cuMemAlloc(&dacc, sizeof acc));
	CHECK(cuMemAlloc(&dstep, sizeof step));
	CHECK(cuMemcpyHtoD(dacc, acc, sizeof acc));
	CHECK(cuMemcpyHtoD(dstep, step, sizeof step));
	void *params[] = {&dacc, &dstep, &dacc, &n};

	printf("loop: started\n");
	fflush(stdout);
	/* 2^24 / 7: up to this number of launches, every sum is exact in a float. */
	while (now() < end && launches < 2000000) {
		CHECK(cuLaunchKernel(f, N / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
		launches++;
		if (launches % 8)
			continue;
		CHECK(cuCtxSynchronize());
		if (access(stop, F_OK) == 0)
			break;
	}
	CHECK(cuMemcpyDtoH(acc, dacc, sizeof acc));
	for (unsigned int i = 0; i < N; i++)
		if (acc[i] != (float)launches * step[i]) {
			printf("loop: element %u is %g after %u launches: WRONG\n", i, (double)acc[i], launches);
			return 1;
		}
	CHECK(cuMemFree(ballast));
	printf("loop: %u launches OK\n", launches);
	return 0;
}
