/* Tests of short-lived and many threads, stacks of contexts, signals and forks. */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "api.h"

static CUcontext shared_context;
static CUfunction shared_count;
static CUdeviceptr shared_counter;

static void begin(void)
{
	shared_count = start_alone("count");
	CHECK(cuCtxGetCurrent(&shared_context));
	CHECK(cuMemAlloc(&shared_counter, 4));
	CHECK(cuMemsetD32(shared_counter, 0, 1));
	CHECK(cuCtxSynchronize());
}

static unsigned int total(void)
{
	unsigned int n;

	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(&n, shared_counter, 4));
	return n;
}

static void *one_launch(void *p)
{
	unsigned int one = 1;
	void *params[] = {&shared_counter, &one};

	(void)p;
	CHECK(cuCtxSetCurrent(shared_context));
	CHECK(cuLaunchKernel(shared_count, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
	return NULL;
}

/* Each thread has its own default stream, which is destroyed when the thread ends: the worker
 * can have far fewer streams than there are threads here. */
static void thread_churn(void)
{
	enum { ROUNDS = 400, AT_ONCE = 16 };
	pthread_t t[AT_ONCE];

	begin();
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < AT_ONCE; k++)
			EXPECT(pthread_create(&t[k], NULL, one_launch, NULL) == 0);
		for (int k = 0; k < AT_ONCE; k++)
			pthread_join(t[k], NULL);
	}
	EXPECT(total() == ROUNDS * AT_ONCE);
}

static void *storm(void *p)
{
	unsigned int one = 1;
	void *params[] = {&shared_counter, &one};

	(void)p;
	CHECK(cuCtxSetCurrent(shared_context));
	for (int i = 0; i < 500; i++) {
		CHECK(cuLaunchKernel(shared_count, 1, 1, 1, 1, 1, 1, 0, i % 2 ? CU_STREAM_PER_THREAD : NULL, params, NULL));
		if (i % 100 == 99)
			CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	}
	CHECK(cuStreamSynchronize(NULL));
	return NULL;
}

static void thread_storm(void)
{
	pthread_t t[64];

	begin();
	for (int k = 0; k < 64; k++)
		EXPECT(pthread_create(&t[k], NULL, storm, NULL) == 0);
	for (int k = 0; k < 64; k++)
		pthread_join(t[k], NULL);
	EXPECT(total() == 64 * 500);
}

static void *own_stack(void *p)
{
	CUcontext c;

	(void)p;
	CHECK(cuCtxGetCurrent(&c));
	EXPECT(c == NULL); /* each thread has its own stack */
	CHECK(cuCtxPushCurrent(shared_context));
	CHECK(cuCtxGetCurrent(&c));
	EXPECT(c == shared_context);
	return NULL;
}

static void context_stacks(void)
{
	CUcontext a, b, c, got;
	pthread_t t;

	begin();
	a = shared_context;
	CHECK(cuCtxCreate(&b, 0, 0));
	CHECK(cuCtxPushCurrent(a));
	CHECK(cuCtxCreate(&c, 0, 0)); /* the stack is a b a c */
	EXPECT(pthread_create(&t, NULL, own_stack, NULL) == 0);
	pthread_join(t, NULL);
	CHECK(cuCtxDestroy(b)); /* it is not on top, so it stays in the stack as an invalid context */
	CHECK(cuCtxPopCurrent(&got));
	EXPECT(got == c);
	CHECK(cuCtxPopCurrent(&got));
	EXPECT(got == a);
	CUdeviceptr p;
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&p, 4));
	CHECK(cuCtxPopCurrent(&got));
	EXPECT(got == b);
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuCtxPopCurrent(&got));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&got));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 4));
	CHECK(cuCtxSetCurrent(a));
	CHECK(cuCtxPushCurrent(c));
	for (int i = 0; i < 1000; i++) {
		CHECK(cuCtxPushCurrent(a));
		CHECK(cuCtxPopCurrent(NULL));
	}
}

