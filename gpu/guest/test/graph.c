/* Tests of graphs that the program builds. */
#include "api.h"

static CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction f, unsigned int blocks, unsigned int threads, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = f, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = threads,
					 .blockDimY = 1, .blockDimZ = 1, .kernelParams = params};
}

static CUDA_MEMCPY3D bytes(unsigned int to, CUdeviceptr dst, unsigned int from, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D c = {.dstMemoryType = to, .srcMemoryType = from, .WidthInBytes = n, .Height = 1, .Depth = 1};

	c.dstDevice = dst, c.dstHost = (void *)(uintptr_t)dst;
	c.srcDevice = src, c.srcHost = (void *)(uintptr_t)src;
	return c;
}

static CUcontext current(void)
{
	CUcontext c;

	CHECK(cuCtxGetCurrent(&c));
	return c;
}

static CUstream stream(void)
{
	CUstream s;

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

struct seen {
	unsigned int *word, values[4], calls;
};

static void look(void *p)
{
	struct seen *s = p;

	if (s->calls < 4)
		s->values[s->calls] = *s->word;
	s->calls++;
}

struct taken {
	unsigned int *word, want, calls, stale, first, at;
};

/* Reads and clears what a launch has written, so that the next call cannot find old data. */
static void take(void *p)
{
	struct taken *t = p;

	if (*t->word != t->want && t->stale++ == 0) {
		t->first = *t->word;
		t->at = t->calls;
	}
	*t->word = 0;
	t->calls++;
}

/* A graph with every kind of node: a diamond, a tail that goes to the host and back, and a
 * child. It is launched a thousand times. */
static void graph_kinds(void)
{
	CUfunction count = demo_start("count");
	unsigned int three = 3, two = 2, *pinned, pageable[2] = {0, 0}, from[2] = {40, 50}, got[4];
	CUgraphNode set, a, b, empty, out, host, later, in, child, node, recorded, waited;
	CUdeviceptr p, q;
	CUevent e, f;
	CUstream s = stream();
	CUgraph g, inner;
	CUgraphExec x;
	struct taken taken = {.want = 192};

	CHECK(cuEventCreate(&e, 0));
	CHECK(cuEventCreate(&f, 0));
	CHECK(cuMemAlloc(&p, 16));
	CHECK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	CHECK(cuMemsetD32(p, 9, 4));
	CHECK(cuCtxSynchronize()); /* the stream s does not wait for the null stream */
	q = p + 4;
	void *pa[] = {&p, &three}, *pb[] = {&q, &two};
	CUDA_KERNEL_NODE_PARAMS ka = kernel_params(count, 2, 32, pa), kb = kernel_params(count, 1, 32, pb);
	CUDA_MEMSET_NODE_PARAMS m = {.dst = p, .value = 0, .elementSize = 4, .width = 2, .height = 1};
	CUDA_MEMCPY3D to_pinned = bytes(CU_MEMORYTYPE_HOST, (uintptr_t)pinned, CU_MEMORYTYPE_DEVICE, p, 8);
	CUDA_MEMCPY3D to_pageable = bytes(CU_MEMORYTYPE_HOST, (uintptr_t)pageable, CU_MEMORYTYPE_UNIFIED, p, 8);
	CUDA_MEMCPY3D from_pageable = bytes(CU_MEMORYTYPE_DEVICE, p + 8, CU_MEMORYTYPE_HOST, (uintptr_t)from, 4);
	CUDA_MEMCPY3D on_device = bytes(CU_MEMORYTYPE_DEVICE, p + 12, CU_MEMORYTYPE_DEVICE, p + 8, 4);
	CUDA_HOST_NODE_PARAMS h = {take, &taken};

	taken.word = pinned;
	CHECK(cuGraphCreate(&inner, 0));
	CHECK(cuGraphAddMemcpyNode(&node, inner, NULL, 0, &on_device, current()));
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddMemsetNode(&set, g, NULL, 0, &m, current()));
	CHECK(cuGraphAddKernelNode(&a, g, &set, 1, &ka));
	CHECK(cuGraphAddKernelNode(&b, g, &set, 1, &kb));
	CHECK(cuGraphAddEmptyNode(&empty, g, (CUgraphNode[]){a, b}, 2));
	CHECK(cuGraphAddMemcpyNode(&out, g, &empty, 1, &to_pinned, current()));
	CHECK(cuGraphAddHostNode(&host, g, &out, 1, &h));
	CHECK(cuGraphAddMemcpyNode(&later, g, &host, 1, &to_pageable, current()));
	CHECK(cuGraphAddMemcpyNode(&in, g, &later, 1, &from_pageable, current()));
	CHECK(cuGraphAddChildGraphNode(&child, g, &in, 1, inner));
	CHECK(cuGraphAddEventWaitNode(&waited, g, NULL, 0, f));
	CHECK(cuGraphAddEventRecordNode(&recorded, g, (CUgraphNode[]){child, waited}, 2, e));
	three = two = 1000; /* the values were copied when the nodes were created */
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < 1000; i++)
		CHECK(cuGraphLaunch(x, s));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuEventSynchronize(e));
	CHECK(cuMemcpyDtoH(got, p, 16));
	EXPECT(got[0] == 192 && got[1] == 64 && got[2] == 40 && got[3] == 40);
	EXPECT(pinned[0] == 0 && pinned[1] == 64 && pageable[0] == 192 && pageable[1] == 64);
	EXPECT(taken.calls == 1000);
	if (taken.stale)
		fprintf(stderr, "%u of %u calls of the host function read old data, want %u in all: call %u read %u\n", taken.stale, taken.calls, taken.want, taken.at, taken.first);
	EXPECT(taken.stale == 0);
	from[0] = 41; /* read when it runs */
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemcpyDtoH(got, p, 16));
	EXPECT(got[2] == 41 && got[3] == 41 && taken.calls == 1001);
	CHECK(cuGraphExecDestroy(x));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(x, s));
}

