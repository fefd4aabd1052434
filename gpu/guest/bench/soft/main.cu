// bench-soft measures kernels on a soft GPU and the same computation in C on the same processors,
// compares the results, and prints samples in the format of "go test -bench", for
// appliance/test/benchreport.
//
//   bench-soft          a sample of each row
//   bench-soft KERNEL   one kernel, repeatedly until it is stopped, for a profile
//   bench-soft smoke    no samples: only compares the results, with small sizes
//
// For samples, BENCH_GPUD is the process ID of basalt-gpud, which must have no worker other than
// this program's.
#include <glob.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include <vector>

#include "../../runtime/test/check.h"
#include "kernels.h"

#define WORDS(expression) [](size_t n) -> size_t { return (void)n, expression; }

enum fill { NOTHING, WHOLE, UNIT, BITS }; // WHOLE: small whole numbers, whose sums are exact; UNIT: -1 to 1; BITS: any

static const struct kernel {
	const char *name;
	unsigned n, small;
	enum fill fill;
	size_t (*a)(size_t n), (*b)(size_t n), (*out)(size_t n), (*scratch)(size_t n); // sizes in words
	float tolerance; // error of floats, relative to the largest; 0: words must be equal
	void (*device)(const struct job *), (*host)(const struct job *);
} kernels[] = {
#define BOTH(name) name, name##_in_c
	{"saxpy", 1 << 22, 1000, WHOLE, WORDS(n), WORDS(n), WORDS(n), WORDS(0), 0, BOTH(saxpy)},
	{"sgemm512", 512, 48, WHOLE, WORDS(n * n), WORDS(n * n), WORDS(n * n), WORDS(0), 0, BOTH(sgemm)},
	{"sgemm1024", 1024, 32, WHOLE, WORDS(n * n), WORDS(n * n), WORDS(n * n), WORDS(0), 0, BOTH(sgemm)},
	{"cublas512", 512, 48, WHOLE, WORDS(n * n), WORDS(n * n), WORDS(n * n), WORDS(0), 0, BOTH(cublas)},
	{"reduction", 1 << 22, 70000, WHOLE, WORDS(n), WORDS(0), WORDS(1), WORDS(256), 0, BOTH(reduction)},
	{"scan", 1 << 22, 70000, BITS, WORDS(n), WORDS(0), WORDS(n), WORDS(n / 256 + 1), 0, BOTH(scan)},
	{"histogram", 1 << 20, 3000, BITS, WORDS(n), WORDS(0), WORDS(256), WORDS(0), 0, BOTH(histogram)},
	{"nbody", 4096, 256, UNIT, WORDS(4 * n), WORDS(0), WORDS(4 * n), WORDS(0), 1e-5f, BOTH(nbody)},
	{"stencil", 2048, 70, UNIT, WORDS(n * n), WORDS(0), WORDS(n * n), WORDS(0), 1e-6f, BOTH(stencil)},
	{"softmax", 1024, 150, UNIT, WORDS(n * n), WORDS(0), WORDS(n * n), WORDS(0), 1e-5f, BOTH(softmax)},
	{"attention", 1024, 40, UNIT, WORDS(n * HEAD), WORDS(2 * n * HEAD), WORDS(n * HEAD), WORDS(0), 1e-5f, BOTH(attention)},
	{"radix-sort", 1 << 20, 5000, BITS, WORDS(n), WORDS(0), WORDS(n), WORDS(n + 16 * (n / SORT_TILE + 1)), 0, BOTH(radixsort)},
	{"mandelbrot", 1024, 50, NOTHING, WORDS(0), WORDS(0), WORDS(n * n), WORDS(0), 0, BOTH(mandelbrot)},
	{"mersenne", 2048, 40, NOTHING, WORDS(0), WORDS(0), WORDS(n), WORDS(n * MT_STATE), 0, BOTH(mersenne)},
};

