/* Tests of handles: settings, streams, graphs, threads. */
#include <pthread.h>

#include "test.h"

static void settings(cublasHandle_t h)
{
	cublasPointerMode_t pointers;
	cublasAtomicsMode_t atomics;
	cublasMath_t math;
	cudaStream_t stream;
	int n = -1;

	OK(cublasGetPointerMode(h, &pointers));
	OK(cublasGetAtomicsMode(h, &atomics));
	OK(cublasGetMathMode(h, &math));
	OK(cublasGetStream(h, &stream));
	ASSERT(pointers == CUBLAS_POINTER_MODE_HOST && atomics == CUBLAS_ATOMICS_NOT_ALLOWED && math == CUBLAS_DEFAULT_MATH && !stream);
	OK(cublasSetMathMode(h, (cublasMath_t)(CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
	OK(cublasGetMathMode(h, &math));
	ASSERT((int)math == 19);
	OK(cublasSetAtomicsMode(h, CUBLAS_ATOMICS_ALLOWED));
	WANT(cublasSetMathMode(h, (cublasMath_t)100), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSetPointerMode(h, (cublasPointerMode_t)2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSetAtomicsMode(h, (cublasAtomicsMode_t)-1), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasGetPointerMode(h, NULL), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasGetVersion(h, &n));
	ASSERT(n == CUBLAS_VERSION);
	OK(cublasGetProperty(MAJOR_VERSION, &n));
	ASSERT(n == 12);
	WANT(cublasGetProperty((libraryPropertyType)3, &n), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasSetSmCountTarget(h, 4));
	OK(cublasGetSmCountTarget(h, &n));
	ASSERT(n == 4);
	OK(cublasSetWorkspace(h, NULL, 0));
	WANT(cublasSetWorkspace(h, (void *)(uintptr_t)(device_memory(0, 4096) + 8), 64), CUBLAS_STATUS_INVALID_VALUE);
}

void test_handles(void)
{
	cublasHandle_t h, other;
	_Alignas(64) char rubbish[1024];

	OK(cublasCreate(&h));
	OK(cublasCreate(&other));
	ASSERT(h && other && h != other);
	settings(h);
	OK(cublasDestroy(h));
	OK(cublasDestroy(other));
	WANT(cublasCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasDestroy(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	memset(rubbish, 0x5a, sizeof rubbish);
	WANT(cublasDestroy((cublasHandle_t)rubbish), CUBLAS_STATUS_NOT_INITIALIZED);
	WANT(cublasSetStream((cublasHandle_t)(rubbish + 1), NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	ASSERT(strcmp(cublasGetStatusName(CUBLAS_STATUS_ARCH_MISMATCH), "CUBLAS_STATUS_ARCH_MISMATCH") == 0);
	ASSERT(*cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED) && *cublasGetStatusString((cublasStatus_t)12345));
}

enum { ORDER = 40 };

/* Computes C = A B + C with whole numbers, which are exact, on the stream of a handle. */
static void whole(cublasHandle_t h, CUdeviceptr p)
{
	static const float one = 1;
	float *a = (float *)(uintptr_t)p, *b = a + ORDER * ORDER, *c = b + ORDER * ORDER;

	OK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, ORDER, ORDER, ORDER, &one, a, ORDER, b, ORDER, &one, c, ORDER));
}

/* Sets A and B to random numbers, and C to 0. */
static void whole_set(float m[3][ORDER][ORDER], unsigned int seed)
{
	for (int i = 0; i < 2; i++)
		for (int x = 0; x < ORDER * ORDER; x++)
			m[i][x / ORDER][x % ORDER] = (float)((seed = seed * 1664525u + 1013904223u) >> 28) - 8;
	memset(m[2], 0, sizeof m[2]);
}

/* Checks that C is times A B^T. */
static void whole_check(float m[3][ORDER][ORDER], int times)
{
	for (int j = 0; j < ORDER; j++)
		for (int i = 0; i < ORDER; i++) {
			float want = 0;

			for (int l = 0; l < ORDER; l++)
				want += m[0][l][i] * m[1][l][j];
			if (m[2][j][i] != want * (float)times)
				FAIL("element (%d, %d) is %g, want %g", i, j, m[2][j][i], want * (float)times);
		}
}

/* A captured product does nothing until its graph is launched. The module is first used inside
 * the capture. */
void test_capture(void)
{
	static float m[3][ORDER][ORDER];
	CUdeviceptr p = device_memory(0, sizeof m);
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	cublasHandle_t h;

	whole_set(m, 1);
	to_device(p, m, sizeof m);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cublasCreate(&h));
	OK(cublasSetStream(h, stream));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	whole(h, p);
	whole(h, p);
	CHECK(cuStreamEndCapture(stream, &graph));
	from_device(m, p, sizeof m);
	whole_check(m, 0);
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	from_device(m, p, sizeof m);
	whole_check(m, 6);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	OK(cublasDestroy(h));
	CHECK(cuStreamDestroy(stream));
}

enum { THREADS = 6, TIMES = 20 };
static CUcontext shared_context;

static void *work(void *number)
{
	float(*m)[ORDER][ORDER] = malloc(3 * sizeof *m);
	CUdeviceptr p;
	CUstream stream;
	cublasHandle_t h;

	ASSERT(m);
	CHECK(cuCtxSetCurrent(shared_context));
	CHECK(cuMemAlloc(&p, 3 * sizeof *m));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cublasCreate(&h));
	OK(cublasSetStream(h, stream));
	whole_set(m, (unsigned int)(uintptr_t)number);
	to_device(p, m, 3 * sizeof *m);
	for (int i = 0; i < TIMES; i++)
		whole(h, p);
	CHECK(cuStreamSynchronize(stream));
	from_device(m, p, 3 * sizeof *m);
	whole_check(m, TIMES);
	OK(cublasDestroy(h));
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(p));
	free(m);
	return NULL;
}

/* A thread without a context uses the handle's. */
static void *without_context(void *handle)
{
	CUcontext context;
	CUdeviceptr p = device_memory(0, sizeof(float[3][ORDER][ORDER]));
	float sum = -1;

	CHECK(cuCtxGetCurrent(&context));
	ASSERT(!context);
	OK(cublasSnrm2(handle, 0, (float *)(uintptr_t)p, 1, &sum));
	CHECK(cuCtxGetCurrent(&context));
	ASSERT(sum == 0 && context == shared_context);
	return NULL;
}

/* Each thread has its own handle, stream and memory. */
void test_threads(void)
{
	pthread_t threads[THREADS];

	CHECK(cuCtxGetCurrent(&shared_context));
	for (uintptr_t i = 0; i < THREADS; i++)
		ASSERT(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		ASSERT(pthread_join(threads[i], NULL) == 0);
	ASSERT(pthread_create(&threads[0], NULL, without_context, handle()) == 0);
	ASSERT(pthread_join(threads[0], NULL) == 0);
}
