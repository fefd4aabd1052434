/* Tests of conditional nodes, whose conditions kernels set. */
#include <stdint.h>

#include "api.h"

static const char kernels[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n"
	/* count_down(handle, p): decrements *p and sets the condition to it. */
	".visible .entry count_down(.param .u64 handle, .param .u64 p)\n{\n"
	"\t.reg .b64 %h, %p;\n\t.reg .b32 %v;\n"
	"\tld.param.u64 %h, [handle];\n\tld.param.u64 %p, [p];\n"
	"\tld.global.u32 %v, [%p];\n\tsub.u32 %v, %v, 1;\n\tst.global.u32 [%p], %v;\n"
	"\t{\n\t.param .b64 a;\n\t.param .b32 b;\n\tst.param.b64 [a], %h;\n\tst.param.b32 [b], %v;\n"
	"\tcall.uni cudaGraphSetConditional, (a, b);\n\t}\n\tret;\n}\n"
	".visible .entry set(.param .u64 handle, .param .u32 value)\n{\n"
	"\t.reg .b64 %h;\n\t.reg .b32 %v;\n"
	"\tld.param.u64 %h, [handle];\n\tld.param.u32 %v, [value];\n"
	"\tcall.uni cudaGraphSetConditional, (%h, %v);\n\tret;\n}\n"
	".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
	"\t.reg .b64 %p;\n\t.reg .b32 %v, %n;\n"
	"\tld.param.u64 %p, [p];\n\tld.param.u32 %n, [n];\n"
	"\tld.global.u32 %v, [%p];\n\tadd.u32 %v, %v, %n;\n\tst.global.u32 [%p], %v;\n\tret;\n}\n";

static CUfunction count_down, set, add;
static CUdeviceptr words; /* eight of them */

static void begin(void)
{
	CUmodule m;

	(void)start_alone("poke");
	CHECK(cuModuleLoadData(&m, kernels));
	CHECK(cuModuleGetFunction(&count_down, m, "count_down"));
	CHECK(cuModuleGetFunction(&set, m, "set"));
	CHECK(cuModuleGetFunction(&add, m, "add"));
	CHECK(cuMemAlloc(&words, 32));
	CHECK(cuMemsetD32(words, 0, 8));
}

static CUdeviceptr word_at(int i)
{
	return words + (CUdeviceptr)(4 * i);
}

static unsigned int word(int i)
{
	unsigned int v;

	CHECK(cuMemcpyDtoH(&v, word_at(i), 4));
	return v;
}

/* Adds a kernel of one thread, which depends on another node if behind is not NULL. */
static CUgraphNode kernel(CUgraph g, CUgraphNode behind, CUfunction f, void *a, void *b)
{
	void *params[] = {a, b};
	CUDA_KERNEL_NODE_PARAMS k = {.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
				     .kernelParams = params};
	CUgraphNode n;

	CHECK(cuGraphAddKernelNode(&n, g, &behind, behind != NULL, &k));
	return n;
}

static CUgraphNode adds(CUgraph g, CUgraphNode behind, int i, unsigned int n)
{
	CUdeviceptr p = word_at(i);

	return kernel(g, behind, add, &p, &n);
}

/* Adds a conditional node. *out becomes its bodies. */
static CUgraphNode condition(CUgraph g, CUgraphNode behind, CUgraphConditionalHandle h, int type, unsigned int size, CUgraph **out)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .conditional = {.handle = h, .type = type, .size = size}};
	CUgraphNode n;

	CHECK(cuGraphAddNode(&n, g, &behind, behind != NULL, &p));
	*out = p.conditional.phGraph_out;
	EXPECT(*out && (*out)[0] && (*out)[size - 1]);
	return n;
}

static CUgraphConditionalHandle handle(CUgraph g, unsigned int value, unsigned int flags)
{
	CUgraphConditionalHandle h = 0;

	CHECK(cuGraphConditionalHandleCreate(&h, g, NULL, value, flags));
	EXPECT(h != 0);
	return h;
}

static void run(CUgraph g, int times)
{
	CUgraphExec x;

	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < times; i++)
		CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(x));
}

