/* Calls functions of graphs and capture that no other test calls with valid arguments. */
#include "good.h"

/* A chain of a kernel that writes, a memset of the next word, a copy of both to the
 * two after them, and a host function. */
struct chain {
	CUgraph graph;
	CUgraphNode kernel, set, copy, host;
	CUdeviceptr words;
	CUcontext context;
	unsigned int value, calls;
	CUDA_KERNEL_NODE_PARAMS_v1 k;
	CUDA_MEMSET_NODE_PARAMS m;
	CUDA_MEMCPY3D c;
	CUDA_HOST_NODE_PARAMS h;
	void *params[2];
};

static void called(void *p)
{
	++*(unsigned int *)p;
}

static void make(struct chain *c)
{
	CUfunction poke = demo_start("poke");

	memset(c, 0, sizeof *c);
	CHECK(cuCtxGetCurrent(&c->context));
	CHECK(cuMemAlloc_v2(&c->words, 16));
	CHECK(cuMemsetD32_v2(c->words, 0, 4));
	c->value = 1;
	c->params[0] = &c->words;
	c->params[1] = &c->value;
	c->k = (CUDA_KERNEL_NODE_PARAMS_v1){.func = poke, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
					    .blockDimZ = 1, .kernelParams = c->params};
	c->m = (CUDA_MEMSET_NODE_PARAMS){.dst = c->words + 4, .value = 2, .elementSize = 4, .width = 1, .height = 1};
	c->c = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = c->words, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = c->words + 8, .WidthInBytes = 8, .Height = 1, .Depth = 1};
	c->h = (CUDA_HOST_NODE_PARAMS){called, &c->calls};
	CHECK(cuGraphCreate(&c->graph, 0));
	CHECK(cuGraphAddKernelNode(&c->kernel, c->graph, NULL, 0, &c->k));
	CHECK(cuGraphAddMemsetNode(&c->set, c->graph, NULL, 0, &c->m, c->context));
	CHECK(cuGraphAddMemcpyNode(&c->copy, c->graph, &c->set, 1, &c->c, c->context));
	CHECK(cuGraphAddDependencies(c->graph, &c->kernel, &c->set, 1));
	CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = c->h};
	CHECK(cuGraphAddNode(&c->host, c->graph, &c->copy, 1, &node));
}

/* Launches the graph and checks the four words. */
static void runs(struct chain *c, CUgraphExec x, unsigned int first, unsigned int second, unsigned int third)
{
	unsigned int got[4], calls = c->calls;

	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemcpyDtoH_v2(got, c->words, sizeof got));
	EXPECT(got[0] == first && got[1] == second && got[2] == third && c->calls == calls + 1);
}

static void good_graph_forms(void)
{
	CUgraphNode from[8], to[8], wrong;
	CUgraphExecUpdateResult why = 77;
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 0};
	cuuint64_t flags = 77;
	struct chain c;
	CUgraphExec x[3];
	char log[64] = "x";
	size_t n = 8;

	make(&c);
	CHECK(cuGraphGetEdges(c.graph, from, to, &n));
	EXPECT(n == 3);
	n = 8;
	CHECK(cuGraphNodeGetDependencies(c.set, from, &n));
	EXPECT(n == 1 && from[0] == c.kernel);
	n = 8;
	CHECK(cuGraphNodeGetDependentNodes(c.kernel, to, &n));
	EXPECT(n == 1 && to[0] == c.set);
	CHECK(cuGraphInstantiate(&x[0], c.graph, &wrong, log, sizeof log));
	CHECK(cuGraphInstantiate_v2(&x[1], c.graph, &wrong, log, sizeof log));
	CHECK(cuGraphInstantiateWithParams_ptsz(&x[2], c.graph, &how));
	EXPECT(!log[0] && how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
	CHECK(cuGraphExecGetFlags(x[2], &flags));
	EXPECT(flags == 0);
	for (int i = 0; i < 3; i++)
		runs(&c, x[i], 1, 2, 1);
	CHECK(cuGraphExecUpdate(x[0], c.graph, &wrong, &why));
	EXPECT(why == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	CHECK(cuGraphRemoveDependencies(c.graph, &c.kernel, &c.set, 1));
	GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(x[0], c.graph, &wrong, &why));
	EXPECT(why == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphExecDestroy(x[i]));
}

/* Queries the nodes' parameters, and changes them in the graph. */
static void good_graph_nodes(void)
{
	CUDA_KERNEL_NODE_PARAMS_v1 k = {0};
	CUDA_MEMSET_NODE_PARAMS m = {0};
	CUDA_HOST_NODE_PARAMS h = {0};
	CUDA_MEMCPY3D copy = {0};
	struct chain c;
	CUgraphExec x;

	make(&c);
	CHECK(cuGraphKernelNodeGetParams(c.kernel, &k));
	EXPECT(k.func == c.k.func && *(unsigned int *)k.kernelParams[1] == 1);
	CHECK(cuGraphMemsetNodeGetParams(c.set, &m));
	EXPECT(m.value == 2 && m.dst == c.m.dst);
	CHECK(cuGraphMemcpyNodeGetParams(c.copy, &copy));
	EXPECT(copy.dstDevice == c.c.dstDevice && copy.WidthInBytes == 8);
	CHECK(cuGraphHostNodeGetParams(c.host, &h));
	EXPECT(h.fn == called && h.userData == &c.calls);
	c.value = 11;
	c.m.value = 12;
	c.c.srcDevice = c.words + 4;
	c.c.WidthInBytes = 4;
	CHECK(cuGraphKernelNodeSetParams(c.kernel, &c.k));
	CHECK(cuGraphMemsetNodeSetParams(c.set, &c.m));
	CHECK(cuGraphMemcpyNodeSetParams(c.copy, &c.c));
	CHECK(cuGraphHostNodeSetParams(c.host, &c.h));
	CHECK(cuGraphInstantiate_v2(&x, c.graph, NULL, NULL, 0));
	runs(&c, x, 11, 12, 12);
	CUgraphNodeParams set = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {.params = c.m, .ctx = c.context}};
	set.memset.params.value = 13;
	CHECK(cuGraphNodeSetParams(c.set, &set));
	CHECK(cuGraphMemsetNodeGetParams(c.set, &m));
	EXPECT(m.value == 13);
	runs(&c, x, 11, 12, 12); /* only the graph was changed, not the executable graph */
}

