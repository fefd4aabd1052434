/* Tests of the library against a real worker: "api NAME" runs one, "api list" prints their
 * names. The Go tests run all of them, on a host and in a VM. */
#include <signal.h>
#include <sys/wait.h>

#include "api.h"

static CUmodule module_of(CUfunction f)
{
	CUmodule m;

	CHECK(cuFuncGetModule(&m, f));
	return m;
}

#define THREADS 8
#define ROUNDS 100

struct job {
	CUcontext context;
	CUfunction count;
	CUdeviceptr counter;
	unsigned int id;
};

static void *work(void *p)
{
	struct job *j = p;
	unsigned int one = 1, back;
	CUdeviceptr own;
	CUstream s;
	void *params[] = {&j->counter, &one};

	CHECK(cuCtxSetCurrent(j->context));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&own, 1 << 20));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		CHECK(cuLaunchKernel(j->count, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
		CHECK(cuMemsetD32Async(own, j->id * 1000 + i, 1 << 18, s));
		CHECK(cuMemcpyDtoHAsync(&back, own + 4 * i, 4, s));
		CHECK(cuStreamSynchronize(s));
		EXPECT(back == j->id * 1000 + i);
	}
	CHECK(cuMemFree(own));
	CHECK(cuStreamDestroy(s));
	return NULL;
}

static void threads(void)
{
	CUfunction count = demo_start("count");
	pthread_t t[THREADS];
	struct job j[THREADS];
	CUdeviceptr counter;
	CUcontext context;
	unsigned int total;

	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuMemAlloc(&counter, 4));
	CHECK(cuMemsetD32(counter, 0, 1));
	CHECK(cuStreamSynchronize(NULL)); /* the threads' streams do not wait for it */
	for (unsigned int i = 0; i < THREADS; i++) {
		j[i] = (struct job){context, count, counter, i};
		EXPECT(pthread_create(&t[i], NULL, work, &j[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(cuMemcpyDtoH(&total, counter, 4));
	EXPECT(total == THREADS * ROUNDS * 32);
}

/* Copies that are larger than the arena, with odd offsets, in all directions. */
static void copies(void)
{
	size_t n = (40u << 20) + 12345;
	unsigned char *a = malloc(n), *b = malloc(n), *pin;
	CUdeviceptr d, e;
	CUstream s;
	unsigned int seed = 3;

	(void)demo_start("vecadd");
	for (size_t i = 0; i < n; i++)
		a[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuMemAlloc(&d, n + 7));
	CHECK(cuMemAlloc(&e, n + 7));
	CHECK(cuMemcpyHtoD(d + 7, a, n));
	CHECK(cuMemcpyDtoD(e, d + 7, n));
	CHECK(cuMemcpyDtoH(b, e, n));
	EXPECT(memcmp(a, b, n) == 0);
	CHECK(cuMemHostAlloc((void **)&pin, n, 0));
	memset(pin, 0, n);
	CHECK(cuMemcpyDtoHAsync(pin, e, n, s));
	CHECK(cuStreamSynchronize(s));
	EXPECT(memcmp(a, pin, n) == 0);
	pin[0] ^= 1;
	CHECK(cuMemcpyHtoDAsync(d, pin, n, s));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpy((CUdeviceptr)(uintptr_t)b, d, n));
	EXPECT(memcmp(pin, b, n) == 0);
	CHECK(cuMemFreeHost(pin));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pin));

	/* 100 rows of 300 bytes out of rows of 512. */
	CUDA_MEMCPY2D r = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = a, .srcPitch = 300, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = d, .dstPitch = 512, .WidthInBytes = 300, .Height = 100};
	CHECK(cuMemcpy2D(&r));
	memset(b, 0, n);
	CUDA_MEMCPY2D q = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = d, .srcPitch = 512, .dstMemoryType = CU_MEMORYTYPE_HOST,
			   .dstHost = b, .dstPitch = 300, .WidthInBytes = 300, .Height = 100};
	CHECK(cuMemcpy2D(&q));
	EXPECT(memcmp(a, b, 30000) == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(d + n, a, 8)); /* one byte too far */
	/* Allocates and frees more pinned regions than there are numbers. */
	for (int i = 0; i < 1500; i++) {
		CHECK(cuMemHostAlloc((void **)&pin, 8192, 0));
		pin[8191] = (unsigned char)i;
		CHECK(cuMemcpyHtoDAsync(d, pin, 8192, s));
		CHECK(cuMemFreeHost(pin));
	}
	CHECK(cuMemcpyDtoH(b, d + 8191, 1));
	EXPECT(b[0] == (unsigned char)1499);
}