/* A graph with a thousand kernels in eight branches. Its launches run one after the other. */
static void graph_relaunch(void)
{
	CUfunction count = demo_start("count");
	unsigned int one = 1, got[8];
	CUgraphNode tail[8] = {0};
	CUstream s = stream(), u = stream();
	CUdeviceptr p;
	CUgraph g;
	CUgraphExec x;

	CHECK(cuMemAlloc(&p, sizeof got));
	CHECK(cuMemsetD32(p, 0, 8));
	CHECK(cuGraphCreate(&g, 0));
	for (unsigned int i = 0; i < 200; i++) {
		CUdeviceptr at = p + 4 * (i % 8);
		void *params[] = {&at, &one};
		CUDA_KERNEL_NODE_PARAMS k = kernel_params(count, 1, 1, params);

		CHECK(cuGraphAddKernelNode(&tail[i % 8], g, &tail[i % 8], i >= 8, &k));
	}
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < 20; i++)
		CHECK(cuGraphLaunch(x, i % 3 ? s : u));
	CHECK(cuGraphUpload(x, s));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(got, p, sizeof got));
	for (int i = 0; i < 8; i++)
		EXPECT(got[i] == 500);
}

static void graph_edges(void)
{
	CUfunction poke = demo_start("poke");
	CUgraphNode n[4], got[8], to[8];
	CUgraphNodeType type;
	CUgraph g;
	CUdeviceptr p = 4096;
	unsigned int v = 1;
	void *params[] = {&p, &v};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(poke, 1, 1, params), back;
	CUgraphExec x;
	CUDA_GRAPH_INSTANTIATE_PARAMS said = {0};
	size_t count = 8;

	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&g, 1));
	CHECK(cuGraphCreate(&g, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphAddEmptyNode(&n[i], g, NULL, 0));
	CHECK(cuGraphAddKernelNode(&n[3], g, n, 1, &k));
	CHECK(cuGraphAddDependencies_v2(g, (CUgraphNode[]){n[0], n[1]}, (CUgraphNode[]){n[1], n[2]}, NULL, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies_v2(g, &n[0], &n[1], NULL, 1)); /* twice */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies_v2(g, &n[0], &n[0], NULL, 1));
	/* None is added, because the second edge already exists. */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies_v2(g, (CUgraphNode[]){n[0], n[0]}, (CUgraphNode[]){n[2], n[1]}, NULL, 2));
	CHECK(cuGraphGetEdges_v2(g, NULL, NULL, NULL, &count));
	EXPECT(count == 3);
	count = 8;
	CHECK(cuGraphGetEdges_v2(g, got, to, NULL, &count));
	EXPECT(count == 3 && got[3] == NULL && to[7] == NULL);
	CHECK(cuGraphGetRootNodes(g, NULL, &count));
	EXPECT(count == 1);
	CHECK(cuGraphGetRootNodes(g, got, &count));
	EXPECT(got[0] == n[0]);
	CHECK(cuGraphGetNodes(g, NULL, &count));
	EXPECT(count == 4);
	CHECK(cuGraphNodeGetDependentNodes_v2(n[0], NULL, NULL, &count));
	EXPECT(count == 2);
	count = 1;
	CHECK(cuGraphNodeGetDependencies_v2(n[2], got, NULL, &count));
	EXPECT(count == 1 && got[0] == n[1]);
	CHECK(cuGraphNodeGetType(n[3], &type));
	EXPECT(type == CU_GRAPH_NODE_TYPE_KERNEL);
	CHECK(cuGraphKernelNodeGetParams(n[3], &back));
	EXPECT(back.func == poke && back.gridDimX == 1 && *(CUdeviceptr *)back.kernelParams[0] == p && *(unsigned int *)back.kernelParams[1] == 1);

	CHECK(cuGraphAddDependencies_v2(g, &n[2], &n[0], NULL, 1)); /* a cycle */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&x, g, &said));
	EXPECT(said.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
	CHECK(cuGraphRemoveDependencies_v2(g, &n[2], &n[0], NULL, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies_v2(g, &n[2], &n[0], NULL, 1));
}

static void graph_clones(void)
{
	CUgraph g, clone, inner, of_node;
	CUgraphNode n[3], got[1], found;
	CUgraphExec x;
	size_t count = 1;

	(void)demo_start("poke");
	CHECK(cuGraphCreate(&g, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphAddEmptyNode(&n[i], g, &n[i > 0 ? i - 1 : 0], i > 0));
	CHECK(cuGraphClone(&clone, g));
	CHECK(cuGraphNodeFindInClone(&found, n[1], clone));
	EXPECT(found != n[1]);
	CHECK(cuGraphNodeGetDependencies_v2(found, got, NULL, &count));
	CHECK(cuGraphNodeFindInClone(&found, n[0], clone));
	EXPECT(got[0] == found);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&found, n[0], g));
	CHECK(cuGraphDestroyNode(n[1]));
	CHECK(cuGraphGetEdges_v2(g, NULL, NULL, NULL, &count));
	EXPECT(count == 0);
	CHECK(cuGraphGetEdges_v2(clone, NULL, NULL, NULL, &count));
	EXPECT(count == 2);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(n[1]));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&found, g, &n[1], 1));
	CHECK(cuGraphGetNodes(g, NULL, &count));
	EXPECT(count == 2); /* the node that failed was not added */

	CHECK(cuGraphAddChildGraphNode(&found, clone, NULL, 0, g));
	CHECK(cuGraphChildGraphNodeGetGraph(found, &inner));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner)); /* it belongs to the node */
	CHECK(cuGraphDebugDotPrint(clone, "/dev/null", CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
	GIVES(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(clone, "/nonexistent/graph", 0));
	CHECK(cuGraphDestroy(g));
	CHECK(cuGraphDestroy(clone));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(inner, NULL, &count)); /* it was destroyed with its node */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphChildGraphNodeGetGraph(found, &of_node));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(g));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&x, g, 0));
}

