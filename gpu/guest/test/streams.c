/* Tests that streams do not wait for each other: a full stream delays its own callers only. */
#include <stdbool.h>

#include "api.h"

/* A number of blocks that cannot end while a test runs. */
#define ENDLESS 0x7fffffffu

struct filler {
	CUcontext context;
	CUfunction count;
	CUdeviceptr counter;
	CUstream stream;
	_Atomic unsigned int put;
	bool mortal;  /* a call may fail, which ends the thread */
	CUresult end; /* the error of that call */
};

/* Fills a stream behind a kernel that does not end. */
static void *fill(void *p)
{
	struct filler *f = p;
	unsigned int one = 1;
	void *params[] = {&f->counter, &one};
	CUevent e;

	CHECK(cuCtxSetCurrent(f->context));
	CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (; f->end == 0; f->put++) {
		f->end = f->put % 3 ? cuLaunchKernel(f->count, 1, 1, 1, 32, 1, 1, 0, f->stream, params, NULL)
				    : cuEventRecord(e, f->stream);
		if (!f->mortal)
			CHECK(f->end);
	}
	return NULL;
}

/* Waits until the thread's calls block: at least as many are enqueued as NVIDIA's driver
 * accepts, and their number does not increase. */
static void until_full(struct filler *f)
{
	for (unsigned int seen = 0, same = 0; same < 50; seen = f->put) {
		same = f->put >= 512 && f->put == seen ? same + 1 : 0;
		usleep(10000);
	}
}

/* Other streams, contexts and threads can do everything. */
static void others_go_on(void)
{
	unsigned int one = 1, got;
	CUdeviceptr p;
	CUcontext context;
	CUfunction f;
	CUmodule m;
	CUstream s;
	CUevent e;
	void *params[] = {&p, &one};

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&e, 0));
	CHECK(cuMemAlloc(&p, 1 << 20));
	CHECK(cuMemsetD32Async(p, 7, 1 << 18, s));
	CHECK(cuEventRecord(e, s));
	CHECK(cuMemcpyDtoHAsync(&got, p + 4096, 4, s));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuEventSynchronize(e));
	EXPECT(got == 7);
	CHECK(cuStreamDestroy(s));
	CHECK(cuCtxCreate(&context, 0, 0));
	CHECK(cuModuleLoadData(&m, kernels_ptx));
	CHECK(cuModuleGetFunction(&f, m, "count"));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 32);
	CHECK(cuCtxDestroy(context));
}

/* One more full stream than an earlier worker had room for. */
static void full_streams(void)
{
	enum { FULL = 5 };
	static struct filler f[FULL];
	CUfunction count = demo_start("count");
	unsigned int one = 1;
	pthread_t t[FULL];

	for (int i = 0; i < FULL; i++) {
		void *params[] = {&f[i].counter, &one};

		CHECK(cuCtxGetCurrent(&f[i].context));
		f[i].count = count;
		CHECK(cuMemAlloc(&f[i].counter, 4));
		CHECK(cuStreamCreate(&f[i].stream, CU_STREAM_NON_BLOCKING));
		CHECK(cuLaunchKernel(count, ENDLESS, 1, 1, 32, 1, 1, 0, f[i].stream, params, NULL));
		EXPECT(pthread_create(&t[i], NULL, fill, &f[i]) == 0);
	}
	for (int i = 0; i < FULL; i++)
		until_full(&f[i]);
	for (int i = 0; i < 5; i++)
		others_go_on();
	for (int i = 0; i < FULL; i++)
		EXPECT(f[i].put <= 1024); /* as with NVIDIA's driver */
	_exit(0); /* the kernels do not end otherwise */
}

/* Several threads enqueue much more than a stream holds; all of it runs in order. */
static void *launch_many(void *p)
{
	struct filler *f = p;
	unsigned int one = 1;
	void *params[] = {&f->counter, &one};
	CUevent e;

	CHECK(cuCtxSetCurrent(f->context));
	CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 2000; i++) {
		CHECK(cuLaunchKernel(f->count, 1, 1, 1, 32, 1, 1, 0, f->stream, params, NULL));
		CHECK(cuEventRecord(e, f->stream));
	}
	return NULL;
}