static void events(void)
{
	CUfunction f = demo_start("count");
	unsigned int rounds = 1000, got;
	CUdeviceptr p;
	CUstream s, u;
	CUevent a, b;
	float ms = -1;
	void *params[] = {&p, &rounds};

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&a, 0));
	CHECK(cuEventCreate(&b, 0));
	CHECK(cuEventQuery(a)); /* an event that was never recorded is done */
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, a, b));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuCtxSynchronize());
	CHECK(cuEventRecord(a, s));
	CHECK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, s, params, NULL));
	CHECK(cuEventRecord(b, s));
	CHECK(cuStreamWaitEvent(u, b, 0));
	CHECK(cuMemcpyDtoHAsync(&got, p, 4, u));
	CHECK(cuStreamSynchronize(u));
	EXPECT(got == 1024 * rounds);
	CHECK(cuEventSynchronize(b));
	CHECK(cuEventQuery(b));
	CHECK(cuEventElapsedTime(&ms, a, b));
	EXPECT(ms > 0);
	CHECK(cuStreamQuery(s));
	CHECK(cuEventDestroy(a));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(a, s));
}

static void globals(void)
{
	CUfunction f = demo_start("sum_table");
	unsigned int values[4] = {10, 20, 30, 40}, got;
	CUdeviceptr g, again, out;
	size_t size = 0;
	void *params[] = {&out};

	CHECK(cuModuleGetGlobal(&g, &size, module_of(f), "table"));
	EXPECT(size == 16);
	CHECK(cuModuleGetGlobal(&again, NULL, module_of(f), "table"));
	EXPECT(again == g);
	GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&g, &size, module_of(f), "chair"));
	CHECK(cuMemAlloc(&out, 4));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
	CHECK(cuMemcpyDtoH(&got, out, 4));
	EXPECT(got == 10);
	CHECK(cuMemcpyHtoD(g, values, 16));
	size_t bytes = 8;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &out, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	CHECK(cuMemcpyDtoH(&got, out, 4));
	EXPECT(got == 100);
	CHECK(cuModuleUnload(module_of(f)));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

static void library(void)
{
	unsigned int value = 7, got;
	CUlibrary lib;
	CUkernel k;
	CUdeviceptr p;
	CUlinkState link;
	CUmodule m;
	void *cubin;
	size_t size;
	void *params[] = {&p, &value};

	(void)demo_start("poke");
	CHECK(cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&k, lib, "poke"));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuLaunchKernel((CUfunction)(void *)k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 7);
	CHECK(cuLibraryUnload(lib));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(lib));
	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels_ptx, strlen(kernels_ptx), "k.ptx", 0, NULL, NULL));
	CHECK(cuLinkComplete(link, &cubin, &size));
	CHECK(cuModuleLoadData(&m, cubin));
	CHECK(cuLinkDestroy(link));
}

