/* Tests of memory that is freed and allocated again without a command. */
#include <stdint.h>
#include <stdlib.h>

#include "api.h"

/* Allocates, frees, and allocates the same size again, beside another allocation; before is the
 * number of free bytes. Reports whether the memory was kept. It may not be: the worker frees
 * kept memory if nothing was allocated for a second, and this process may not have run for that
 * long. */
static bool reuse(size_t size, size_t before, CUdeviceptr *q, CUdeviceptr *other)
{
	CUdeviceptr p;
	unsigned int type;
	char byte = 1;

	CHECK(cuMemAlloc(&p, size));
	CHECK(cuMemsetD8(p, 7, size));
	CHECK(cuMemFree(p)); /* waits for the memset */
	EXPECT(free_bytes() == before);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, 2, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, &byte, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p, 1, 1));
	CHECK(cuMemAlloc(other, size - 1)); /* its size differs, so it must not use the kept memory */
	CHECK(cuMemAlloc(q, size));
	return *other != p && *q == p;
}

/* The next allocation of the size gets the memory. In between it is reported as free. */
static void kept_reuse(void)
{
	const size_t size = 1u << 20;
	CUdeviceptr p, q, other;
	unsigned int type;
	size_t before;
	char byte = 1;
	int tries = 0;
	bool kept;

	(void)start_alone("poke");
	before = free_bytes();
	do {
		kept = reuse(size, before, &q, &other);
		CHECK(cuPointerGetAttribute(&type, 2, q));
		CHECK(cuMemcpyHtoD(q + size - 1, &byte, 1));
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(q + size, &byte, 1));
		EXPECT(free_bytes() == before - 2 * size);
		CHECK(cuMemFree(other));
		CHECK(cuMemFree(q));
		EXPECT(free_bytes() == before);
	} while (!kept && ++tries < 20);
	EXPECT(kept);
	CHECK(cuMemAlloc(&p, before / 4 * 3)); /* kept memory is available */
	CHECK(cuMemAlloc(&q, before - before / 4 * 3 - 4096));
	CHECK(cuMemFree(p));
	CHECK(cuMemFree(q));
}

/* A copy whose data is still in the arena when its memory is freed does not overwrite the next
 * allocation of that memory. */
static void kept_copies(void)
{
	enum { SIZE = 64 << 10 };
	static unsigned char bytes[SIZE], got[SIZE];
	CUstream stream;

	demo_start("poke");
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	memset(bytes, 1, sizeof bytes);
	for (int i = 0; i < 500; i++) {
		CUdeviceptr p, q;

		CHECK(cuMemAlloc(&p, SIZE));
		CHECK(cuMemcpyHtoD(p, bytes, i % 2 ? SIZE : 512));
		CHECK(cuMemFree(p));
		CHECK(cuMemAlloc(&q, SIZE));
		CHECK(cuMemsetD8Async(q, 2, SIZE, stream));
		CHECK(cuMemcpyDtoHAsync(got, q, SIZE, stream));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(got[0] == 2 && got[SIZE - 1] == 2 && memcmp(got, got + 1, SIZE - 1) == 0);
		CHECK(cuMemFree(q));
		if (i % 10 == 9)
			CHECK(cuCtxSynchronize());
	}
}

/* Memory is kept for its own context, and freed with it. */
static void kept_contexts(void)
{
	CUcontext first, second;
	size_t before;
	int reused = 0;

	(void)start_alone("poke");
	CHECK(cuCtxGetCurrent(&first));
	before = free_bytes();
	for (int i = 0; i < 20; i++) {
		CUdeviceptr p, q;

		CHECK(cuMemAlloc(&p, 4096));
		CHECK(cuMemFree(p));
		CHECK(cuCtxCreate(&second, 0, 0));
		CHECK(cuMemAlloc(&q, 4096));
		CHECK(cuMemFree(q));
		CHECK(cuCtxDestroy(second));
		CHECK(cuCtxSetCurrent(first));
		CHECK(cuMemAlloc(&q, 4096));
		reused += q == p;
		CHECK(cuMemsetD8(q, 1, 4096));
		CHECK(cuMemFree(q));
		EXPECT(free_bytes() == before);
	}
	EXPECT(reused > 0); /* not always, because the worker frees it if this process does not run */
}

/* Threads allocate and free at the same time. None gets memory that another one has. */
struct user {
	pthread_t thread;
	CUcontext context;
	uint32_t number;
};

static void *allocate_and_check(void *arg)
{
	struct user *u = arg;
	uint32_t mine = u->number, seed = mine, got[256];
	CUstream stream;

	CHECK(cuCtxSetCurrent(u->context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 300; i++) {
		size_t n = 64 << rand_r(&seed) % 3;
		CUdeviceptr p;

		CHECK(cuMemAlloc(&p, n * 4));
		CHECK(cuMemsetD32Async(p, mine, n, stream));
		CHECK(cuMemcpyDtoHAsync(got, p, n * 4, stream));
		CHECK(cuStreamSynchronize(stream));
		for (size_t j = 0; j < n; j++)
			EXPECT(got[j] == mine);
		CHECK(cuMemFree(p));
	}
	CHECK(cuStreamDestroy(stream));
	return NULL;
}

static void kept_threads(void)
{
	struct user users[8];
	size_t before;

	(void)start_alone("poke");
	before = free_bytes();
	for (uint32_t i = 0; i < 8; i++) {
		users[i].number = i + 1;
		CHECK(cuCtxGetCurrent(&users[i].context));
		EXPECT(pthread_create(&users[i].thread, NULL, allocate_and_check, &users[i]) == 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(users[i].thread, NULL);
	EXPECT(free_bytes() == before);
}

const struct test kept_tests[] = {
	{"kept_reuse", kept_reuse}, {"kept_copies", kept_copies}, {"kept_contexts", kept_contexts}, {"kept_threads", kept_threads}, {NULL, NULL},
};