static double read_clock(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) != 0) {
		perror("bench-soft: a clock");
		exit(1);
	}
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now() { return read_clock(CLOCK_MONOTONIC); }

static void sample(const char *row, const char *kernel, double value, const char *unit)
{
	printf("Benchmark%s/%s\t1\t%.1f %s\n", row, kernel, value, unit);
	fflush(stdout);
}

// Returns a word as the kernel reads it: the bits of a float, or a number.
static uint32_t word(enum fill fill, unsigned *seed)
{
	uint32_t v = next_random(seed) << 8 ^ next_random(seed);
	float f = fill == WHOLE ? (float)(v >> 8 & 3) : (float)(v >> 8) / (1 << 23) - 1;

	if (fill != BITS)
		memcpy(&v, &f, sizeof v);
	return v;
}

static std::vector<uint32_t> words(enum fill fill, size_t n, unsigned seed)
{
	std::vector<uint32_t> v(n);

	for (uint32_t &w : v)
		w = word(fill, &seed);
	return v;
}

static uint32_t *on_device(const std::vector<uint32_t> &v)
{
	uint32_t *p;

	CHECK(cudaMalloc(&p, (v.size() + 1) * sizeof *p));
	CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof *p, cudaMemcpyHostToDevice));
	return p;
}

static float as_float(uint32_t word)
{
	float f;

	memcpy(&f, &word, sizeof f);
	return f;
}

// Ends the program if the results differ by more than the kernel's tolerance.
static void check(const struct kernel &k, const std::vector<uint32_t> &got, const std::vector<uint32_t> &want)
{
	float most = 0;

	for (uint32_t w : want)
		most = fmaxf(most, fabsf(as_float(w)));
	for (size_t i = 0; i < got.size(); i++)
		if (got[i] != want[i] && !(k.tolerance > 0 && fabsf(as_float(got[i]) - as_float(want[i])) <= k.tolerance * most)) {
			fprintf(stderr, "bench-soft: %s: word %zu of the result is %#x, in C %#x\n", k.name, i, got[i], want[i]);
			exit(1);
		}
}

// The clock of the worker's processor time; this process's until the worker is known.
static clockid_t worker_clock = CLOCK_PROCESS_CPUTIME_ID;

struct times {
	double wall, processor;
};

// Measures a run until it is done. It runs twice, because the first run includes loading and
// compiling.
static struct times timed(void (*run)(const struct job *), const struct job &j, clockid_t clock)
{
	struct times t;

	for (int turn = 0; turn < 2; turn++) {
		t = {now(), read_clock(clock)};
		run(&j);
		CHECK(cudaDeviceSynchronize());
		t = {now() - t.wall, read_clock(clock) - t.processor};
	}
	return t;
}

static void compare(const struct kernel &k, unsigned n, bool samples)
{
	std::vector<uint32_t> a = words(k.fill, k.a(n), 1), b = words(k.fill, k.b(n), 2), want(k.out(n)), got(k.out(n), ~0u);
	struct job host = {n, a.data(), b.data(), want.data(), nullptr};
	struct job device = {n, on_device(a), on_device(b), on_device(got), on_device(std::vector<uint32_t>(k.scratch(n)))};
	struct times took = timed(k.device, device, worker_clock), in_c = timed(k.host, host, CLOCK_PROCESS_CPUTIME_ID);

	CHECK(cudaMemcpy(got.data(), device.out, got.size() * sizeof got[0], cudaMemcpyDeviceToHost));
	check(k, got, want);
	for (const void *p : {device.a, device.b, (const void *)device.out, (const void *)device.scratch})
		CHECK(cudaFree((void *)p));
	if (samples) {
		sample("SoftKernel", k.name, took.wall, "ns/op");
		sample("SoftKernelInC", k.name, in_c.wall, "ns/op");
		sample("SoftKernelCPU", k.name, took.processor, "ns/op");
		sample("SoftKernelCPUInC", k.name, in_c.processor, "ns/op");
	}
}