/* Nodes that cannot be run are refused when they are added. */
static void graph_refused(void)
{
	CUgraphNode found;
	CUgraphExec x;
	CUgraph g;

	(void)demo_start("poke");
	CHECK(cuGraphCreate(&g, 0));
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT};
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&found, g, NULL, NULL, 0, &any));
	any.type = CU_GRAPH_NODE_TYPE_EMPTY;
	CHECK(cuGraphAddNode_v2(&found, g, NULL, NULL, 0, &any));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuCtxSynchronize());
}

/* Changes the parameters of one node and of all nodes, and disables nodes. */
static void graph_updates(void)
{
	CUfunction poke = demo_start("poke");
	CUdeviceptr p, q;
	unsigned int v = 1, got[2];
	void *params[] = {&p, &v};
	CUDA_KERNEL_NODE_PARAMS k;
	CUgraphExecUpdateResultInfo info;
	CUgraphNode a, b;
	CUgraph g;
	CUgraphExec x;
	unsigned int on;

	CHECK(cuMemAlloc(&p, 8));
	CHECK(cuMemsetD32(p, 0, 2));
	CHECK(cuGraphCreate(&g, 0));
	k = kernel_params(poke, 1, 1, params);
	CHECK(cuGraphAddKernelNode(&a, g, NULL, 0, &k));
	q = p + 4;
	params[0] = &q;
	CHECK(cuGraphAddKernelNode(&b, g, &a, 1, &k));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, NULL));
	v = 2;
	CHECK(cuGraphExecKernelNodeSetParams(x, b, &k)); /* this does not affect the earlier launch */
	CHECK(cuMemcpyDtoH(got, p, 8));
	EXPECT(got[0] == 1 && got[1] == 1);
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemcpyDtoH(got, p, 8));
	EXPECT(got[0] == 1 && got[1] == 2);
	v = 3;
	CHECK(cuGraphKernelNodeSetParams(a, &k)); /* changes the graph, not the executable graph */
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemcpyDtoH(got, p, 8));
	EXPECT(got[0] == 1 && got[1] == 2);
	CHECK(cuGraphExecUpdate(x, g, &info));
	EXPECT(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemcpyDtoH(got, p, 8));
	EXPECT(got[0] == 1 && got[1] == 1); /* a writes 3, then b 1, to the same word */
	CHECK(cuGraphNodeSetEnabled(x, b, 0));
	CHECK(cuGraphNodeGetEnabled(x, b, &on));
	EXPECT(on == 0);
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemcpyDtoH(got, p, 8));
	EXPECT(got[1] == 3);
}

