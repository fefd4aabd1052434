/* Tests of host memory that the device uses in place: pinned and managed. */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "api.h"

/* Both versions are called here. */
#undef cuMemAdvise
#undef cuMemPrefetchAsync

#define N 5000

static CUdeviceptr device_pointer(void *p)
{
	CUdeviceptr d = 0;

	CHECK(cuMemHostGetDevicePointer(&d, p, 0));
	EXPECT(d == (uintptr_t)p);
	return d;
}

static void poke(CUfunction f, CUdeviceptr p, unsigned int value)
{
	void *params[] = {&p, &value};

	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

static bool pointer_is(CUdeviceptr p, int attribute, unsigned long long want, size_t size)
{
	unsigned long long value = 0;

	CHECK(cuPointerGetAttribute(&value, attribute, p));
	return memcmp(&value, &want, size) == 0;
}

/* Adds vectors on the device, in memory that the host reads and writes. */
static void add(float *a, float *b, float *c)
{
	CUmodule module;
	CUfunction f;
	unsigned int n = N;
	CUdeviceptr p[3] = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)c};
	void *params[] = {&p[0], &p[1], &p[2], &n};

	CHECK(cuModuleLoadData(&module, kernels_ptx));
	CHECK(cuModuleGetFunction(&f, module, "vecadd"));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			a[i] = (float)(i * round);
			b[i] = (float)i;
		}
		CHECK(cuLaunchKernel(f, (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
		CHECK(cuCtxSynchronize());
		for (int i = 0; i < N; i++)
			EXPECT(c[i] == (float)(i * (round + 1)));
	}
	CHECK(cuModuleUnload(module));
}

/* Copies of every form between pinned, ordinary and device memory. */
static void copies(unsigned char *pinned)
{
	static unsigned char mine[100000], back[100000];
	CUdeviceptr h = (uintptr_t)pinned, d;
	CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = mine, .srcPitch = 100,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = h, .dstPitch = 200, .WidthInBytes = 100, .Height = 50};

	for (size_t i = 0; i < sizeof mine; i++)
		mine[i] = (unsigned char)(i * 17 + 3);
	CHECK(cuMemAlloc(&d, sizeof mine));
	/* Uses pinned memory as device memory. Synchronous calls are done when they return. */
	CHECK(cuMemcpyHtoD(h, mine, 40));
	EXPECT(memcmp(pinned, mine, 40) == 0);
	CHECK(cuMemcpyHtoD(h, mine, 30000));
	EXPECT(memcmp(pinned, mine, 30000) == 0);
	CHECK(cuMemcpyDtoH(back, h, 30000));
	EXPECT(memcmp(back, mine, 30000) == 0);
	CHECK(cuMemcpyHtoD(d, mine, sizeof mine));
	memset(pinned, 0, sizeof mine);
	CHECK(cuMemcpyDtoD(h, d, sizeof mine));
	EXPECT(memcmp(pinned, mine, sizeof mine) == 0);
	CHECK(cuMemsetD8(h + 10, 0xaa, 5));
	EXPECT(pinned[9] == mine[9] && pinned[10] == 0xaa && pinned[14] == 0xaa && pinned[15] == mine[15]);
	/* Uses it as host memory. */
	CHECK(cuMemsetD8(d, 0, sizeof mine));
	CHECK(cuMemcpyHtoD(d, pinned, sizeof mine));
	CHECK(cuMemcpyDtoH(back, d, sizeof mine));
	EXPECT(memcmp(back, pinned, sizeof mine) == 0);
	memset(pinned, 1, sizeof mine);
	CHECK(cuMemcpyDtoH(pinned, d, sizeof mine));
	EXPECT(memcmp(back, pinned, sizeof mine) == 0);
	/* The direction depends on the addresses; both sides are in pinned memory. */
	CHECK(cuMemcpy(h, (uintptr_t)mine, sizeof mine));
	CHECK(cuMemcpy(h + sizeof mine, h, sizeof mine));
	EXPECT(memcmp(pinned + sizeof mine, mine, sizeof mine) == 0);
	CHECK(cuMemcpy((uintptr_t)back, h + sizeof mine, 100));
	EXPECT(memcmp(back, mine, 100) == 0);
	CHECK(cuMemcpy2D(&box));
	EXPECT(memcmp(pinned + 200 * 49, mine + 100 * 49, 100) == 0);
	CHECK(cuMemFree(d));
}

