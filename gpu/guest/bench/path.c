/* Measures the path between a program and a device, with a device that completes everything at
 * once (basalt-gpud --null-gpu). With another device the numbers include that device's own time.
 * "CPU" is the processor time of all threads of this process. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define MAX_THREADS 8
#define ALLOCATIONS 1000
#define GRAPH_NODES 1000
#define GRAPH_LAUNCHES 500
#define ASLEEP 100 /* number of launches that find the worker sleeping */
#define MODULE_BYTES (20u << 20)

enum { BIGGEST = 16 << 20, ALLOCATION = 1 << 20, RING = 4 << 20 };

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* allocate returns memory that has been written to once. */
static void *allocate(size_t size)
{
	void *p = aligned_alloc(4096, size);

	if (!p) {
		perror("bench");
		exit(1);
	}
	memset(p, 1, size);
	return p;
}

/* One thread of a row with several. They begin at the same time, so that their initialization is
 * not measured. */
struct issuer {
	pthread_t thread;
	pthread_barrier_t *begin, *end;
	CUcontext context;
	CUfunction f;
	CUdeviceptr p;
	long n;
};

static void *issue(void *arg)
{
	struct issuer *w = arg;
	unsigned int value = 1;
	void *params[] = {&w->p, &value};
	CUstream stream;

	CHECK(cuCtxSetCurrent(w->context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	pthread_barrier_wait(w->begin);
	for (long i = 0; i < w->n; i++)
		CHECK(cuLaunchKernel(w->f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	pthread_barrier_wait(w->end);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuStreamDestroy(stream));
	return NULL;
}

/* Writes the same bytes, entry after entry, into a ring of the thread's own. */
static void *write_entries(void *arg)
{
	struct issuer *w = arg;
	struct launch_entry entry;
	const size_t fit = RING / sizeof entry;
	uint8_t *ring = allocate(RING);

	memset(&entry, 1, sizeof entry);
	pthread_barrier_wait(w->begin);
	for (long i = 0; i < w->n; i++) {
		memcpy(ring + (size_t)i % fit * sizeof entry, &entry, sizeof entry);
		__asm__ volatile("" : : "r"(ring) : "memory");
	}
	pthread_barrier_wait(w->end);
	free(ring);
	return NULL;
}

/* Measures the given number of launches in all threads together. The ring fills, so this is the
 * rate that can be sustained: the time of waiting for room is included. */
static void sustained(const char *name, void *(*run)(void *), int threads, long launches, CUfunction f, CUdeviceptr p)
{
	struct issuer all[MAX_THREADS];
	pthread_barrier_t begin, end;
	CUcontext context;
	double t;

	CHECK(cuCtxGetCurrent(&context));
	pthread_barrier_init(&begin, NULL, (unsigned int)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned int)threads + 1);
	for (int i = 0; i < threads; i++) {
		all[i] = (struct issuer){0, &begin, &end, context, f, p, launches / threads};
		if (pthread_create(&all[i].thread, NULL, run, &all[i]) != 0) {
			fprintf(stderr, "bench: cannot create a thread\n");
			exit(1);
		}
	}
	pthread_barrier_wait(&begin);
	t = cpu();
	pthread_barrier_wait(&end);
	t = cpu() - t;
	for (int i = 0; i < threads; i++)
		pthread_join(all[i].thread, NULL);
	pthread_barrier_destroy(&begin);
	pthread_barrier_destroy(&end);
	sample(name, launches / threads * threads, t);
}

static void launch_and_synchronize(CUfunction f, CUdeviceptr p, CUstream stream)
{
	unsigned int value = 1;
	void *params[] = {&p, &value};
	double t = now();

	for (int i = 0; i < TRIPS; i++) {
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
		CHECK(cuStreamSynchronize(stream));
	}
	sample("PathLaunchSync", TRIPS, now() - t);
}

static void launches_one_by_one(CUfunction f, CUdeviceptr p, CUstream stream)
{
	unsigned int value = 1;
	void *params[] = {&p, &value};

	for (int i = 0; i < GRAPH_NODES; i++)
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* Measures what a launch of a graph costs this process. The baseline launches its kernels one by
 * one. Waits between and after the launches are not included. */
static void graph_launch(CUfunction f, CUdeviceptr p)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	double t, sum;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launches_one_by_one(f, p, stream);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	t = cpu();
	for (int i = 0; i < GRAPH_LAUNCHES; i++)
		CHECK(cuGraphLaunch(exec, stream));
	sum = cpu() - t;
	CHECK(cuStreamSynchronize(stream));
	sample("PathGraphLaunchCPU/worker=busy", GRAPH_LAUNCHES, sum);
	sum = 0;
	for (int i = 0; i < ASLEEP; i++) {
		usleep(1000); /* the worker sleeps, so that a launch has to kick it */
		t = cpu();
		CHECK(cuGraphLaunch(exec, stream));
		sum += cpu() - t;
		CHECK(cuStreamSynchronize(stream));
	}
	sample("PathGraphLaunchCPU/worker=asleep", ASLEEP, sum);
	sum = 0;
	for (int i = 0; i < 20; i++) {
		t = cpu();
		launches_one_by_one(f, p, stream);
		sum += cpu() - t;
		CHECK(cuStreamSynchronize(stream));
	}
	sample("PathGraphLaunchCPUBaseline", 20, sum);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuStreamDestroy(stream));
}

/* Measures the minimum cost of waking another process: the processor time of a write to an
 * eventfd that a child waits for, after 1 ms without work. */
static void wake_baseline(void)
{
	int wake_fd = eventfd(0, EFD_CLOEXEC);
	pid_t parent = getpid(), child;
	uint64_t one = 1;
	double t, sum = 0;

	if (wake_fd < 0 || (child = fork()) < 0) {
		perror("bench");
		exit(1);
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent && read(wake_fd, &one, sizeof one) == sizeof one)
			;
		_exit(0);
	}
	for (int i = 0; i < ASLEEP; i++) {
		usleep(1000);
		t = cpu();
		if (write(wake_fd, &one, sizeof one) != sizeof one)
			perror("bench");
		sum += cpu() - t;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(wake_fd);
	sample("PathWakeCPUBaseline", ASLEEP, sum);
}

static void alloc_and_free(void)
{
	double t = now();

	for (int i = 0; i < ALLOCATIONS; i++) {
		CUdeviceptr p;

		CHECK(cuMemAlloc(&p, ALLOCATION));
		CHECK(cuMemFree(p));
	}
	sample("PathAllocFree", ALLOCATIONS, now() - t);
	t = now();
	for (int i = 0; i < ALLOCATIONS; i++) {
		void *p = mmap(NULL, ALLOCATION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || munmap(p, ALLOCATION) != 0) {
			perror("bench");
			exit(1);
		}
	}
	sample("PathAllocFreeBaseline", ALLOCATIONS, now() - t);
}

static void copies(CUdeviceptr p, void *pageable, void *pinned, void *other)
{
	static const struct {
		const char *name;
		size_t bytes;
		int n;
	} sizes[] = {{"64KiB", 64 << 10, 512}, {"256KiB", 256 << 10, 256}, {"1MiB", 1 << 20, 64}, {"16MiB", 16 << 20, 8}};
	const struct {
		const char *name;
		void *host;
	} kinds[] = {{"pageable", pageable}, {"pinned", pinned}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t bytes = sizes[i].bytes;
		int n = sizes[i].n;
		char name[96];

		snprintf(name, sizeof name, "PathMemcpy/size=%s", sizes[i].name);
		copy_baseline(name, other, pageable, bytes, n);
		for (size_t k = 0; k < 2; k++) {
			double t = now();

			for (int j = 0; j < n; j++)
				CHECK(cuMemcpyHtoD(p, kinds[k].host, bytes));
			CHECK(cuCtxSynchronize());
			t = now() - t;
			snprintf(name, sizeof name, "PathCopy/HtoD/%s/size=%s", kinds[k].name, sizes[i].name);
			sample(name, n, t);
			t = now();
			for (int j = 0; j < n; j++)
				CHECK(cuMemcpyDtoH(kinds[k].host, p, bytes));
			t = now() - t;
			snprintf(name, sizeof name, "PathCopy/DtoH/%s/size=%s", kinds[k].name, sizes[i].name);
			sample(name, n, t);
		}
	}
}

/* Returns a module of at least MODULE_BYTES, with kernels as a compiler writes them. */
static char *big_module(size_t *bytes)
{
	static const char head[] = ".version 6.4\n.target sm_50\n.address_size 64\n";
	char *src = allocate(MODULE_BYTES + (1u << 16));
	size_t at = (size_t)sprintf(src, "%s", head);

	for (unsigned int k = 0; at < MODULE_BYTES; k++) {
		at += (size_t)sprintf(src + at,
				      ".visible .entry kernel_%u(.param .u64 a, .param .u32 n)\n{\n"
				      "\t.reg .b32 \t%%r<400>;\n\t.reg .b64 \t%%rd<4>;\n"
				      "\tld.param.u64 \t%%rd1, [a];\n\tld.param.u32 \t%%r1, [n];\n",
				      k);
		for (unsigned int i = 2; i < 400; i++)
			at += (size_t)sprintf(src + at, "\tmad.lo.s32 \t%%r%u, %%r%u, %%r1, %u;\n", i, i - 1, i);
		at += (size_t)sprintf(src + at, "\tst.global.u32 \t[%%rd1], %%r399;\n\tret;\n}\n");
	}
	*bytes = at + 1;
	return src;
}

static void module_load(const char *src, void *other, size_t bytes)
{
	CUmodule module;
	double t = now();

	CHECK(cuModuleLoadData(&module, src));
	t = now() - t;
	sample("PathModuleLoad", 1, t);
	CHECK(cuModuleUnload(module));
	copy_baseline("PathModuleLoadBaseline", other, src, bytes, 1);
}

void path(CUfunction f, unsigned int rounds, long launches)
{
	void *pageable = allocate(BIGGEST), *other = allocate(BIGGEST), *pinned, *copy;
	CUdeviceptr p;
	CUstream stream;
	size_t bytes;
	char *module = big_module(&bytes);

	copy = allocate(MODULE_BYTES + (1u << 16));
	CHECK(cuMemAlloc(&p, BIGGEST));
	CHECK(cuMemHostAlloc(&pinned, BIGGEST, 0));
	memset(pinned, 1, BIGGEST);
	CHECK(cuStreamCreate(&stream, 0));
	CHECK(cuStreamSynchronize(stream));
	for (unsigned int r = 0; r < rounds; r++) {
		sustained("PathEnqueueCPU/threads=1", issue, 1, launches, f, p);
		sustained("PathEnqueueCPUBaseline/threads=1", write_entries, 1, launches, f, p);
		sustained("PathEnqueueCPU/threads=8", issue, 8, launches, f, p);
		sustained("PathEnqueueCPUBaseline/threads=8", write_entries, 8, launches, f, p);
		launch_and_synchronize(f, p, stream);
		round_trip_baseline("PathLaunchSyncBaseline");
		graph_launch(f, p);
		wake_baseline();
		alloc_and_free();
		copies(p, pageable, pinned, other);
		module_load(module, copy, bytes);
	}
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFreeHost(pinned));
	CHECK(cuMemFree(p));
	free(module);
	free(copy);
	free(pageable);
	free(other);
}