static void many_launches(void)
{
	enum { THREADS = 4 };
	struct filler f = {.count = demo_start("count")};
	unsigned int got;
	pthread_t t[THREADS];

	CHECK(cuCtxGetCurrent(&f.context));
	CHECK(cuMemAlloc(&f.counter, 4));
	CHECK(cuMemsetD32(f.counter, 0, 1));
	CHECK(cuStreamCreate(&f.stream, 0));
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&t[i], NULL, launch_many, &f) == 0);
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_join(t[i], NULL) == 0);
	CHECK(cuStreamSynchronize(f.stream));
	CHECK(cuMemcpyDtoH(&got, f.counter, 4));
	EXPECT(got == THREADS * 2000 * 32);
}

/* More streams than lanes, so that some share a lane. */
static void thousands_of_streams(void)
{
	enum { N = 1100 };
	CUfunction count = demo_start("count");
	static CUstream s[N];
	CUdeviceptr p;
	unsigned int one = 1, got;
	void *params[] = {&p, &one};

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuCtxSynchronize());
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++)
			CHECK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
		for (int i = 0; i < N; i++)
			CHECK(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, s[i], params, NULL));
		CHECK(cuCtxSynchronize());
		for (int i = 0; i < N; i++)
			CHECK(cuStreamDestroy(s[i]));
	}
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 2 * N * 32);
}

/* A wait for room in a stream ends when the worker is killed, like all other waits. */
static void dead_worker_full(void)
{
	struct filler f = {.count = demo_start("count")};
	unsigned int one = 1;
	void *params[] = {&f.counter, &one};
	pthread_t t;
	char go[3];

	CHECK(cuCtxGetCurrent(&f.context));
	CHECK(cuMemAlloc(&f.counter, 4));
	CHECK(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuLaunchKernel(f.count, ENDLESS, 1, 1, 32, 1, 1, 0, f.stream, params, NULL));
	f.mortal = true;
	EXPECT(pthread_create(&t, NULL, fill, &f) == 0);
	until_full(&f);
	EXPECT(write(1, "ready\n", 6) == 6);
	EXPECT(read(0, go, sizeof go) == sizeof go);
	EXPECT(pthread_join(t, NULL) == 0);
	EXPECT(f.end != 0);
	GIVES(f.end, cuCtxSynchronize());
}

#define BATCH 255 /* the maximum that CUDA allows */

/* A batch is executed in the stream's order, as a whole or not at all. */
static void batches(void)
{
	struct filler f = {.count = demo_start("count")};
	unsigned int rounds = 1u << 14, got[2 * BATCH];
	CUstreamBatchMemOpParams ops[BATCH + 1] = {0}, bad[2] = {0};
	const struct {
		int operation;
		unsigned int flags;
		CUdeviceptr address;
		CUresult want;
	} wrong[] = {
		{0, 0, 0, CUDA_ERROR_INVALID_VALUE}, {7, 0, 0, CUDA_ERROR_INVALID_VALUE}, {-1, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, 0, CUDA_ERROR_INVALID_VALUE}, {CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, 2, CUDA_ERROR_INVALID_VALUE},
		{CU_STREAM_MEM_OP_WRITE_VALUE_64, 0, 4, CUDA_ERROR_INVALID_VALUE}, {CU_STREAM_MEM_OP_WRITE_VALUE_32, 2, 8, CUDA_ERROR_INVALID_VALUE},
		{CU_STREAM_MEM_OP_WAIT_VALUE_32, 4, 8, CUDA_ERROR_INVALID_VALUE}, {CU_STREAM_MEM_OP_WAIT_VALUE_64, 0, 4, CUDA_ERROR_INVALID_VALUE},
		{CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, 0, 0, CUDA_ERROR_NOT_SUPPORTED},
	};
	void *params[] = {&f.counter, &rounds};
	CUdeviceptr p;

	CHECK(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&f.counter, 4));
	CHECK(cuMemsetD32(f.counter, 0, 1));
	CHECK(cuMemAlloc(&p, sizeof got));
	CHECK(cuMemsetD32(p, 0, 2 * BATCH));
	CHECK(cuCtxSynchronize());
	for (unsigned int i = 0; i < BATCH; i++) {
		ops[i].operation = i % 3 == 0 ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : i % 3 == 1 ? CU_STREAM_MEM_OP_BARRIER : CU_STREAM_MEM_OP_WRITE_VALUE_32;
		if (i % 3 == 1)
			continue;
		ops[i].writeValue.address = p + 8 * i;
		ops[i].writeValue.value64 = 7ull << 32 | i;
		ops[i].writeValue.flags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
	}
	CHECK(cuLaunchKernel(f.count, 1, 1, 1, 32, 1, 1, 0, f.stream, params, NULL));
	ops[2].writeValue.address = f.counter; /* executed after the kernel, which adds to it */
	CHECK(cuStreamBatchMemOp(f.stream, BATCH, ops, 0));
	CHECK(cuStreamSynchronize(f.stream));
	CHECK(cuMemcpyDtoH(got, p, sizeof got));
	for (unsigned int i = 3; i < BATCH; i++)
		EXPECT(i % 3 == 1 || (got[2 * i] == i && got[2 * i + 1] == (i % 3 ? 0 : 7)));
	CHECK(cuMemcpyDtoH(got, f.counter, 4));
	EXPECT(got[0] == 2);
	CHECK(cuStreamBatchMemOp(f.stream, 0, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(f.stream, BATCH + 1, ops, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(f.stream, 1, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(f.stream, 1, ops, 1));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamBatchMemOp((CUstream)(void *)12345, 1, ops, 0));
	bad[0] = ops[0];
	bad[0].writeValue.value64 = 99;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		bad[1].operation = wrong[i].operation;
		bad[1].writeValue.flags = wrong[i].flags;
		bad[1].writeValue.address = wrong[i].address ? p + wrong[i].address : 0;
		GIVES(wrong[i].want, cuStreamBatchMemOp(f.stream, 2, bad, 0));
	}
	bad[1] = ops[1];
	bad[1].memoryBarrier.flags = 2;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(f.stream, 2, bad, 0));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(got, p, 8));
	EXPECT(got[0] == 0 && got[1] == 7);
}

