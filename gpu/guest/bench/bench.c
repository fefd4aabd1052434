/* Measures the cost of calls on the guest's side, each beside its baseline in the same program:
 * one sample of every row per round, in the format of "go test -bench", for
 * appliance/test/benchreport. It needs BASALT_GPU=unix:SOCKET or a vGPU.
 *
 *   bench [ROUNDS]                   default 5
 *   bench path [ROUNDS [LAUNCHES]]   the rows of path.c, for a null device;
 *                                    default 5, 1000000
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* Launches between two synchronizations: so few that they never fill the ring. */
#define BATCH 128
#define BATCHES 100

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void sample(const char *name, long n, double nanos)
{
	printf("Benchmark%s\t%ld\t%.1f ns/op\n", name, n, nanos / (double)n);
	fflush(stdout);
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Measures only the launches, not the wait until they are done. */
static void enqueue(CUfunction f, CUdeviceptr p)
{
	unsigned int value = 1;
	void *params[] = {&p, &value};
	double sum = 0;

	for (int b = 0; b < BATCHES; b++) {
		double t = now();

		for (int i = 0; i < BATCH; i++)
			CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		sum += now() - t;
		CHECK(cuCtxSynchronize());
	}
	sample("GuestEnqueue", (long)BATCH * BATCHES, sum);
}

/* Writes the same bytes, entry after entry, into memory of the batch's size. */
static void enqueue_baseline(void)
{
	struct launch_entry entry;
	static uint8_t ring[BATCH * sizeof entry];
	double sum = 0;

	memset(&entry, 1, sizeof entry);
	for (int b = 0; b < BATCHES; b++) {
		double t = now();

		for (int i = 0; i < BATCH; i++) {
			memcpy(ring + (size_t)i * sizeof entry, &entry, sizeof entry);
			__asm__ volatile("" : : "r"(ring) : "memory");
		}
		sum += now() - t;
	}
	sample("GuestEnqueueBaseline", (long)BATCH * BATCHES, sum);
}

static void round_trip(CUstream stream)
{
	double t = now();

	for (int i = 0; i < TRIPS; i++)
		CHECK(cuStreamSynchronize(stream));
	sample("GuestRoundTrip", TRIPS, now() - t);
}

/* Two processes pass a word back and forth in shared memory. Both poll. */
void round_trip_baseline(const char *name)
{
	struct words {
		_Alignas(64) _Atomic uint32_t ping;
		_Alignas(64) _Atomic uint32_t pong;
	} *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid(), child;
	double t;

	if (w == MAP_FAILED || (child = fork()) < 0) {
		perror("bench");
		exit(1);
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* because it polls forever */
		if (getppid() != parent)
			_exit(1);
		for (uint32_t last = 0;; pause_cpu()) {
			uint32_t v = atomic_load_explicit(&w->ping, memory_order_acquire);

			if (v != last)
				atomic_store_explicit(&w->pong, last = v, memory_order_release);
		}
	}
	atomic_store(&w->ping, 1);
	while (atomic_load(&w->pong) != 1) /* wait until the child runs */
		sched_yield();
	t = now();
	for (uint32_t i = 2; i < TRIPS + 2; i++) {
		atomic_store_explicit(&w->ping, i, memory_order_release);
		while (atomic_load_explicit(&w->pong, memory_order_acquire) != i)
			pause_cpu();
	}
	t = now() - t;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(w, sizeof *w);
	sample(name, TRIPS, t);
}

/* Makes n copies of size bytes, and waits until all are on the device. */
static void copy(const char *name, CUdeviceptr dst, const void *src, size_t size, int n)
{
	double t = now();

	for (int i = 0; i < n; i++)
		CHECK(cuMemcpyHtoD(dst, src, size));
	CHECK(cuCtxSynchronize());
	sample(name, n, now() - t);
}

void copy_baseline(const char *name, void *dst, const void *src, size_t size, int n)
{
	double t = now();

	for (int i = 0; i < n; i++) {
		memcpy(dst, src, size);
		__asm__ volatile("" : : "r"(dst) : "memory");
	}
	sample(name, n, now() - t);
}

int main(int argc, char **argv)
{
	enum { SMALL = 64 << 10, BIG = 16 << 20 };
	int of_path = argc > 1 && strcmp(argv[1], "path") == 0;
	unsigned int rounds = number(argc > 1 + of_path ? argv[1 + of_path] : NULL, 5);
	CUfunction f = demo_start("poke");
	void *src = malloc(BIG), *dst = malloc(BIG);
	CUdeviceptr p;
	CUstream stream;

	if (of_path) {
		path(f, rounds, number(argc > 3 ? argv[3] : NULL, 1000000));
		return 0;
	}
	if (!src || !dst)
		return 2;
	memset(src, 1, BIG);
	memset(dst, 2, BIG);
	CHECK(cuMemAlloc(&p, BIG));
	CHECK(cuMemcpyHtoD(p, src, BIG)); /* so that the device's pages were touched once, like the host's */
	CHECK(cuStreamCreate(&stream, 0));
	CHECK(cuStreamSynchronize(stream));
	for (unsigned int r = 0; r < rounds; r++) {
		enqueue(f, p);
		enqueue_baseline();
		round_trip(stream);
		round_trip_baseline("GuestRoundTripBaseline");
		copy("GuestCopySmall", p, src, SMALL, 256);
		copy_baseline("GuestCopySmallBaseline", dst, src, SMALL, 256);
		copy("GuestCopyBig", p, src, BIG, 8);
		copy_baseline("GuestCopyBigBaseline", dst, src, BIG, 8);
	}
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(p));
	free(src);
	free(dst);
	return 0;
}