static void bad_handles(void)
{
	static const uintptr_t junk[] = {3, 0xdeadbeef, 0x10000, 0x7fffffffffff, UINTPTR_MAX};
	CUfunction f;
	CUcontext c, gone;
	CUstream s;
	CUdeviceptr p;

	GIVES(CUDA_ERROR_NOT_INITIALIZED, cuStreamCreate(&s, 0));
	CHECK(cuInit(0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 4));
	f = demo_start("poke");
	CHECK(cuCtxGetCurrent(&c));
	for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
		void *h = (void *)junk[i];

		if (h == c)
			continue;
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(h, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(h));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(h));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(h));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(h));
		GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(h));
		GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(h));
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(junk[i]));
	}
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)(void *)f)); /* a handle of another kind */
	CHECK(cuCtxCreate(&gone, 0, 0));
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuCtxDestroy(gone));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
	CHECK(cuCtxSynchronize()); /* the first context is current again */
}

static void out_of_memory(void)
{
	size_t free_bytes, total;
	CUdeviceptr p, q;

	(void)start_alone("poke");
	CHECK(cuMemGetInfo(&free_bytes, &total));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, total + 1));
	CHECK(cuMemAlloc(&p, total / 2));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, total * 3 / 4));
	CHECK(cuMemFree(p));
	CHECK(cuMemAlloc(&q, total * 3 / 4));
}

/* An attribute is 1 if and only if its functions work. */
static void attributes(void)
{
	static const int no[] = {88, 91, 132};
	CUdeviceptr p;
	void *host;
	int value;

	(void)demo_start("poke");
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
		CHECK(cuDeviceGetAttribute(&value, no[i], 0));
		EXPECT(value == 0);
	}
	static const int yes[] = {19, 41, 83, 89, 102, 103, 125};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		CHECK(cuDeviceGetAttribute(&value, yes[i], 0));
		EXPECT(value == 1);
	}
	CHECK(cuMemAllocManaged(&p, 4096, 1));
	CHECK(cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, 4096, 0, 0, 0));
	CUtensorMap map;
	const cuuint64_t dims[] = {16, 16}, strides[] = {64};
	const cuuint32_t box[] = {8, 8}, steps[] = {1, 1};
	CHECK(cuMemAlloc(&p, 4096));
	CHECK(cuDeviceGetAttribute(&value, 127, 0));
	GIVES(value ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
	      cuTensorMapEncodeTiled(&map, 7, 2, (void *)(uintptr_t)p, dims, strides, box, steps, 0, 0, 0, 0));
	CHECK(cuMemFree(p));
	CHECK(cuMemHostAlloc(&host, 4096, 0));
	CHECK(cuMemHostGetDevicePointer(&p, host, 0));
	EXPECT(p == (uintptr_t)host);
	unsigned int type = 0;
	CHECK(cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)host));
	EXPECT(type == CU_MEMORYTYPE_HOST);
	CHECK(cuMemAlloc(&p, 4096));
	CHECK(cuPointerGetAttribute(&type, 2, p + 4095));
	EXPECT(type == CU_MEMORYTYPE_DEVICE);
	CHECK(cuMemcpy(p, (CUdeviceptr)(uintptr_t)host, 4096)); /* the addresses determine the direction */
	CHECK(cuDeviceGetAttribute(&value, 99, 0)); /* HOST_REGISTER_SUPPORTED */
	EXPECT(value == 1);
	CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	EXPECT(value > 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, 0, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, 16, 1));
}

/* An illegal address is an error of this process, and the context keeps it. */
static void illegal_address(void)
{
	CUfunction f = demo_start("poke");
	CUdeviceptr wild = 0x10;
	unsigned int v = 1;
	void *params[] = {&wild, &v};

	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

/* Calls that use objects created while the context fails return the context's error, and not
 * that the object is unknown. */
static void made_at_fault(void)
{
	CUdeviceptr wild = 0x10;
	unsigned int v = 1;
	void *params[] = {&wild, &v};

	for (int i = 0; i < 40; i++) {
		CUfunction f = demo_start("poke");
		CUstream stream, s;
		CUresult r;
		CUevent e;

		CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		do {
			if (i % 2) {
				if (!(r = cuStreamCreate(&s, CU_STREAM_NON_BLOCKING)) && !(r = cuStreamQuery(s)))
					r = cuStreamDestroy(s);
			} else if (!(r = cuEventCreate(&e, 0)) && !(r = cuEventRecord(e, stream)) && !(r = cuEventQuery(e))) {
				r = cuEventDestroy(e);
			}
		} while (r == 0 || r == CUDA_ERROR_NOT_READY);
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, r);
	}
}