/* Changes the same parameters in the executable graph. */
static void good_graph_changes(void)
{
	struct chain c;
	CUgraphExec x;

	make(&c);
	CHECK(cuGraphInstantiate_v2(&x, c.graph, NULL, NULL, 0));
	runs(&c, x, 1, 2, 1);
	c.value = 21;
	c.m.value = 22;
	c.c.srcDevice = c.words + 4;
	c.c.WidthInBytes = 4;
	CHECK(cuGraphExecKernelNodeSetParams(x, c.kernel, &c.k));
	CHECK(cuGraphExecMemsetNodeSetParams(x, c.set, &c.m, c.context));
	CHECK(cuGraphExecMemcpyNodeSetParams(x, c.copy, &c.c, c.context));
	runs(&c, x, 21, 22, 22);
	CUgraphNodeParams set = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {.params = c.m, .ctx = c.context}};
	set.memset.params.value = 23;
	CHECK(cuGraphExecNodeSetParams(x, c.set, &set));
	runs(&c, x, 21, 23, 23);
}

static void good_graph_attributes(void)
{
	CUkernelNodeAttrValue value = {.cooperative = 1}, got = {.cooperative = 77};
	CUgraphNode other;
	struct chain c;

	make(&c);
	CHECK(cuGraphAddKernelNode(&other, c.graph, NULL, 0, &c.k));
	CHECK(cuGraphKernelNodeSetAttribute(c.kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
	CHECK(cuGraphKernelNodeCopyAttributes(other, c.kernel));
	CHECK(cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
	EXPECT(got.cooperative == 1);
}

static void good_graph_events(void)
{
	CUgraphNode record, wait;
	CUevent first, second, got;
	CUgraphExec x;
	CUgraph g;

	(void)demo_start("poke");
	CHECK(cuEventCreate(&first, 0));
	CHECK(cuEventCreate(&second, 0));
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddEventRecordNode(&record, g, NULL, 0, first));
	CHECK(cuGraphAddEventWaitNode(&wait, g, &record, 1, first));
	CHECK(cuGraphEventRecordNodeGetEvent(record, &got));
	EXPECT(got == first);
	CHECK(cuGraphEventRecordNodeSetEvent(record, second));
	CHECK(cuGraphEventRecordNodeGetEvent(record, &got));
	EXPECT(got == second);
	CHECK(cuGraphEventWaitNodeSetEvent(wait, second));
	CHECK(cuGraphEventWaitNodeGetEvent(wait, &got));
	EXPECT(got == second);
	CHECK(cuGraphInstantiate_v2(&x, g, NULL, NULL, 0));
	CHECK(cuGraphExecEventRecordNodeSetEvent(x, record, first));
	CHECK(cuGraphExecEventWaitNodeSetEvent(x, wait, first));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuEventSynchronize(first));
}

static void good_capture(void)
{
	CUstreamCaptureStatus status = 77;
	cuuint64_t id = 0, same = 0;
	const CUgraphNode *on = NULL;
	CUgraphNode node;
	CUgraph g, during = NULL;
	size_t n = 77;
	CUdeviceptr p;
	CUstream s;

	(void)demo_start("poke");
	CHECK(cuMemAlloc_v2(&p, 4));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(s));
	CHECK(cuStreamGetCaptureInfo(s, &status, &id));
	EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id);
	CHECK(cuMemsetD32Async(p, 1, 1, s));
	CHECK(cuStreamGetCaptureInfo_v3(s, &status, &same, &during, &on, NULL, &n));
	EXPECT(same == id && during && n == 1);
	CHECK(cuGraphAddEmptyNode(&node, during, on, 1));
	CHECK(cuStreamUpdateCaptureDependencies(s, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	CHECK(cuStreamGetCaptureInfo_v3(s, &status, &same, NULL, &on, NULL, &n));
	EXPECT(n == 1 && on[0] == node);
	CHECK(cuStreamEndCapture(s, &g));
	EXPECT(g == during);
}

const struct test good_graph_tests[] = {
	{"good_graph_forms", good_graph_forms}, {"good_graph_nodes", good_graph_nodes}, {"good_graph_changes", good_graph_changes},
	{"good_graph_attributes", good_graph_attributes}, {"good_graph_events", good_graph_events}, {"good_capture", good_capture},
	{NULL, NULL},
};
