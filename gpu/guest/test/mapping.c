/* Tests of virtual memory management. */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "api.h"

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc all_access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3}, no_access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0};
static size_t granule;

/* Starts a test of mapped memory and returns a function of the demo's module. */
static CUfunction mapping_start(const char *name)
{
	CUfunction f = start_alone(name);
	int can;

	CHECK(cuDeviceGetAttribute(&can, 102, 0));
	EXPECT(can == 1);
	CHECK(cuMemGetAllocationGranularity(&granule, &on_device, 0));
	EXPECT(granule && (granule & (granule - 1)) == 0);
	return f;
}

static CUdeviceptr reserve(size_t n)
{
	CUdeviceptr p;

	CHECK(cuMemAddressReserve(&p, n * granule, 0, 0, 0));
	EXPECT(p && p % granule == 0);
	return p;
}

static CUmemGenericAllocationHandle create(size_t n)
{
	CUmemGenericAllocationHandle h;

	CHECK(cuMemCreate(&h, n * granule, &on_device, 0));
	return h;
}

static void map(CUdeviceptr p, size_t n, CUmemGenericAllocationHandle h)
{
	CHECK(cuMemMap(p, n * granule, 0, h, 0));
	CHECK(cuMemSetAccess(p, n * granule, &all_access, 1));
}

/* Growing buffers, as programs use them: a large reservation, and pieces that are mapped one
 * after the other. Kernels and copies use them as one buffer. */
static void mapping_grows(void)
{
	enum { PIECES = 6 };
	CUfunction vecadd = mapping_start("vecadd");
	size_t before = free_bytes();
	CUdeviceptr buffer[3];
	CUmemGenericAllocationHandle h;
	CUstream s;

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++)
		buffer[i] = reserve(4096);
	for (unsigned int pieces = 1; pieces <= PIECES; pieces++) {
		unsigned int n = (unsigned int)(pieces * granule / sizeof(float));
		void *params[] = {&buffer[0], &buffer[1], &buffer[2], &n};
		float got[4];

		for (int i = 0; i < 3; i++) {
			map(buffer[i] + (pieces - 1) * granule, 1, h = create(1));
			CHECK(cuMemRelease(h)); /* the mapping keeps the memory */
		}
		CHECK(cuMemsetD32Async(buffer[0], 0x3f800000, n, s)); /* 1.0 */
		CHECK(cuMemcpyDtoDAsync(buffer[1], buffer[0], n * sizeof(float), s));
		CHECK(cuLaunchKernel(vecadd, n / 256, 1, 1, 256, 1, 1, 0, s, params, NULL));
		CHECK(cuStreamSynchronize(s));
		for (unsigned int k = 0; k < pieces; k++) { /* across the boundaries of pieces */
			size_t at = k ? k * granule - 8 : 0;

			CHECK(cuMemcpyDtoH(got, buffer[2] + at, sizeof got));
			EXPECT(got[0] == 2 && got[1] == 2 && got[2] == 2 && got[3] == 2);
		}
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(buffer[0], 0, n * sizeof(float) + 1));
	}
	EXPECT(free_bytes() == before - 3 * PIECES * granule);
	for (int i = 0; i < 3; i++) {
		CHECK(cuMemUnmap(buffer[i] + (PIECES - 1) * granule, granule)); /* the last one, then the rest */
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(buffer[i], 0, PIECES * granule));
		CHECK(cuMemUnmap(buffer[i], (PIECES - 1) * granule));
		CHECK(cuMemAddressFree(buffer[i], 4096 * granule));
	}
	EXPECT(free_bytes() == before);
}