/* Updates by graphs of another structure, and of a child and a host function between
 * launches. */
static void graph_exchanges(void)
{
	CUfunction poke = demo_start("poke");
	CUdeviceptr p;
	unsigned int v = 1, got = 0;
	void *params[] = {&p, &v};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(poke, 1, 1, params);
	struct seen seen = {&got, {0}, 0}, unseen = {&got, {0}, 0};
	CUDA_HOST_NODE_PARAMS h = {look, &seen};
	CUgraphExecUpdateResultInfo info;
	CUgraphNode a, b, c;
	CUgraph g, other;
	CUgraphExec x;

	CHECK(cuMemAlloc(&p, 8));
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddKernelNode(&a, g, NULL, 0, &k));
	CHECK(cuGraphAddKernelNode(&b, g, &a, 1, &k));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphClone(&other, g));
	CHECK(cuGraphAddEmptyNode(&c, other, NULL, 0));
	GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(x, other, &info));
	EXPECT(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	CHECK(cuGraphCreate(&other, 0));
	CHECK(cuGraphAddKernelNode(&c, other, NULL, 0, &k));
	CHECK(cuGraphAddEmptyNode(&c, other, &c, 1));
	GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(x, other, &info));
	EXPECT(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == c);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(x, c, &k)); /* a node of another graph */
	CHECK(cuGraphCreate(&other, 0));
	CHECK(cuGraphAddHostNode(&c, other, NULL, 0, &h));
	CHECK(cuGraphAddChildGraphNode(&b, other, &c, 1, g));
	CHECK(cuGraphInstantiateWithFlags(&x, other, 0));
	CHECK(cuGraphLaunch(x, NULL));
	h.userData = &unseen;
	CHECK(cuGraphExecHostNodeSetParams(x, c, &h));
	CHECK(cuGraphExecChildGraphNodeSetParams(x, b, g));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuCtxSynchronize());
	EXPECT(seen.calls == 1 && unseen.calls == 1);
}

