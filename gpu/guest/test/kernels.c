/* Tests of effects of kernels other than their results: some cannot run on the device, some
 * print, some end their context. */
#include "api.h"

#define HEAD ".version 6.4\n.target sm_50\n.address_size 64\n"

static CUmodule module_of(const char *ptx)
{
	CUcontext c;
	CUmodule m;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, 0, 0));
	CHECK(cuModuleLoadData(&m, ptx));
	return m;
}

/* A kernel that the device cannot run exists in its module. Each use of it returns an error,
 * which is not permanent, and other kernels run. */
static void refused_kernels(void)
{
	static const char ptx[] = HEAD ".visible .entry good() { ret; }\n.visible .entry bad()\n{\nfrobnicate.u32 1;\nret;\n}\n";
	char log[2000] = "";
	CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof log};
	CUmodule m = module_of(HEAD), jit;
	CUfunction bad, good;
	CUgraph graph;
	CUgraphNode node;
	int n;

	CHECK(cuModuleLoadDataEx(&jit, ptx, 2, keys, values));
	EXPECT(strstr(log, "kernel bad cannot run on this device: line 7: not implemented: opcode frobnicate: frobnicate.u32 1;"));
	CHECK(cuModuleUnload(m));
	CHECK(cuModuleLoadData(&m, ptx));
	CHECK(cuModuleGetFunction(&bad, m, "bad"));
	CHECK(cuModuleGetFunction(&good, m, "good"));
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLaunchKernel(bad, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bad));
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuFuncSetAttribute(bad, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuFuncLoad(bad));
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, bad, 32, 0));
	CHECK(cuFuncIsLoaded(&n, bad));
	EXPECT(n == 0);
	CHECK(cuFuncIsLoaded(&n, good));
	EXPECT(n == 1);
	CHECK(cuGraphCreate(&graph, 0));
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &(CUDA_KERNEL_NODE_PARAMS){.func = bad, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL}));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuLaunchKernel(good, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuModuleUnload(m));
	CHECK(cuModuleUnload(jit));
}

/* tell(n) prints "line N". */
static const char tell_ptx[] = HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
	".global .align 1 .b8 format[9] = {108, 105, 110, 101, 32, 37, 117, 10, 0};\n"
	".visible .entry tell(.param .u32 n)\n{\n"
	".local .align 4 .b8 args[4];\n.reg .b32 %r;\n.reg .b64 %f, %a;\n"
	"ld.param.u32 %r, [n];\nst.local.u32 [args], %r;\n"
	"mov.u64 %f, format;\ncvta.global.u64 %f, %f;\nmov.u64 %a, args;\ncvta.local.u64 %a, %a;\n"
	"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %f; st.param.b64 [a], %a; call.uni (r), vprintf, (f, a); }\n"
	"ret;\n}\n";

#define TELLERS 6u
#define LINES 200u

static CUcontext shared_context;
static CUfunction tell;

static void *teller(void *arg)
{
	unsigned int first = (unsigned int)(uintptr_t)arg * LINES;
	CUstream stream;

	CHECK(cuCtxPushCurrent(shared_context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned int i = first; i < first + LINES; i++) {
		void *params[] = {&i};

		CHECK(cuLaunchKernel(tell, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
		if (i % 3 == 0)
			CHECK(cuStreamSynchronize(stream));
	}
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuStreamDestroy(stream));
	return NULL;
}

/* The lines that kernels of several threads print appear completely and exactly once. */
static void printf_threads(void)
{
	pthread_t threads[TELLERS];
	bool seen[TELLERS * LINES] = {false};
	unsigned int n, lines = 0;
	FILE *out = tmpfile();
	char line[64];
	int saved = dup(1);

	EXPECT(out && saved >= 0);
	CHECK(cuModuleGetFunction(&tell, module_of(tell_ptx), "tell"));
	CHECK(cuCtxGetCurrent(&shared_context));
	fflush(stdout);
	EXPECT(dup2(fileno(out), 1) == 1);
	for (uintptr_t i = 0; i < TELLERS; i++)
		EXPECT(pthread_create(&threads[i], NULL, teller, (void *)i) == 0);
	for (unsigned int i = 0; i < TELLERS; i++)
		EXPECT(pthread_join(threads[i], NULL) == 0);
	CHECK(cuCtxDestroy(shared_context));
	fflush(stdout);
	EXPECT(dup2(saved, 1) == 1);
	rewind(out);
	while (fgets(line, sizeof line, out)) {
		EXPECT(strncmp(line, "line ", 5) == 0);
		line[strcspn(line, "\n")] = 0;
		n = line[5] == '0' ? 0 : number(line + 5, 0);
		EXPECT(n < TELLERS * LINES && !seen[n]);
		seen[n] = true;
		lines++;
	}
	EXPECT(lines == TELLERS * LINES);
}

const struct test kernel_tests[] = {
	{"refused_kernels", refused_kernels}, {"printf_threads", printf_threads}, {NULL, NULL},
};