/* After a fault, all calls of the context return its error, including those that wait for
 * nothing: launches, events, small copies. Another context continues to work. */
static void after_fault(void)
{
	CUfunction f = demo_start("poke"), g;
	CUdeviceptr wild = 0x10, d;
	CUcontext failed, other;
	CUevent recorded, fresh;
	CUstream stream, new;
	CUmodule m;
	unsigned int v = 1;
	void *params[] = {&wild, &v}, *host;

	CHECK(cuCtxGetCurrent(&failed));
	CHECK(cuMemAlloc_v2(&d, 4096));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&recorded, 0));
	CHECK(cuEventCreate(&fresh, 0));
	CHECK(cuEventRecord(recorded, stream));
	CHECK(cuCtxCreate_v2(&other, 0, 0));
	CHECK(cuModuleLoadData(&m, kernels_ptx));
	CHECK(cuModuleGetFunction(&g, m, "poke"));
	CHECK(cuCtxSetCurrent(failed));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	params[0] = &d;
	for (int again = 0; again < 2; again++) {
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyHtoD_v2(d, &v, sizeof v));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyHtoDAsync_v2(d, &v, sizeof v, stream));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH_v2(&v, d, sizeof v));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoD_v2(d, d + 1024, 64));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemsetD8_v2(d, 0, 16));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventRecord(fresh, NULL));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventRecord(fresh, stream));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventQuery(fresh));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventQuery(recorded));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventSynchronize(recorded));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamWaitEvent(stream, recorded, 0));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(stream));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventCreate(&recorded, 0));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamCreate(&new, 0));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&d, 16));
		GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAllocHost_v2(&host, 16));
	}
	CHECK(cuEventDestroy_v2(fresh));
	CHECK(cuCtxSetCurrent(other));
	CHECK(cuMemAlloc_v2(&d, 16));
	CHECK(cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH_v2(&v, d, sizeof v));
	CHECK(cuCtxSynchronize());
}

static void forks(void)
{
	CUdeviceptr p;
	int status;
	pid_t child;

	(void)demo_start("poke");
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 77, 1));
	if ((child = fork()) == 0) {
		unsigned int got = 0;
		CUdeviceptr q;

		GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemcpyDtoH(&got, p, 4));
		(void)demo_start("poke"); /* this process opens its own session */
		CHECK(cuMemAlloc(&q, 1 << 20));
		CHECK(cuMemsetD32(q, 5, 1));
		CHECK(cuMemcpyDtoH(&got, q, 4));
		EXPECT(got == 5);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	CHECK(cuMemcpyDtoH(&status, p, 4));
	EXPECT(status == 77);
}

/* The version can be queried before cuInit. Afterwards the process, and its child, can still
 * call cuInit. */
static void early_version(void)
{
	int early = 0, late = 0, n, status;
	pid_t child;

	CHECK(cuDriverGetVersion(&early));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
	if ((child = fork()) == 0) {
		GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
		CHECK(cuDriverGetVersion(&late));
		EXPECT(late == early);
		(void)demo_start("poke");
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	(void)demo_start("poke");
	CHECK(cuDriverGetVersion(&late));
	EXPECT(late == early && early >= 11000);
}

/* The test kills the worker when it reads "ready". */
static void dead_worker(void)
{
	CUdeviceptr p;
	char line[8];

	(void)demo_start("poke");
	CHECK(cuMemAlloc(&p, 4));
	puts("ready");
	fflush(stdout);
	EXPECT(fgets(line, sizeof line, stdin) != NULL);
	GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuCtxSynchronize());
	GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemFree(p));
}