static void gone(void *p)
{
	__atomic_fetch_add((int *)p, 1, __ATOMIC_SEQ_CST);
}

static int settled(const int *p, int want)
{
	for (int i = 0; i < 60000 && __atomic_load_n(p, __ATOMIC_SEQ_CST) != want; i++)
		usleep(1000);
	return __atomic_load_n(p, __ATOMIC_SEQ_CST) == want;
}

/* A graph is destroyed while it runs. User objects are destroyed with the last graph and the
 * last launch. */
static void graph_lifetimes(void)
{
	CUfunction count = demo_start("count");
	unsigned int rounds = 20000, got;
	int ends = 0;
	CUuserObject o;
	CUgraphNode a;
	CUgraph g, clone;
	CUgraphExec x;
	CUdeviceptr p;
	void *params[] = {&p, &rounds};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(count, 4, 64, params);

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddKernelNode(&a, g, NULL, 0, &k));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&o, &ends, gone, 1, 0));
	CHECK(cuUserObjectCreate(&o, &ends, gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CHECK(cuUserObjectRetain(o, 2));
	CHECK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
	CHECK(cuGraphRetainUserObject(g, o, 3, 0));
	CHECK(cuGraphReleaseUserObject(g, o, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(g, o, 3));
	CHECK(cuUserObjectRelease(o, 2));
	CHECK(cuGraphClone(&clone, g));
	CHECK(cuGraphInstantiateWithFlags(&x, clone, 0));
	CHECK(cuGraphDestroy(g));
	CHECK(cuGraphDestroy(clone));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphLaunch(x, NULL));
	EXPECT(ends == 0);
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 3 * 256 * rounds);
	EXPECT(settled(&ends, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(o, 1));
	/* Executable graphs are destroyed with their context. */
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddEmptyNode(&a, g, NULL, 0));
	CHECK(cuUserObjectCreate(&o, &ends, gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CHECK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuGraphDestroy(g));
	EXPECT(ends == 1);
	CHECK(cuCtxDestroy(current()));
	EXPECT(settled(&ends, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy(x));
}

/* A kernel's fault in a graph is the context's permanent error. No later host function is
 * called. */
static void graph_fault(void)
{
	CUfunction poke = demo_start("poke");
	CUdeviceptr wild = 0x10;
	unsigned int v = 1;
	void *params[] = {&wild, &v};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(poke, 1, 1, params);
	struct seen seen = {&v, {0}, 0};
	CUDA_HOST_NODE_PARAMS h = {look, &seen};
	CUgraphNode a, b;
	CUgraph g;
	CUgraphExec x, again;

	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddKernelNode(&a, g, NULL, 0, &k));
	CHECK(cuGraphAddHostNode(&b, g, &a, 1, &h));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, NULL));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	EXPECT(seen.calls == 0);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(x, NULL));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphInstantiateWithFlags(&again, g, 0));
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphDestroy(g));
}