/* Reports whether nothing is mapped at an address of this process. */
static bool unused(CUdeviceptr at, size_t size)
{
	void *p = mmap((void *)(uintptr_t)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	EXPECT(munmap(p, size) == 0);
	return (uintptr_t)p == at;
}

/* Returns n granules at an address that nothing uses, outside of the session's window. */
static CUdeviceptr requested(size_t n)
{
	static const CUdeviceptr wishes[] = {0x350000000000, 0x250000000000, 0x150000000000, 0x450000000000};
	CUdeviceptr p = 0;

	for (size_t i = 0; i < sizeof wishes / sizeof wishes[0] && p != wishes[i]; i++)
		if (unused(wishes[i], n * granule)) {
			if (p)
				CHECK(cuMemAddressFree(p, n * granule));
			CHECK(cuMemAddressReserve(&p, n * granule, 0, wishes[i], 0));
			if (p == wishes[i])
				return p;
		}
	EXPECT(!"none of the requested addresses was given");
	return 0;
}

/* Addresses that the program requests are used where nothing else is: the program then has no
 * memory of its own there, and kernels and copies use them like others. */
static void mapping_elsewhere(void)
{
	CUfunction vecadd = mapping_start("vecadd");
	CUdeviceptr p = requested(6), other;
	CUmemGenericAllocationHandle h[3];
	unsigned int n = (unsigned int)(granule / sizeof(float));
	CUdeviceptr a = p, b = p + 2 * granule, sum = p + 4 * granule;
	void *params[] = {&a, &b, &sum, &n};
	float got = 0;
	void *mine;

	EXPECT(!unused(p, granule) && !unused(p + 5 * granule, granule));
	for (int i = 0; i < 3; i++)
		map(p + i * 2 * granule, 2, h[i] = create(2));
	CHECK(cuMemsetD32(a, 0x3f800000, n));
	CHECK(cuMemcpy(b, a, granule));
	CHECK(cuLaunchKernel(vecadd, n / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, sum + granule - sizeof got, sizeof got));
	EXPECT(got == 2);
	CHECK(cuMemcpyDtoD(b - 4, a, 8)); /* across adjacent mappings */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p, 0, 6 * granule + 1));
	CHECK(cuMemAddressReserve(&other, granule, 0, p, 0)); /* in use: it is only a wish */
	EXPECT(other != p);
	CHECK(cuMemAddressFree(other, granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 6 * granule));
	for (int i = 0; i < 3; i++)
		CHECK(cuMemRelease(h[i]));
	CHECK(cuMemUnmap(p, 6 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p, 0, 8));
	CHECK(cuMemAddressFree(p, 6 * granule));
	EXPECT(unused(p, 6 * granule));
	mine = mmap((void *)(uintptr_t)p, granule, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	EXPECT((uintptr_t)mine == p);
	CHECK(cuMemAddressReserve(&other, granule, 0, p, 0)); /* the program's own memory stays there */
	EXPECT(other != p && *(const volatile char *)mine == 0);
	CHECK(cuMemAddressFree(other, granule));
	EXPECT(munmap(mine, granule) == 0);
}

static uint64_t attribute(int which, CUdeviceptr p)
{
	uint64_t value = 0;

	CHECK(cuPointerGetAttribute(&value, which, p));
	return value;
}