/* A kernel's value selects whether a body runs. Later nodes read what the body has written. */
static void condition_if(void)
{
	CUgraphConditionalHandle h, alone;
	CUgraphNodeType type;
	CUgraph g, *body;
	CUgraphNode n;

	begin();
	for (unsigned int value = 0; value < 3; value++) {
		CHECK(cuGraphCreate(&g, 0));
		h = handle(g, 0, 0);
		alone = handle(g, value, CU_GRAPH_COND_ASSIGN_DEFAULT);
		n = condition(g, kernel(g, NULL, set, &h, &value), h, CU_GRAPH_COND_TYPE_IF, 2, &body);
		CHECK(cuGraphNodeGetType(n, &type));
		EXPECT(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
		(void)adds(body[0], NULL, 0, 1);
		(void)adds(body[1], NULL, 1, 1);
		n = adds(g, n, 2, 1);
		(void)condition(g, n, alone, CU_GRAPH_COND_TYPE_IF, 1, &body);
		(void)adds(body[0], adds(body[0], NULL, 3, 1), 3, 1);
		run(g, 2);
		CHECK(cuGraphDestroy(g));
	}
	EXPECT(word(0) == 4 && word(1) == 2 && word(2) == 6 && word(3) == 8);
}

/* The kernel in the body determines how often it runs, also with nested nodes, in each
 * launch. */
static void condition_while(void)
{
	CUgraphConditionalHandle outer, inner;
	CUdeviceptr p = word_at(0);
	unsigned int one = 1;
	CUgraph g, *body, *nested;
	CUgraphNode n;

	begin();
	CHECK(cuGraphCreate(&g, 0));
	outer = handle(g, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	inner = handle(g, 0, 0);
	p = word_at(0);
	n = adds(g, NULL, 0, 5);
	n = condition(g, n, outer, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	(void)adds(g, n, 3, 1);
	n = kernel(body[0], NULL, count_down, &outer, &p);
	n = kernel(body[0], n, set, &inner, &one);
	n = adds(body[0], n, 1, 3);
	p = word_at(1);
	n = condition(body[0], n, inner, CU_GRAPH_COND_TYPE_WHILE, 1, &nested);
	(void)adds(nested[0], kernel(nested[0], NULL, count_down, &inner, &p), 2, 1);
	run(g, 3);
	EXPECT(word(0) == 0 && word(1) == 0 && word(2) == 3 * 5 * 3 && word(3) == 3);
	CHECK(cuGraphDestroy(g));
}

/* The value is the number of the body that runs, if there is one. */
static void condition_switch(void)
{
	CUgraph g, *body;

	begin();
	for (unsigned int value = 0; value < 5; value++) {
		CUgraphConditionalHandle h;

		CHECK(cuGraphCreate(&g, 0));
		h = handle(g, value, CU_GRAPH_COND_ASSIGN_DEFAULT);
		(void)condition(g, NULL, h, CU_GRAPH_COND_TYPE_SWITCH, 3, &body);
		for (int i = 0; i < 3; i++)
			(void)adds(body[i], NULL, i, 1 + value);
		run(g, 1);
		CHECK(cuGraphDestroy(g));
	}
	EXPECT(word(0) == 1 && word(1) == 2 && word(2) == 3);
}

/* A stream is captured into a graph and into the body of a node of it. */
static void condition_captured(void)
{
	CUgraphConditionalHandle h;
	const CUgraphNode *deps;
	CUdeviceptr p, q;
	unsigned int one = 1;
	void *down[] = {&h, &p}, *more[] = {&q, &one};
	CUgraph g, *body;
	CUgraphNode n;
	CUstream s, t;
	CUstreamCaptureStatus status;
	size_t count;

	begin();
	p = word_at(0), q = word_at(1);
	CHECK(cuMemsetD32(words, 4, 1));
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, s, more, NULL));
	CHECK(cuStreamGetCaptureInfo_v2(s, &status, NULL, &g, &deps, &count));
	h = handle(g, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	EXPECT(count == 1);
	n = condition(g, deps[0], h, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	CHECK(cuStreamUpdateCaptureDependencies(s, &n, 1, 1));
	CHECK(cuStreamBeginCaptureToGraph(t, body[0], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuLaunchKernel(count_down, 1, 1, 1, 1, 1, 1, 0, t, down, NULL));
	CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, t, more, NULL));
	CHECK(cuStreamEndCapture(t, NULL));
	CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, s, more, NULL));
	CHECK(cuStreamEndCapture(s, &g));
	run(g, 1);
	EXPECT(word(0) == 0 && word(1) == 1 + 4 + 1);
	CHECK(cuGraphDestroy(g));
}