/* Numbers of the program are checked before anything is done. */
static void graph_bad(void)
{
	CUfunction poke = demo_start("poke");
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(poke, 1, 1, NULL);
	CUDA_MEMSET_NODE_PARAMS m = {.dst = 16, .elementSize = 4, .width = 1, .height = 1};
	CUDA_MEMCPY3D c = bytes(CU_MEMORYTYPE_DEVICE, 16, CU_MEMORYTYPE_DEVICE, 16, 4);
	CUDA_HOST_NODE_PARAMS h = {NULL, NULL};
	CUgraphNode n;
	CUdeviceptr p;
	CUgraph g;
	size_t count;

	CHECK(cuMemAlloc(&p, 64));
	CHECK(cuGraphCreate(&g, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&n, g, NULL, 0, &k)); /* no parameters */
	k.func = (CUfunction)(void *)g;
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphAddKernelNode(&n, g, NULL, 0, &k));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&n, g, NULL, 0, &m, current()));
	m.dst = p, m.width = (size_t)1 << 62;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&n, g, NULL, 0, &m, current()));
	m.width = 1, m.height = (size_t)1 << 60, m.pitch = 64;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&n, g, NULL, 0, &m, current()));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, current()));
	c = bytes(CU_MEMORYTYPE_DEVICE, p, CU_MEMORYTYPE_DEVICE, p, 4);
	c.Height = (size_t)1 << 62, c.dstPitch = c.srcPitch = 8;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, current()));
	c.Height = 1, c.Depth = (size_t)1 << 62, c.dstHeight = c.srcHeight = 1, c.dstPitch = c.srcPitch = 4;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, current())); /* beyond the memory */
	c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, current()));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&n, g, NULL, 0, &h));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphAddEventRecordNode(&n, g, NULL, 0, (CUevent)(void *)g));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&n, g, NULL, 0, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&n, g, NULL, 1));
	CHECK(cuGraphGetNodes(g, NULL, &count));
	EXPECT(count == 0);
}

struct crowd {
	CUcontext context;
	CUfunction poke;
	CUgraphExec shared;
	CUdeviceptr p;
	unsigned int place;
};

/* A thread that captures, launches, updates and destroys graphs beside others. */
static void *one_of_many(void *arg)
{
	struct crowd *c = arg;
	CUdeviceptr at = c->p + 4 * c->place;
	unsigned int v, got;
	void *params[] = {&at, &v};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(c->poke, 1, 1, params);
	CUgraphExec x;
	CUgraphNode n;
	CUstream s;
	CUgraph g;
	size_t one = 1;

	CHECK(cuCtxSetCurrent(c->context));
	s = stream();
	for (v = 1; v < 60; v++) {
		CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		CHECK(cuLaunchKernel(c->poke, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
		CHECK(cuStreamEndCapture(s, &g));
		CHECK(cuGraphGetNodes(g, &n, &one));
		CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
		v += 100;
		CHECK(cuGraphExecKernelNodeSetParams(x, n, &k));
		v -= 100;
		CHECK(cuGraphDestroy(g));
		CHECK(cuGraphLaunch(c->shared, s));
		CHECK(cuGraphLaunch(x, s));
		CHECK(cuMemcpyDtoHAsync(&got, at, 4, s));
		CHECK(cuGraphExecDestroy(x));
		CHECK(cuStreamSynchronize(s));
		EXPECT(got == v + 100);
	}
	return NULL;
}

static void graph_threads(void)
{
	enum { THREADS = 4 };
	struct crowd c[THREADS] = {{.poke = demo_start("poke")}};
	struct seen seen = {&c[0].place, {0}, 0};
	CUDA_HOST_NODE_PARAMS h = {look, &seen};
	pthread_t t[THREADS];
	CUgraphNode n;
	CUgraph g;

	c[0].context = current();
	CHECK(cuMemAlloc(&c[0].p, 4 * THREADS));
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddHostNode(&n, g, NULL, 0, &h));
	CHECK(cuGraphInstantiateWithFlags(&c[0].shared, g, 0));
	for (unsigned int i = 0; i < THREADS; i++) {
		c[i] = c[0];
		c[i].place = i;
		EXPECT(pthread_create(&t[i], NULL, one_of_many, &c[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(cuCtxSynchronize());
	EXPECT(seen.calls == THREADS * 59);
}

const struct test graph_tests[] = {
	{"graph_kinds", graph_kinds}, {"graph_relaunch", graph_relaunch}, {"graph_edges", graph_edges},
	{"graph_clones", graph_clones}, {"graph_refused", graph_refused}, {"graph_exchanges", graph_exchanges},
	{"graph_updates", graph_updates}, {"graph_lifetimes", graph_lifetimes}, {"graph_fault", graph_fault},
	{"graph_bad", graph_bad}, {"graph_threads", graph_threads}, {NULL, NULL},
};
