/* Tests of stream-ordered memory and its pools. */
#include <stdbool.h>
#include <stdint.h>

#include "api.h"

static uint64_t attribute(CUmemoryPool pool, int which)
{
	uint64_t v = 0;

	CHECK(cuMemPoolGetAttribute(pool, which, &v));
	return v;
}

/* The reported free memory changes by exactly what the program allocates and frees. */
static void mem_info(void)
{
	size_t before, size = 512;

	(void)start_alone("poke");
	before = free_bytes();
	for (int i = 0; i < 16; i++, size *= 2) {
		CUdeviceptr p, q;

		CHECK(cuMemAlloc(&p, size));
		EXPECT(free_bytes() == before - size);
		CHECK(cuMemAllocAsync(&q, size, NULL));
		EXPECT(free_bytes() == before - 2 * size);
		CHECK(cuMemFree(p));
		EXPECT(free_bytes() == before - size);
		CHECK(cuMemFreeAsync(q, NULL));
		CHECK(cuStreamSynchronize(NULL));
		EXPECT(free_bytes() == before);
	}
	/* Allocates most of the memory, and frees it while no work is running. */
	for (int i = 0; i < 100; i++) {
		CUdeviceptr p;

		CHECK(cuMemAlloc(&p, before / 4 * 3));
		CHECK(cuMemFree(p));
		if (i % 10 == 9)
			EXPECT(free_bytes() == before);
	}
}

/* Frees in an idle stream beside a blocked one do not wait for the blocked one, and the memory
 * is available before that continues. */
static void free_async(void)
{
	CUstream stuck, idle;
	CUdeviceptr flag, p, q;
	size_t before, total;

	(void)start_alone("poke");
	CHECK(cuStreamCreate(&stuck, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&flag, 4));
	CHECK(cuMemsetD32(flag, 0, 1));
	CHECK(cuCtxSynchronize());
	before = free_bytes();
	total = before - (1u << 20);
	CHECK(cuMemAllocAsync(&p, total, idle)); /* the memory that the idle stream has freed is used */
	CHECK(cuStreamWaitValue32(stuck, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	CHECK(cuMemFreeAsync(p, idle));
	CHECK(cuStreamSynchronize(idle));
	EXPECT(free_bytes() == before);
	CHECK(cuMemAllocAsync(&q, total, idle));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stuck));
	CHECK(cuMemFreeAsync(q, stuck)); /* in the blocked stream: freed when the stream reaches this */
	EXPECT(free_bytes() == before - total);
	CHECK(cuStreamWriteValue32(idle, flag, 1, 0));
	CHECK(cuMemAllocAsync(&p, total, idle)); /* waits for that, because there is no other memory */
	CHECK(cuStreamQuery(stuck));
	CHECK(cuMemFree(p));
	EXPECT(free_bytes() == before);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, idle));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(0, idle));
}

static void pool_attributes(CUmemoryPool pool)
{
	int flag = 0;
	uint64_t v = UINT64_MAX;

	for (int which = 1; which <= 3; which++) {
		CHECK(cuMemPoolGetAttribute(pool, which, &flag));
		EXPECT(flag == 1);
		flag = 0;
		CHECK(cuMemPoolSetAttribute(pool, which, &flag));
		CHECK(cuMemPoolGetAttribute(pool, which, &flag));
		EXPECT(flag == 0);
	}
	EXPECT(attribute(pool, 4) == 0);
	CHECK(cuMemPoolSetAttribute(pool, 4, &v));
	EXPECT(attribute(pool, 4) == UINT64_MAX);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, 7, &v));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, 8, &v));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, 9, &v));
	v = 0;
	CHECK(cuMemPoolSetAttribute(pool, 8, &v));
	CHECK(cuMemPoolSetAttribute(pool, 6, &v));
}

static void pool_access(CUmemoryPool pool)
{
	CUmemAccessDesc access = {{1, 0}, 3};
	CUmemLocation here = {1, 0}, elsewhere = {1, 1};
	int flags = 0;

	CHECK(cuMemPoolSetAccess(pool, &access, 1));
	CHECK(cuMemPoolGetAccess(&flags, pool, &here));
	EXPECT(flags == 3);
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPoolGetAccess(&flags, pool, &elsewhere));
	access.flags = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &access, 1));
}

static void pools(void)
{
	CUmemPoolProps props = {.allocType = 1, .location = {1, 0}, .maxSize = 1 << 20};
	CUmemoryPool standard, now, mine, of;
	CUdeviceptr p, q, r;
	int supported = 0;

	demo_start("poke");
	CHECK(cuDeviceGetAttribute(&supported, 115, 0));
	EXPECT(supported == 1);
	CHECK(cuDeviceGetDefaultMemPool(&standard, 0));
	CHECK(cuDeviceGetMemPool(&now, 0));
	EXPECT(standard && standard == now);
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetMemPool(&now, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard));
	CHECK(cuMemPoolCreate(&mine, &props));
	pool_attributes(mine);
	pool_access(mine);

	CHECK(cuMemAllocFromPoolAsync(&p, 1 << 19, mine, NULL));
	CHECK(cuMemAllocAsync(&q, 4096, NULL));
	EXPECT(attribute(mine, 7) == 1 << 19 && attribute(mine, 5) == 1 << 19 && attribute(standard, 7) == 4096);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&r, (1 << 19) + 1, mine, NULL));
	CHECK(cuPointerGetAttribute(&of, 17, p));
	EXPECT(of == mine);
	CHECK(cuMemFreeAsync(p, NULL));
	EXPECT(attribute(mine, 7) == 0 && attribute(mine, 8) == 1 << 19);
	CHECK(cuMemPoolTrimTo(mine, 0));

	CHECK(cuDeviceSetMemPool(0, mine));
	CHECK(cuMemAllocAsync(&p, 4096, NULL));
	EXPECT(attribute(mine, 7) == 4096 && attribute(standard, 7) == 4096);
	CHECK(cuMemPoolDestroy(mine)); /* its allocations stay valid */
	CHECK(cuDeviceGetMemPool(&now, 0));
	EXPECT(now == standard);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&r, 16, mine, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(mine, 0));
	CHECK(cuMemsetD8(p, 1, 4096));
	CHECK(cuMemFree(p));
	CHECK(cuMemFree(q));
	EXPECT(attribute(standard, 7) == 0);
	props.handleTypes = 2; /* a handle of Windows */
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&mine, &props));
	props.handleTypes = 0;
	props.location.id = 1;
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPoolCreate(&mine, &props));
}

/* Memory that is freed with its context is subtracted from the pool. A child begins with empty
 * pools. */
static void pool_ends(void)
{
	CUmemoryPool pool;
	CUcontext context;
	CUdeviceptr p;

	demo_start("poke");
	CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuMemAllocAsync(&p, 4096, NULL));
	EXPECT(attribute(pool, 7) == 4096);
	CHECK(cuCtxDestroy(context));
	EXPECT(attribute(pool, 7) == 0 && attribute(pool, 8) == 4096);
}

const struct test pool_tests[] = {
	{"mem_info", mem_info}, {"free_async", free_async}, {"pools", pools}, {"pool_ends", pool_ends}, {NULL, NULL},
};