#define LARGE (100u << 20)

/* Copies in a blocked stream, until the thread's calls wait. */
static void *stuff(void *p)
{
	struct filler *f = p;
	char *bytes = calloc(1, 1 << 20);

	CHECK(cuCtxSetCurrent(f->context));
	for (;;) {
		f->put++;
		CHECK(cuMemcpyHtoDAsync(f->counter, bytes, 1 << 20, f->stream));
	}
	return NULL;
}

static void until_still(struct filler *f)
{
	for (unsigned int seen = 0, same = 0; same < 20; seen = f->put) {
		same = f->put > 0 && f->put == seen ? same + 1 : 0;
		usleep(10000);
	}
}

/* Even if blocked streams hold staging memory, others can copy in both directions, query and
 * load. */
static void stuck_copies(void)
{
	enum { STUCK = 5 };
	static struct filler f[STUCK];
	CUfunction count = demo_start("count");
	unsigned int one = 1, *large = malloc(LARGE), *back = calloc(1, LARGE);
	pthread_t t[STUCK];
	CUdeviceptr p;
	CUstream s;

	for (int i = 0; i < STUCK; i++) {
		void *params[] = {&f[i].counter, &one};

		CHECK(cuCtxGetCurrent(&f[i].context));
		CHECK(cuMemAlloc(&f[i].counter, 1 << 20));
		CHECK(cuStreamCreate(&f[i].stream, CU_STREAM_NON_BLOCKING));
		CHECK(cuLaunchKernel(count, ENDLESS, 1, 1, 32, 1, 1, 0, f[i].stream, params, NULL));
		EXPECT(pthread_create(&t[i], NULL, stuff, &f[i]) == 0);
	}
	for (int i = 0; i < STUCK; i++)
		until_still(&f[i]);
	for (unsigned int i = 0; i < LARGE / 4; i++)
		large[i] = i * 2654435761u;
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&p, LARGE));
	CHECK(cuMemcpyHtoDAsync(p, large, LARGE, s));
	CHECK(cuMemcpyDtoHAsync(back, p, LARGE, s));
	CHECK(cuStreamSynchronize(s));
	EXPECT(memcmp(large, back, LARGE) == 0);
	CHECK(cuMemFreeAsync(p, s));
	others_go_on();
	_exit(0); /* the kernels do not end otherwise */
}

const struct test stream_tests[] = {
	{"full_streams", full_streams}, {"many_launches", many_launches}, {"thousands_of_streams", thousands_of_streams}, {"batches", batches}, {"stuck_copies", stuck_copies},
	{"dead_worker_full", dead_worker_full},
	{NULL, NULL},
};