/* Queries of addresses that are reserved, mapped and accessible. */
static void mapping_told(void)
{
	CUdeviceptr p, base;
	size_t size;
	CUmemGenericAllocationHandle h, again;
	CUmemAllocationProp prop;
	unsigned long long flags;

	(void)mapping_start("poke");
	p = reserve(4);
	EXPECT(attribute(11, p + granule) == p && attribute(12, p) == 4 * granule && attribute(13, p) == 0);
	GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &on_device.location, p));
	h = create(2);
	CHECK(cuMemMap(p + granule, 2 * granule, 0, h, 0));
	CHECK(cuMemGetAccess(&flags, &on_device.location, p + granule));
	EXPECT(flags == 0);
	CHECK(cuMemSetAccess(p + granule, 2 * granule, &all_access, 1));
	CHECK(cuMemGetAccess(&flags, &on_device.location, p + 3 * granule - 1));
	EXPECT(flags == 3 && attribute(16, p + granule) == 3);
	EXPECT(attribute(11, p + 2 * granule) == p && attribute(12, p + granule) == 4 * granule && attribute(13, p + granule) == 1);
	EXPECT(attribute(18, p + 2 * granule) == 2 * granule && attribute(19, p + 2 * granule) == p + granule);
	EXPECT(attribute(2, p + granule) == CU_MEMORYTYPE_DEVICE && attribute(9, p + granule) == 0);
	CHECK(cuMemGetAddressRange(&base, &size, p + 2 * granule));
	EXPECT(base == p + granule && size == 2 * granule);
	CHECK(cuMemGetAllocationPropertiesFromHandle(&prop, h));
	EXPECT(memcmp(&prop, &on_device, sizeof prop) == 0);
	CHECK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + granule + 5)));
	EXPECT(again == h);
	CHECK(cuMemRelease(h));
	CHECK(cuMemGetAllocationPropertiesFromHandle(&prop, h)); /* retained */
	CHECK(cuMemRelease(h));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
	CHECK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + granule))); /* mapped memory still exists */
	CHECK(cuMemUnmap(p + granule, 2 * granule));
	map(p, 2, again);
	CHECK(cuMemUnmap(p, 2 * granule));
	CHECK(cuMemRelease(again));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 2 * granule, 0, again, 0));
	CHECK(cuMemAddressFree(p, 4 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&base, 11, p));
}

/* Memory can be mapped at two addresses. A part of it cannot be mapped, as on a physical GPU. */
static void mapping_twice(void)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr p, q;
	unsigned int got, value = 77;
	CUfunction poke = mapping_start("poke");
	void *params[] = {&q, &value};

	p = reserve(2);
	q = reserve(2);
	h = create(2);
	map(p, 2, h);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(q, granule, 0, h, 0));
	map(q, 2, h);
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 77);
	CHECK(cuMemUnmap(p, 2 * granule));
	CHECK(cuMemsetD32(q, 78, 1));
	map(p, 2, h);
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 78);
}

/* Invalid calls return errors and change nothing. */
static void mapping_refused(void)
{
	CUmemGenericAllocationHandle h, other;
	CUdeviceptr p, q;
	size_t before, free, total;
	CUmemAllocationProp bad;
	CUmemAccessDesc desc;

	(void)mapping_start("poke");
	before = free_bytes();
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(NULL, granule, 0, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, granule / 2, 0, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, granule, 3 * granule, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, granule, 0, 0, 1));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&p, (size_t)1 << 40, 0, 0, 0));
	p = reserve(4);
	CHECK(cuMemAddressReserve(&q, granule, 64 * granule, p, 0)); /* the address hint is in use, so another address is chosen */
	EXPECT(q % (64 * granule) == 0 && (q < p || q >= p + 4 * granule));
	CHECK(cuMemAddressFree(q, granule));

	bad = on_device;
	bad.location.type = CU_MEM_LOCATION_TYPE_HOST;
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&h, granule, &bad, 0));
	bad.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 1};
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&h, granule, &bad, 0));
	bad = on_device;
	bad.requestedHandleTypes = 8; /* fabric */
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&h, granule, &bad, 0));
	bad.requestedHandleTypes = 1; /* a file descriptor: ipc_mapped */
	CHECK(cuMemCreate(&h, granule, &bad, 0));
	CHECK(cuMemRelease(h));
	bad = on_device;
	bad.type = 7;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, granule, &bad, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, granule + 1, &on_device, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, 0, &on_device, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, granule, &on_device, 1));
	CHECK(cuMemGetInfo(&free, &total));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&h, (total / granule + 1) * granule, &on_device, 0));

	h = create(2);
	other = create(1);
	map(p, 2, h);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + granule, granule, 0, other, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 2 * granule, 2 * granule, 0, other, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 2 * granule, granule, granule, h, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 2 * granule + 8, granule, 0, other, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 4 * granule, granule, 0, other, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 2 * granule, granule, 0, other + 1000, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(UINT64_MAX - granule + 1, granule, 0, other, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, 3 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p + 2 * granule, granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 4 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, granule, &all_access, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 2 * granule, &all_access, 0));
	desc = all_access;
	desc.flags = 2;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 2 * granule, &desc, 1));
	desc.location.type = CU_MEM_LOCATION_TYPE_HOST;
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemSetAccess(p, 2 * granule, &desc, 1));
	CHECK(cuMemSetAccess(p, 2 * granule, &no_access, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p, 0, 1));
	CHECK(cuMemSetAccess(p, 2 * granule, &all_access, 1));
	CHECK(cuMemsetD8(p, 0, 2 * granule));
	CHECK(cuMemUnmap(p, 2 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, 2 * granule));
	CHECK(cuMemAddressFree(p, 4 * granule));
	CHECK(cuMemRelease(h));
	CHECK(cuMemRelease(other));
	EXPECT(free_bytes() == before);
}