static void no_host(void *p)
{
	(void)p;
}

/* Calls that CUDA does not allow. The memory of a handle is freed. */
static void condition_refused(void)
{
	CUDA_HOST_NODE_PARAMS host = {no_host, NULL};
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .conditional = {.type = CU_GRAPH_COND_TYPE_IF, .size = 1}};
	CUgraphConditionalHandle h;
	CUgraph g, other, *body;
	CUgraphNode n;
	CUgraphExec x;
	size_t before;

	begin();
	before = free_bytes();
	CHECK(cuGraphCreate(&g, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n, g, NULL, 0, &p)); /* no handle */
	p.conditional.handle = words;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n, g, NULL, 0, &p)); /* the handle of another graph */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&h, g, NULL, 0, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&h, NULL, NULL, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(NULL, g, NULL, 0, 0));
	p.conditional.handle = h = handle(g, 0, 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(h));
	for (int type = -1; type < 4; type++) {
		static const unsigned int most[] = {2, 1, 4096};

		p.conditional.type = type;
		p.conditional.size = type < 0 || type > 2 ? 1 : most[type] + 1;
		GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n, g, NULL, 0, &p));
		p.conditional.size = 0;
		GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n, g, NULL, 0, &p));
	}
	n = condition(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &body);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(body[0]));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&other, g));
	CHECK(cuGraphCreate(&other, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&n, other, NULL, 0, g));
	CHECK(cuGraphAddHostNode(&n, body[0], NULL, 0, &host));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphDestroyNode(n));
	run(g, 1);
	CHECK(cuGraphDestroy(g));
	CHECK(cuGraphDestroy(other));
	EXPECT(free_bytes() == before);
}

/* Creates a graph with a conditional node, whose body has a kernel that adds value. */
static CUgraph adding(unsigned int value, int type, unsigned int n, CUgraphNode *in_body)
{
	CUgraph g, *body;

	CHECK(cuGraphCreate(&g, 0));
	(void)condition(g, NULL, handle(g, value, CU_GRAPH_COND_ASSIGN_DEFAULT), type, 1, &body);
	*in_body = adds(body[0], NULL, 0, n);
	return g;
}

/* Bodies, conditions and first values are updated like other graphs. */
static void condition_updates(void)
{
	CUdeviceptr p;
	unsigned int hundred = 100;
	void *params[] = {&p, &hundred};
	CUDA_KERNEL_NODE_PARAMS k = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
				     .kernelParams = params};
	CUgraphExecUpdateResultInfo info;
	CUgraphNode n, m;
	CUgraphExec x;
	CUgraph g, h;

	begin();
	p = word_at(0);
	k.func = add;
	g = adding(1, CU_GRAPH_COND_TYPE_IF, 1, &n);
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuGraphExecKernelNodeSetParams(x, n, &k));
	CHECK(cuGraphLaunch(x, NULL));
	EXPECT(word(0) == 101);
	h = adding(2, CU_GRAPH_COND_TYPE_IF, 1000, &m);
	CHECK(cuGraphExecUpdate_v2(x, h, &info));
	CHECK(cuGraphDestroy(h)); /* the executable graph keeps its condition */
	CHECK(cuGraphLaunch(x, NULL));
	EXPECT(word(0) == 1101);
	h = adding(0, CU_GRAPH_COND_TYPE_IF, 1000, &m); /* its body does not run */
	CHECK(cuGraphExecUpdate_v2(x, h, &info));
	CHECK(cuGraphLaunch(x, NULL));
	EXPECT(word(0) == 1101);
	CHECK(cuGraphDestroy(h));
	h = adding(0, CU_GRAPH_COND_TYPE_WHILE, 1, &m);
	GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(x, h, &info));
	EXPECT(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	CHECK(cuGraphDestroy(h));
	CHECK(cuGraphDestroy(g));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(x));
}

const struct test graph_condition_tests[] = {
	{"condition_if", condition_if}, {"condition_while", condition_while}, {"condition_switch", condition_switch},
	{"condition_captured", condition_captured}, {"condition_refused", condition_refused}, {"condition_updates", condition_updates}, {NULL, NULL},
};
