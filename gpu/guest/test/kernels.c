/* Tests of kernels that cannot run on the device. */
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

const struct test kernel_tests[] = {
	{"refused_kernels", refused_kernels}, {NULL, NULL},
};