/* A kernel that accesses memory without access rights is an error of its context. */
static void mapping_fault(void)
{
	CUfunction poke = mapping_start("poke");
	CUdeviceptr p = reserve(2);
	unsigned int value = 1;
	void *params[] = {&p, &value};

	map(p, 1, create(1));
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemSetAccess(p, granule, &no_access, 1));
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemUnmap(p, granule));
}

static CUcontext of_threads;

static void *churn(void *p)
{
	unsigned int me = (unsigned int)(uintptr_t)p, got;

	CHECK(cuCtxSetCurrent(of_threads));
	for (unsigned int i = 0; i < 8; i++) {
		CUdeviceptr at = reserve(2);
		CUmemGenericAllocationHandle h = create(1);

		map(at + granule, 1, h);
		map(at, 1, h);
		CHECK(cuMemsetD32Async(at + granule, me * 100 + i, 1, CU_STREAM_PER_THREAD));
		CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
		CHECK(cuMemcpyDtoH(&got, at, 4));
		EXPECT(got == me * 100 + i);
		CHECK(cuMemRelease(h));
		CHECK(cuMemUnmap(at, 2 * granule));
		CHECK(cuMemAddressFree(at, 2 * granule));
	}
	return NULL;
}

/* Threads map and unmap at the same time. Each reads its own data. */
static void mapping_threads(void)
{
	pthread_t t[64];
	size_t before;

	(void)mapping_start("poke");
	CHECK(cuCtxGetCurrent(&of_threads));
	before = free_bytes();
	for (uintptr_t k = 0; k < 64; k++)
		EXPECT(pthread_create(&t[k], NULL, churn, (void *)k) == 0);
	for (int k = 0; k < 64; k++)
		pthread_join(t[k], NULL);
	EXPECT(free_bytes() == before);
}

/* Mappings are removed with their context and with their program. */
static void mapping_ends(void)
{
	CUcontext c;
	CUdeviceptr p, q;
	size_t before, free, total;
	CUmemGenericAllocationHandle h;
	int status;

	pid_t child = fork();

	EXPECT(child >= 0);
	if (child == 0) {
		(void)mapping_start("poke");
		map(reserve(8), 8, create(8));
		_exit(0); /* exits without freeing anything */
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	(void)mapping_start("poke"); /* waits until all is free */
	before = free_bytes();
	CHECK(cuMemGetInfo(&free, &total));
	CHECK(cuCtxCreate(&c, 0, 0));
	p = reserve(4);
	h = create(4);
	map(p, 4, h);
	CHECK(cuMemRelease(h));
	(void)create(1);
	map(q = reserve(3), 1, h = create(1));
	map(q + granule, 2, create(2));
	CHECK(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)q));
	CHECK(cuCtxDestroy(c));
	EXPECT(free_bytes() == before);
	CHECK(cuMemUnmap(p, 4 * granule)); /* the program may still give up what it had */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, 4 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(q, 2 * granule));
	CHECK(cuMemUnmap(q, 3 * granule));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(q, granule, 0, h, 0));
	CHECK(cuMemRelease(h));
	CHECK(cuMemRelease(h));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
	map(p, 4, create(4)); /* the addresses are still reserved */
	CHECK(cuMemsetD8(p, 1, 4 * granule));
}