/* A kernel writes to host memory, and the host reads it without a copy. All functions of the
 * API accept the pointer. */
static void host_in_place(void)
{
	const size_t size = 1 << 20;
	CUfunction f = demo_start("poke");
	unsigned int *p, flags;
	float *v[3];
	CUdeviceptr base;
	size_t n;

	CHECK(cuMemHostAlloc((void **)&p, size, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
	EXPECT(p[0] == 0 && p[size / 4 - 1] == 0);
	poke(f, device_pointer(p), 12345);
	poke(f, device_pointer(p + size / 4 - 1), 54321);
	CHECK(cuCtxSynchronize());
	EXPECT(p[0] == 12345 && p[1] == 0 && p[size / 4 - 1] == 54321);
	copies((unsigned char *)p);
	for (int i = 0; i < 3; i++)
		CHECK(cuMemAllocHost((void **)&v[i], N * sizeof(float)));
	add(v[0], v[1], v[2]);
	add(v[2], v[0], v[1]);
	CHECK(cuMemHostGetFlags(&flags, p));
	EXPECT(flags == (CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
	CHECK(cuMemGetAddressRange(&base, &n, (uintptr_t)p + 100));
	EXPECT(base == (uintptr_t)p && n == size);
	base = (uintptr_t)p + 8;
	EXPECT(pointer_is(base, 2, CU_MEMORYTYPE_HOST, 4) && pointer_is(base, 3, base, 8) && pointer_is(base, 4, base, 8));
	EXPECT(pointer_is(base, 8, 0, 1) && pointer_is(base, 9, 0, 4) && pointer_is(base, 13, 1, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&base, (char *)p + size, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&base, p, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8((uintptr_t)p + size - 4, 0, 8));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree((uintptr_t)p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((char *)p + 4096));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(p, 4096, 0));
	CHECK(cuMemFreeHost(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8((uintptr_t)p, 0, 8));
	for (int i = 0; i < 3; i++)
		CHECK(cuMemFreeHost(v[i]));
}

/* Managed memory, which host and device share. */
static void managed(void)
{
	CUfunction f = demo_start("poke");
	CUdeviceptr p, v[3];
	CUstream stream;
	unsigned int *word;

	CHECK(cuMemAllocManaged(&p, 1 << 20, CU_MEM_ATTACH_GLOBAL));
	word = (unsigned int *)(uintptr_t)p;
	EXPECT(*word == 0);
	poke(f, p, 77);
	CHECK(cuCtxSynchronize());
	EXPECT(*word == 77);
	copies((unsigned char *)word);
	EXPECT(pointer_is(p, 2, CU_MEMORYTYPE_DEVICE, 4) && pointer_is(p, 8, 1, 1) && pointer_is(p, 3, p, 8) && pointer_is(p, 4, p, 8));
	for (int i = 0; i < 3; i++)
		CHECK(cuMemAllocManaged(&v[i], N * sizeof(float), CU_MEM_ATTACH_HOST));
	add((float *)(uintptr_t)v[0], (float *)(uintptr_t)v[1], (float *)(uintptr_t)v[2]);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_SINGLE));
	CHECK(cuStreamAttachMemAsync(NULL, p, 1 << 20, CU_MEM_ATTACH_GLOBAL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, p, 4096, CU_MEM_ATTACH_GLOBAL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, p + 4096, 0, CU_MEM_ATTACH_GLOBAL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 4096, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(word));
	CHECK(cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
	for (int i = 0; i < 3; i++)
		CHECK(cuMemFree(v[i]));
}

static int range_attribute(CUdeviceptr p, size_t n, int attribute)
{
	int value = 12345;

	CHECK(cuMemRangeGetAttribute(&value, sizeof value, attribute, p, n));
	return value;
}

/* Advice is stored per page: a query of a range returns what all its pages have in common. */
static void advice(void)
{
	const size_t page = 4096, size = 10 * page;
	CUmemLocation cpu = {CU_MEM_LOCATION_TYPE_HOST, 0};
	int by[3], one, which[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
	void *data[2] = {&one, by};
	size_t sizes[2] = {sizeof one, sizeof by};
	CUdeviceptr p, device;

	(void)demo_start("poke");
	CHECK(cuMemAllocManaged(&p, size, CU_MEM_ATTACH_GLOBAL));
	EXPECT(range_attribute(p, size, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	EXPECT(range_attribute(p, size, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
	EXPECT(range_attribute(p, size, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
	CHECK(cuMemAdvise(p + 2 * page, 4 * page, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	EXPECT(range_attribute(p + 2 * page, 4 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
	EXPECT(range_attribute(p + 3 * page, 10, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
	EXPECT(range_attribute(p + 2 * page, 5 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	EXPECT(range_attribute(p, 3 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	CHECK(cuMemAdvise(p + 3 * page, page, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
	EXPECT(range_attribute(p + 2 * page, 4 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	EXPECT(range_attribute(p + 4 * page, 2 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
	CHECK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
	CHECK(cuMemAdvise_v2(p, page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, cpu));
	EXPECT(range_attribute(p + page, size - page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == 0);
	EXPECT(range_attribute(p, page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
	EXPECT(range_attribute(p, size, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
	CHECK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
	CHECK(cuMemAdvise(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
	CHECK(cuMemRangeGetAttributes(data, sizes, which, 2, p + 4 * page, page));
	EXPECT(one == 1 && by[0] == 0 && by[1] == CU_DEVICE_CPU && by[2] == CU_DEVICE_INVALID);
	CHECK(cuMemPrefetchAsync(p, size, 0, NULL));
	CHECK(cuMemPrefetchAsync_v2(p + page, page, cpu, 0, CU_STREAM_PER_THREAD));
	EXPECT(range_attribute(p, page, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
	EXPECT(range_attribute(p + page, page, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_CPU);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(p, size, 7, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(p + page, size, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(p, size, 3, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&one, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, page));
	CHECK(cuMemAlloc(&device, page));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(device, page, 0, NULL));
	CHECK(cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(p, page, 0, NULL));
}

/* Memory is freed while kernels add to it: the call waits for them. */
static void host_free_in_use(void)
{
	CUfunction f = demo_start("count");
	unsigned int rounds = 20000;
	CUdeviceptr p;
	void *params[] = {&p, &rounds};

	for (int i = 0; i < 6; i++) {
		void *host = NULL;

		if (i % 2)
			CHECK(cuMemAllocManaged(&p, 8192, CU_MEM_ATTACH_GLOBAL));
		else
			CHECK(cuMemHostAlloc(&host, 8192, CU_MEMHOSTALLOC_DEVICEMAP));
		if (host)
			p = (uintptr_t)host;
		CHECK(cuLaunchKernel(f, 4, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
		if (host)
			CHECK(cuMemFreeHost(host));
		else
			CHECK(cuMemFree(p));
		GIVES(0, cuStreamQuery(NULL)); /* nothing runs any more */
		CHECK(cuCtxSynchronize());
	}
}

/* Frees and large copies return at once only if no work is running: earlier launches are done
 * when they return, and the program may change a copy's source. */
static void waits_for_work(void)
{
	enum { BYTES = 1 << 20 };
	CUfunction f = demo_start("count");
	unsigned int rounds = 20000;
	unsigned char *bytes = malloc(BYTES), *back = malloc(BYTES);
	void *host;
	CUdeviceptr p, d, other;
	void *params[] = {&p, &rounds};

	CHECK(cuMemHostAlloc(&host, 8192, CU_MEMHOSTALLOC_DEVICEMAP));
	p = (uintptr_t)host;
	CHECK(cuMemAlloc(&d, BYTES));
	for (int i = 0; i < 8; i++) {
		CHECK(cuMemAlloc(&other, 4096));
		if (i % 4 < 2)
			CHECK(cuCtxSynchronize());
		else
			CHECK(cuStreamSynchronize(NULL));
		memset(bytes, i, BYTES);
		CHECK(cuMemcpyHtoD(d, bytes, BYTES)); /* nothing is under way */
		memset(bytes, 0xee, BYTES);
		CHECK(cuLaunchKernel(f, 4, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
		if (i % 2)
			CHECK(cuMemFree(other));
		else
			CHECK(cuMemcpyHtoD(d + BYTES / 2, bytes, BYTES / 2));
		GIVES(0, cuStreamQuery(NULL)); /* nothing runs any more */
		if (i % 2 == 0)
			CHECK(cuMemFree(other));
		CHECK(cuMemcpyDtoH(back, d, BYTES));
		for (int k = 0; k < BYTES; k++)
			if (back[k] != (i % 2 || k < BYTES / 2 ? i : 0xee)) {
				EXPECT(!"the bytes that were copied");
				break;
			}
	}
	CHECK(cuMemFree(d));
	CHECK(cuMemFreeHost(host));
	free(bytes);
	free(back);
}

/* If all regions are in use, pinned memory is ordinary memory, and allocations that the device
 * must be able to access fail, until some memory is freed. */
static void host_limits(void)
{
	enum { MANY = 1100 };
	static void *p[MANY];
	unsigned int mapped = 0;
	CUdeviceptr d, m;
	void *q;

	(void)demo_start("poke");
	CHECK(cuMemAlloc(&d, 8192));
	for (int i = 0; i < MANY; i++) {
		CHECK(cuMemHostAlloc(&p[i], 8192, 0));
		mapped += cuMemHostGetDevicePointer(&m, p[i], 0) == 0;
	}
	EXPECT(mapped > 500 && mapped < MANY);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&q, 8192, CU_MEMHOSTALLOC_DEVICEMAP));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&m, 8192, CU_MEM_ATTACH_GLOBAL));
	for (int i = 0; i < MANY; i += 50) {
		memset(p[i], i, 8192);
		CHECK(cuMemcpyHtoD(d, p[i], 8192));
		memset(p[i], 0, 8192);
		CHECK(cuMemcpyDtoH(p[i], d, 8192));
	}
	CHECK(cuMemFreeHost(p[7]));
	CHECK(cuMemHostAlloc(&p[7], 8192, CU_MEMHOSTALLOC_DEVICEMAP));
	for (int i = 0; i < MANY; i++)
		CHECK(cuMemFreeHost(p[i]));
	CHECK(cuMemAllocManaged(&m, 8192, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuMemFree(m));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&m, 1ull << 40, CU_MEM_ATTACH_GLOBAL));
}

/* Addresses are used again, and then refer to the new memory. The window is small, so that this
 * happens soon. */
static void host_again(void)
{
	CUfunction f;
	unsigned int *p, *kept;

	EXPECT(setenv("BASALT_VERBOSE", "1", 1) == 0);
	f = demo_start("poke");
	CHECK(cuMemAllocHost((void **)&kept, 4096));
	for (unsigned int i = 1; i < 400; i++) {
		CHECK(cuMemAllocHost((void **)&p, (size_t)3 << 30));
		EXPECT(p[0] == 0 && p[5000] == 0);
		poke(f, device_pointer(p), i);
		poke(f, device_pointer(kept), i);
		p[5000] = i;
		CHECK(cuCtxSynchronize());
		EXPECT(p[0] == i && *kept == i);
		CHECK(cuMemFreeHost(p));
	}
}

/* Every context can use the memory, including one that was created later. */
static void host_contexts(void)
{
	CUfunction f = demo_start("poke"), g;
	unsigned int *p;
	CUcontext first, second;
	CUmodule module;

	CHECK(cuCtxGetCurrent(&first));
	CHECK(cuMemAllocHost((void **)&p, 4096));
	CHECK(cuCtxCreate(&second, 0, 0));
	CHECK(cuModuleLoadData(&module, kernels_ptx));
	CHECK(cuModuleGetFunction(&g, module, "poke"));
	poke(g, (uintptr_t)(p + 1), 2);
	CHECK(cuCtxSynchronize());
	CHECK(cuCtxSetCurrent(first));
	poke(f, (uintptr_t)p, 1);
	CHECK(cuCtxSynchronize());
	EXPECT(p[0] == 1 && p[1] == 2);
	CHECK(cuCtxDestroy(second));
	poke(f, (uintptr_t)p, 3);
	CHECK(cuCtxSynchronize());
	EXPECT(p[0] == 3);
	CHECK(cuMemFreeHost(p));
}

/* A child shares its parent's pinned memory like other shared memory, and has its own
 * device. */
static void host_forks(void)
{
	CUfunction f = demo_start("poke");
	unsigned int *p, *q;
	int status;
	pid_t child;

	CHECK(cuMemAllocHost((void **)&p, 4096));
	*p = 5;
	if ((child = fork()) == 0) {
		EXPECT(*p == 5);
		f = demo_start("poke");
		CHECK(cuMemAllocHost((void **)&q, 4096));
		EXPECT(p != q && *q == 0);
		poke(f, device_pointer(q), 6);
		CHECK(cuCtxSynchronize());
		EXPECT(*q == 6 && *p == 5);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	poke(f, device_pointer(p), 7);
	CHECK(cuCtxSynchronize());
	EXPECT(*p == 7);
}

static CUcontext shared_context;

/* Registered memory of the program is copied, wherever it is. */
static void host_registered(void)
{
	static unsigned char mine[100000], back[100000];
	CUdeviceptr d;

	(void)demo_start("poke");
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister(mine, sizeof mine, 4)); /* I/O memory */
	CHECK(cuMemHostRegister(mine, sizeof mine, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	EXPECT(pointer_is((uintptr_t)mine, 2, CU_MEMORYTYPE_HOST, 4) && pointer_is((uintptr_t)mine, 13, 0, 1));
	memset(mine, 0x5a, sizeof mine);
	CHECK(cuMemAlloc(&d, sizeof mine));
	CHECK(cuMemcpyHtoDAsync(d, mine, sizeof mine, NULL));
	CHECK(cuMemcpyDtoH(back, d, sizeof mine));
	EXPECT(memcmp(mine, back, sizeof mine) == 0);
	CHECK(cuMemHostUnregister(mine));
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(mine));
}

/* Reports whether this kernel lets a process protect its pages while they are replaced, which a
 * device address of registered memory needs. */
static bool replaces_pages(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */), can;

	CHECK(cuDeviceGetAttribute(&can, 91, 0)); /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
	EXPECT(can == 0);
	if (fd < 0) {
		printf("userfaultfd is not permitted: not tested\n");
		return false;
	}
	EXPECT(close(fd) == 0);
	return true;
}

static unsigned char *pages(size_t n)
{
	unsigned char *p = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

/* Registers memory and returns its address on the device. */
static CUdeviceptr registered(void *p, size_t size)
{
	CUdeviceptr d, again;

	CHECK(cuMemHostRegister(p, size, CU_MEMHOSTREGISTER_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&d, p, 0));
	CHECK(cuMemHostGetDevicePointer(&again, (char *)p + size - 1, 0));
	EXPECT(d != (uintptr_t)p && again == d + size - 1);
	return d;
}

/* The device's work and the program use registered memory in place, at different addresses. */
static void host_registered_mapped(void)
{
	enum { SIZE = 9000 };
	CUfunction f = demo_start("poke");
	unsigned char *p, *at, back[SIZE];
	unsigned int *word, flags;
	CUdeviceptr d, other;

	if (!replaces_pages())
		return;
	p = pages(4);
	memset(p, 0x11, 4 * 4096);
	at = p + 100;
	word = (unsigned int *)(void *)(at + 8192);
	d = registered(at, SIZE);
	EXPECT(p[0] == 0x11 && at[SIZE] == 0x11 && p[4 * 4096 - 1] == 0x11);
	poke(f, d + 8192, 12345);
	CHECK(cuCtxSynchronize());
	EXPECT(*word == 12345 && at[8191] == 0x11 && at[8196] == 0x11);
	memset(at, 0x22, SIZE);
	CHECK(cuMemcpyDtoH(back, d, SIZE)); /* the device sees what the program has written */
	EXPECT(memcmp(back, at, SIZE) == 0);
	memset(back, 0x33, SIZE);
	CHECK(cuMemcpyHtoD(d, back, SIZE));
	EXPECT(memcmp(back, at, SIZE) == 0 && at[-1] == 0x11 && at[SIZE] == 0x11);
	CHECK(cuMemsetD8(d + 1, 0x44, 7));
	EXPECT(at[0] == 0x33 && at[1] == 0x44 && at[7] == 0x44 && at[8] == 0x33);
	other = (uintptr_t)at + 16;
	EXPECT(pointer_is(other, 2, CU_MEMORYTYPE_HOST, 4) && pointer_is(other, 3, d + 16, 8) && pointer_is(other, 4, other, 8) && pointer_is(other, 13, 1, 1));
	EXPECT(pointer_is(d + 16, 2, CU_MEMORYTYPE_HOST, 4) && pointer_is(d + 16, 3, d + 16, 8) && pointer_is(d + 16, 4, other, 8) && pointer_is(d + 16, 13, 1, 1));
	CHECK(cuMemHostGetFlags(&flags, at));
	EXPECT(flags == CU_MEMHOSTREGISTER_DEVICEMAP);
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister((void *)(uintptr_t)d));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)d));
	CHECK(cuMemHostUnregister(at));
	EXPECT(*word == 0x33333333);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(d, 0, 8));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&other, at, 0));
	EXPECT(registered(at, SIZE) == d); /* the same pages again */
	CHECK(cuMemHostUnregister(at));
	d = registered(p, 4 * 4096); /* others with them */
	poke(f, d + 3 * 4096, 77);
	CHECK(cuCtxSynchronize());
	EXPECT(*(unsigned int *)(void *)(p + 3 * 4096) == 77 && *word == 0x33333333 && p[0] == 0x11);
	CHECK(cuMemHostUnregister(p));
	EXPECT(munmap(p, 4 * 4096) == 0);
}

/* Two buffers in one page, memory that cannot be shared with the device, and memory that is
 * gone. Copies work all the same. */
static void host_registered_refused(void)
{
	unsigned char *p, *shared;
	CUdeviceptr d;
	int fd;

	(void)demo_start("poke");
	if (!replaces_pages())
		return;
	p = pages(3);
	(void)registered(p, 4096 + 64);
	CHECK(cuMemHostRegister(p + 8000, 4096, 0)); /* its first page is in use */
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&d, p + 8000, 0));
	CHECK(cuMemHostRegister(p + 5000, 100, 0)); /* both of its addresses are in one region */
	CHECK(cuMemHostGetDevicePointer(&d, p + 5000, 0));
	CHECK(cuMemHostUnregister(p));
	CHECK(cuMemsetD8(d, 9, 100));
	EXPECT(p[4999] == 0 && p[5000] == 9 && p[5099] == 9 && p[5100] == 0);
	CHECK(cuMemHostUnregister(p + 5000));
	CHECK(cuMemHostGetDevicePointer(&d, p + 8000, 0));
	CHECK(cuMemHostUnregister(p + 8000));
	EXPECT((fd = memfd_create("shared", MFD_CLOEXEC)) >= 0 && ftruncate(fd, 4096) == 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(cuMemHostRegister(shared, 4096, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&d, shared, 0));
	CHECK(cuMemHostUnregister(shared));
	CHECK(cuMemHostRegister(p, 4096, 0));
	EXPECT(munmap(p, 3 * 4096) == 0);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&d, p, 0));
	CHECK(cuMemHostUnregister(p));
}

/* Uses a variable of this function's frame on the device, at a depth of the stack. */
static void on_stack(CUfunction f, unsigned int depth)
{
	volatile unsigned int around[300], word = depth;
	CUdeviceptr d;

	for (unsigned int i = 0; i < 300; i++)
		around[i] = i + depth;
	d = registered((void *)(uintptr_t)&word, sizeof word);
	poke(f, d, 1000 + depth);
	CHECK(cuCtxSynchronize());
	EXPECT(word == 1000 + depth);
	if (depth)
		on_stack(f, depth - 1);
	word = 5;
	CHECK(cuMemsetD32(d, 6, 1));
	EXPECT(word == 6);
	CHECK(cuMemHostUnregister((void *)(uintptr_t)&word));
	EXPECT(word == 6);
	for (unsigned int i = 0; i < 300; i++)
		EXPECT(around[i] == i + depth);
}

static void *on_its_stack(void *f)
{
	CUcontext context = shared_context;

	CHECK(cuCtxSetCurrent(context));
	on_stack(f, 6);
	return NULL;
}

/* A child of fork and its parent write to the same places of their stacks. */
static void fork_on_stack(unsigned int depth)
{
	volatile unsigned int around[300];
	int status;
	pid_t child = depth ? -1 : fork();
	unsigned int mine = child ? 1 : 2;

	for (int round = 0; round < 100; round++) {
		for (unsigned int i = 0; i < 300; i++)
			around[i] = mine * i;
		for (unsigned int i = 0; i < 300; i++)
			EXPECT(around[i] == mine * i);
	}
	if (depth)
		fork_on_stack(depth - 1);
	else if (child == 0)
		_exit(0);
	else
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* Registered variables of functions, in the first thread and in others. Each page of a stack is
 * again the process's own when nothing in it is registered. */
static void host_registered_stack(void)
{
	CUfunction f = demo_start("poke");
	pthread_t t[4];

	if (!replaces_pages())
		return;
	on_stack(f, 6);
	fork_on_stack(6);
	on_stack(f, 6);
	CHECK(cuCtxGetCurrent(&shared_context));
	for (int i = 0; i < 4; i++)
		EXPECT(pthread_create(&t[i], NULL, on_its_stack, f) == 0);
	for (int i = 0; i < 4; i++)
		EXPECT(pthread_join(t[i], NULL) == 0);
}

struct beside {
	_Atomic bool over;
	_Atomic unsigned int rounds;
	volatile unsigned int *before, *after; /* words in the first and the last page */
};

static void *count_beside(void *arg)
{
	struct beside *b = arg;

	for (unsigned int n = 1; !atomic_load(&b->over); n++) {
		*b->before = n;
		*b->after = n;
		EXPECT(*b->before == n && *b->after == n);
		atomic_store(&b->rounds, n);
	}
	return NULL;
}

/* Other data in the pages of registered memory is not lost while a thread writes to it. */
static void host_registered_beside(void)
{
	CUfunction f = demo_start("poke");

	if (!replaces_pages())
		return;
	for (unsigned int i = 1; i <= 50; i++) {
		unsigned char *p = pages(2 + i % 30);
		size_t size = (2 + i % 30) * 4096 - 128;
		struct beside b = {.before = (unsigned int *)(void *)p, .after = (unsigned int *)(void *)(p + 64 + size)};
		pthread_t t;
		CUdeviceptr d;

		EXPECT(pthread_create(&t, NULL, count_beside, &b) == 0);
		while (atomic_load(&b.rounds) < 100)
			(void)sched_yield();
		d = registered(p + 64, size);
		poke(f, d, i);
		CHECK(cuCtxSynchronize());
		EXPECT(*(unsigned int *)(void *)(p + 64) == i);
		atomic_store(&b.over, true);
		EXPECT(pthread_join(t, NULL) == 0);
		EXPECT(*b.before == atomic_load(&b.rounds) && *b.after == atomic_load(&b.rounds));
		CHECK(cuMemHostUnregister(p + 64));
		EXPECT(munmap(p, size + 128) == 0);
	}
}

/* A child has its own copy of the program's memory, registered or not. */
static void host_registered_forks(void)
{
	unsigned int *p;
	CUdeviceptr d;
	int status;
	pid_t child;

	(void)demo_start("poke");
	if (!replaces_pages())
		return;
	p = (unsigned int *)(void *)pages(2);
	d = registered(p + 100, 4096);
	p[0] = p[100] = p[2000] = 5;
	if ((child = fork()) == 0) {
		EXPECT(p[0] == 5 && p[100] == 5 && p[2000] == 5);
		p[0] = p[100] = p[2000] = 6;
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	EXPECT(p[0] == 5 && p[100] == 5 && p[2000] == 5);
	CHECK(cuMemsetD32(d, 7, 1));
	EXPECT(p[100] == 7);
	CHECK(cuMemHostUnregister(p + 100));
	if ((child = fork()) == 0) {
		p[0] = p[100] = 6;
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	EXPECT(p[0] == 5 && p[100] == 7);
}

static CUfunction shared_poke;

static void *storm(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;

	CHECK(cuCtxSetCurrent(shared_context));
	for (unsigned int i = 0; i < 60; i++) {
		unsigned int *p, *q, value = me * 1000 + i;
		CUdeviceptr m;

		CHECK(cuMemAllocHost((void **)&p, 4096 * (1 + i % 7)));
		CHECK(cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL));
		q = (unsigned int *)(uintptr_t)m;
		EXPECT(*p == 0 && *q == 0);
		poke(shared_poke, device_pointer(p), value);
		poke(shared_poke, m, value);
		CHECK(cuStreamSynchronize(NULL));
		EXPECT(*p == value && *q == value);
		CHECK(cuMemFreeHost(p));
		CHECK(cuMemFree(m));
	}
	return NULL;
}

/* Several threads allocate and free. */
static void host_storm(void)
{
	pthread_t t[4];

	shared_poke = demo_start("poke");
	CHECK(cuCtxGetCurrent(&shared_context));
	for (uintptr_t i = 0; i < 4; i++)
		EXPECT(pthread_create(&t[i], NULL, storm, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		EXPECT(pthread_join(t[i], NULL) == 0);
}

const struct test host_tests[] = {
	{"host_in_place", host_in_place}, {"managed", managed}, {"advice", advice}, {"host_free_in_use", host_free_in_use}, {"waits_for_work", waits_for_work},
	{"host_limits", host_limits}, {"host_again", host_again}, {"host_contexts", host_contexts}, {"host_forks", host_forks},
	{"host_registered", host_registered}, {"host_registered_mapped", host_registered_mapped}, {"host_registered_refused", host_registered_refused},
	{"host_registered_stack", host_registered_stack}, {"host_registered_beside", host_registered_beside}, {"host_registered_forks", host_registered_forks}, {"host_storm", host_storm},
	{NULL, NULL},
};