/* The objects of a destroyed context cannot be used: all calls return an error. */
static void after_context(void)
{
	unsigned int one = 1, word;
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUstream s;
	CUevent e;
	CUdeviceptr p;
	size_t free_before, free_after, all;
	void *params[] = {&p, &one};

	begin();
	CHECK(cuMemGetInfo(&free_before, &all));
	for (int i = 0; i < 20; i++) {
		CHECK(cuCtxCreate(&c, 0, 0));
		CHECK(cuModuleLoadData(&m, kernels_ptx));
		CHECK(cuModuleGetFunction(&f, m, "count"));
		CHECK(cuStreamCreate(&s, 0));
		CHECK(cuEventCreate(&e, 0));
		CHECK(cuMemAlloc(&p, 64 << 20));
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
		CHECK(cuCtxDestroy(c)); /* while work is running */
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(e));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&word, p, 4));
		GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(c));
		GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(c));
	}
	CHECK(cuMemGetInfo(&free_after, &all));
	EXPECT(free_after == free_before);
	CHECK(cuCtxSynchronize());
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* Signals without SA_RESTART, while calls wait. */
static void interrupted(void)
{
	struct sigaction a = {.sa_handler = on_alarm};
	struct itimerval every = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
	unsigned int rounds = 1000;
	void *params[] = {&shared_counter, &rounds};
	size_t n = 8 << 20;
	char *b = calloc(1, n);
	CUdeviceptr p;

	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	begin();
	CHECK(cuMemAlloc(&p, n));
	for (int i = 0; i < 20; i++) {
		CHECK(cuLaunchKernel(shared_count, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
		CHECK(cuMemcpyHtoD(p, b, n));
		CHECK(cuMemcpyDtoH(b, p, n));
		CHECK(cuCtxSynchronize());
	}
	setitimer(ITIMER_REAL, &off, NULL);
	EXPECT(alarms > 0);
	EXPECT(total() == 20 * 256 * rounds);
}

static _Atomic int stop;

static void *keep_launching(void *p)
{
	while (!stop)
		one_launch(p);
	return NULL;
}

/* fork and exec, and fork and exit, while other threads are in the library. */
static void fork_exec(void)
{
	pthread_t t[4];

	begin();
	for (int k = 0; k < 4; k++)
		EXPECT(pthread_create(&t[k], NULL, keep_launching, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = -1;

		if (child == 0) {
			if (i % 2 == 0)
				execl("/bin/true", "true", (char *)NULL);
			_exit(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 9);
		}
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
	}
	stop = 1;
	for (int k = 0; k < 4; k++)
		pthread_join(t[k], NULL);
	CHECK(cuCtxSynchronize());
}

/* Exits while work is running and memory is allocated. The Go test checks that nothing is
 * left. */
static void leave(void)
{
	unsigned int rounds = 100000;
	void *params[] = {&shared_counter, &rounds};
	CUdeviceptr p;

	begin();
	CHECK(cuMemAlloc(&p, 100 << 20));
	for (int i = 0; i < 20; i++)
		CHECK(cuLaunchKernel(shared_count, 4, 1, 1, 256, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
	puts("ok");
	exit(0);
}

/* The Go test stops the worker: its socket stays open, and its heartbeat stops. The ring fills,
 * and then every call fails; only the first has to wait for the timeout. */
static void stopped_worker(void)
{
	unsigned int one = 1;
	void *params[] = {&shared_counter, &one};
	char line[8];
	CUresult r;
	CUdeviceptr p;
	CUcontext c;

	begin();
	puts("ready");
	fflush(stdout);
	EXPECT(fgets(line, sizeof line, stdin) != NULL);
	while ((r = cuLaunchKernel(shared_count, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)) == 0)
		;
	EXPECT(r == CUDA_ERROR_DEVICE_UNAVAILABLE);
	for (int i = 0; i < 1000; i++) {
		GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuCtxSynchronize());
		GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemAlloc(&p, 4));
		GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemcpyDtoH(&one, shared_counter, 4));
		GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuCtxCreate(&c, 0, 0));
		GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuLaunchKernel(shared_count, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	}
}

const struct test robust_tests[] = {
	{"thread_churn", thread_churn}, {"thread_storm", thread_storm}, {"context_stacks", context_stacks},
	{"after_context", after_context}, {"interrupted", interrupted}, {"fork_exec", fork_exec}, {"leave", leave},
	{"stopped_worker", stopped_worker},
	{NULL, NULL},
};