// Launches kernels of one warp that do nothing, first without waits, then with a wait for each.
// The baseline in C is a region that all processors enter and leave.
static void launches()
{
	enum { LAUNCHES = 2000 };
	double t;

	for (int wait = 0; wait < 2; wait++) {
		CHECK(cudaDeviceSynchronize());
		t = now();
		for (int i = 0; i < LAUNCHES; i++) {
			nothing(nullptr);
			if (wait)
				CHECK(cudaDeviceSynchronize());
		}
		CHECK(cudaDeviceSynchronize());
		sample("SoftLaunch", wait ? "waited" : "queued", (now() - t) / LAUNCHES, "ns/op");
	}
	t = now();
	for (int i = 0; i < LAUNCHES; i++)
		nothing_in_c(nullptr);
	sample("SoftLaunchInC", "region", (now() - t) / LAUNCHES, "ns/op");
}

// Returns the number after a name in a file of /proc.
static double field(const char *path, const char *name)
{
	char line[256];
	double v = 0;
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			v = strtod(line + strlen(name), nullptr);
	fclose(f);
	return v;
}

// Returns the process ID of a child of a process.
static pid_t child_of(const char *parent)
{
	char pattern[64];
	double child = 0;
	glob_t files;

	snprintf(pattern, sizeof pattern, "/proc/%s/task/*/children", parent);
	if (glob(pattern, 0, nullptr, &files) == 0)
		for (size_t i = 0; i < files.gl_pathc && child == 0; i++)
			child = field(files.gl_pathv[i], "");
	globfree(&files);
	if (child == 0) {
		fprintf(stderr, "bench-soft: BENCH_GPUD: process %s has no child, want a worker\n", parent);
		exit(1);
	}
	return (pid_t)child;
}

// Measures the worker's memory after all of the above, with 512 MiB of device memory in use. The
// guest's library keeps some freed device memory for its next allocations. An allocation of nearly
// all free memory makes it release that, and 512 MiB of it are written.
static void memory(pid_t worker)
{
	enum { MIB = 512 };
	char path[64];
	size_t room, total;
	void *p;

	CHECK(cudaMemGetInfo(&room, &total));
	CHECK(cudaMalloc(&p, room - (1 << 20)));
	CHECK(cudaMemset(p, 1, (size_t)MIB << 20));
	CHECK(cudaDeviceSynchronize());
	snprintf(path, sizeof path, "/proc/%d/status", (int)worker);
	sample("SoftMemory", "worker", field(path, "VmRSS:") / 1024, "MiB");
	sample("SoftMemory", "device", MIB, "MiB");
	CHECK(cudaFree(p));
}

static pid_t find_worker(const char *gpud)
{
	pid_t worker;

	CHECK(cudaFree(nullptr)); // creates a context, and so a worker
	worker = child_of(gpud ? gpud : "of BENCH_GPUD");
	ASSERT(clock_getcpuclockid(worker, &worker_clock) == 0);
	return worker;
}

static void measure(const char *gpud)
{
	pid_t worker = find_worker(gpud);

	for (const struct kernel &k : kernels)
		compare(k, k.n, true);
	launches();
	memory(worker);
}

static int repeat(const char *name, const char *gpud)
{
	find_worker(gpud);
	for (const struct kernel &k : kernels)
		while (strcmp(k.name, name) == 0)
			compare(k, k.n, true);
	fprintf(stderr, "bench-soft: no kernel is called \"%s\"\n", name);
	return 2;
}

static int smoke()
{
	for (const struct kernel &k : kernels)
		compare(k, k.small, false);
	puts("bench-soft: OK");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		fprintf(stderr, "usage: bench-soft [smoke | KERNEL]\n");
		return 2;
	}
	if (argc == 2)
		return strcmp(argv[1], "smoke") == 0 ? smoke() : repeat(argv[1], getenv("BENCH_GPUD"));
	measure(getenv("BENCH_GPUD"));
	return 0;
}