/* Sets granule, and returns a mapping of two granules that was made without a context. */
static CUdeviceptr without_context(void)
{
	CUcontext none;
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	unsigned int flags;
	int active;

	CHECK(cuInit(0));
	CHECK(cuMemGetAllocationGranularity(&granule, &on_device, 0));
	p = reserve(2);
	map(p, 2, h = create(2));
	CHECK(cuMemRelease(h));
	CHECK(cuCtxGetCurrent(&none));
	EXPECT(none == NULL);
	CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT(!active);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD8(p, 0, 1));
	return p;
}

/* The current context's kernels and copies use all of the mapping. */
static void poke_both(CUdeviceptr p, unsigned int value)
{
	CUmodule module;
	CUfunction poke;
	CUdeviceptr q = p + 2 * granule - sizeof value;
	void *params[] = {&p, &value}, *last[] = {&q, &value};
	unsigned int got[2] = {0};

	CHECK(cuModuleLoadData(&module, kernels_ptx));
	CHECK(cuModuleGetFunction(&poke, module, "poke"));
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, last, NULL));
	CHECK(cuMemcpyDtoH(&got[0], p, 4));
	CHECK(cuMemcpyDtoH(&got[1], q, 4));
	EXPECT(got[0] == value && got[1] == value);
}

static CUdeviceptr of_thread;

static void *create_in_thread(void *arg)
{
	CUcontext none;

	CHECK(cuCtxGetCurrent(&none));
	EXPECT(none == NULL);
	map(of_thread = reserve(2), 2, create(2));
	return arg;
}

/* Memory needs no context. The contexts that the program creates later, or has in other
 * threads, use it. */
static void mapping_without_context(void)
{
	CUdeviceptr p = without_context();
	CUcontext c, current;
	unsigned int flags, version;
	pthread_t t;

	CHECK(cuCtxCreate(&c, 2 /* CU_CTX_SCHED_YIELD */, 0));
	CHECK(cuCtxGetCurrent(&current));
	CHECK(cuCtxGetFlags(&flags));
	CHECK(cuCtxGetApiVersion(c, &version));
	EXPECT(current == c && flags == 2 && version == 3020);
	poke_both(p, 17);
	EXPECT(pthread_create(&t, NULL, create_in_thread, NULL) == 0);
	EXPECT(pthread_join(t, NULL) == 0);
	poke_both(of_thread, 18);
	CHECK(cuMemUnmap(p, 2 * granule));
	CHECK(cuMemAddressFree(p, 2 * granule));
	CHECK(cuCtxDestroy(c));
}

/* The same with the primary context, and with memory for other processes. */
static void mapping_without_context_primary(void)
{
	CUdeviceptr p = without_context();
	CUmemAllocationProp shared = on_device;
	CUmemGenericAllocationHandle h;
	CUcontext c;
	unsigned int flags;
	int can, fd, active;

	shared.requestedHandleTypes = 1; /* a file descriptor */
	CHECK(cuMemCreate(&h, granule, &shared, 0));
	CHECK(cuDeviceGetAttribute(&can, 103, 0));
	if (can) {
		CHECK(cuMemExportToShareableHandle(&fd, h, 1, 0));
		EXPECT(close(fd) == 0);
	}
	CHECK(cuMemRelease(h));
	CHECK(cuDevicePrimaryCtxRetain(&c, 0));
	CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT(active);
	CHECK(cuCtxSetCurrent(c));
	poke_both(p, 19);
	CHECK(cuDevicePrimaryCtxRelease(0));
}

const struct test mapping_tests[] = {
	{"mapping_grows", mapping_grows}, {"mapping_elsewhere", mapping_elsewhere}, {"mapping_told", mapping_told}, {"mapping_twice", mapping_twice},
	{"mapping_refused", mapping_refused}, {"mapping_fault", mapping_fault}, {"mapping_threads", mapping_threads},
	{"mapping_ends", mapping_ends}, {"mapping_without_context", mapping_without_context}, {"mapping_without_context_primary", mapping_without_context_primary}, {NULL, NULL},
};