#undef cuGetProcAddress /* both forms */
static void proc_address(void)
{
	void *f = &f;
	int query = -1;

	CHECK(cuGetProcAddress_v2("cuMemAlloc", &f, 12000, 0, &query));
	EXPECT(f == (void *)cuMemAlloc_v2 && query == 0);
	CHECK(cuGetProcAddress_v2("cuMemcpyHtoD", &f, 12000, 2, &query));
	EXPECT(f == (void *)cuMemcpyHtoD_v2_ptds);
	CHECK(cuGetProcAddress_v2("cuLaunchKernel", &f, 12000, 2, &query));
	EXPECT(f == (void *)cuLaunchKernel_ptsz);
	CHECK(cuGetProcAddress_v2("cuMemcpyBatchAsync", &f, 12090, 0, &query));
	EXPECT(f == (void *)cuMemcpyBatchAsync && query == 0);
	CHECK(cuGetProcAddress_v2("cuMemcpyBatchAsync", &f, 13000, 2, &query));
	EXPECT(f == (void *)cuMemcpyBatchAsync_v2_ptsz && query == 0);
	CHECK(cuGetProcAddress_v2("cuMemcpyBatchAsync", &f, 12060, 0, &query));
	EXPECT(f == NULL && query == 2);
	CHECK(cuGetProcAddress_v2("cuNoSuchThing", &f, 12000, 0, &query));
	EXPECT(f == NULL && query == 1);
	CHECK(cuGetProcAddress_v2("cuLibraryLoadData", &f, 11000, 0, &query));
	EXPECT(f == NULL && query == 2);
	f = &query;
	GIVES(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNoSuchThing", &f, 12000, 0));
	EXPECT(f == &query);
	CHECK(cuGetProcAddress("cuGetProcAddress", &f, 11030, 0));
	EXPECT(f == (void *)(cuGetProcAddress));
}

static const struct test tests[] = {
	{"threads", threads}, {"copies", copies}, {"events", events}, {"globals", globals}, {"library", library},
	{"bad_handles", bad_handles}, {"out_of_memory", out_of_memory}, {"attributes", attributes},
	{"illegal_address", illegal_address}, {"made_at_fault", made_at_fault}, {"after_fault", after_fault}, {"forks", forks}, {"early_version", early_version}, {"dead_worker", dead_worker}, {"proc_address", proc_address},
	{NULL, NULL},
};

static const struct test *const all[] = {tests, work_tests, cluster_tests, robust_tests, window_tests, pool_tests, kept_tests, host_tests, stream_tests, value_tests, graph_tests, graph_memory_tests, graph_condition_tests, capture_tests, export_table_tests, every_function_tests, good_tests,
	good_graph_tests, library_tests, managed_tests, link_tests, kernel_tests, printf_tests, texture_tests, batch_tests, peer_tests, mapping_tests, ipc_tests, reference_tests, coredump_tests, green_tests};

/* Reports whether a test waits until the Go test has done something to its worker. */
static bool needs_go_test(const char *name)
{
	static const char *const names[] = {"dead_worker", "stopped_worker", "dead_worker_full", "printf_killed"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Prints the names of all other tests. */
static int list(void)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct test *t = all[i]; t->name; t++)
			if (!needs_go_test(t->name))
				puts(t->name);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	for (size_t i = 0; argc > 1 && i < sizeof all / sizeof all[0]; i++) {
		for (const struct test *t = all[i]; t->name; t++) {
			if (strcmp(t->name, argv[1]) == 0) {
				t->run();
				puts("ok");
				return 0;
			}
		}
	}
	fprintf(stderr, "usage: api TEST, or list\n");
	return 2;
}
