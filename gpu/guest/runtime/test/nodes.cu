// Every kind of node by its own functions: add, get, set, also in the executable graph; queries
// of graphs; and captured streams.
#include <cstring>
#include <initializer_list>
#include <unistd.h>

#include "check.h"

__device__ int variable[4];

__global__ void add(int *p, int n)
{
	*p += n;
}

static int *words; // pinned, eight of them

static void host(void *p)
{
	*(int *)p += 100;
}

static cudaGraph_t empty()
{
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	return g;
}

static cudaGraphNode_t adds(cudaGraph_t g, int *p, int n)
{
	void *args[] = {&p, &n};
	cudaKernelNodeParams k = {(void *)add, dim3(1), dim3(1), 0, args, nullptr};
	cudaGraphNode_t node;

	CHECK(cudaGraphAddKernelNode(&node, g, nullptr, 0, &k));
	return node;
}

static cudaGraphExec_t ready(cudaGraph_t g)
{
	cudaGraphExec_t x;

	CHECK(cudaGraphInstantiateWithFlags(&x, g, 0));
	return x;
}

static void launch(cudaGraphExec_t x)
{
	CHECK(cudaGraphLaunch(x));
	CHECK(cudaDeviceSynchronize());
}

static void kernels()
{
	int *p = &words[1], ten = 10;
	void *args[] = {&p, &ten};
	cudaKernelNodeParams k = {(void *)add, dim3(1), dim3(1), 0, args, nullptr};
	cudaLaunchAttributeValue v = {};
	cudaGraph_t g = empty();
	cudaGraphNode_t a = adds(g, &words[0], 1), b = adds(g, &words[2], 1);
	cudaGraphExec_t x;
	unsigned int on = 9;

	v.priority = -1;
	CHECK(cudaGraphKernelNodeSetAttribute(a, cudaLaunchAttributePriority, &v));
	CHECK(cudaGraphKernelNodeCopyAttributes(a, b));
	v.priority = 5;
	CHECK(cudaGraphKernelNodeGetAttribute(b, cudaLaunchAttributePriority, &v));
	ASSERT(v.priority == -1);
	x = ready(g);
	CHECK(cudaGraphExecKernelNodeSetParams(x, a, &k));
	CHECK(cudaGraphNodeSetEnabled(x, b, 0));
	CHECK(cudaGraphNodeGetEnabled(x, b, &on));
	ASSERT(on == 0);
	launch(x);
	ASSERT(words[0] == 0 && words[1] == 10 && words[2] == 0);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(g));
}

static void copies()
{
	cudaMemcpy3DParms p = {};
	cudaMemsetParams set = {&words[0], 4, 7, 4, 1, 1}, got;
	cudaGraph_t g = empty();
	cudaGraphNode_t first, to, from, plain;
	cudaGraphExec_t x;

	CHECK(cudaGraphAddMemsetNode(&first, g, nullptr, 0, &set));
	CHECK(cudaGraphMemsetNodeGetParams(first, &got));
	ASSERT(got.value == 7 && got.dst == &words[0]);
	got.value = 8;
	CHECK(cudaGraphMemsetNodeSetParams(first, &got));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, g, &first, 1, variable, &words[0], 4, 4, cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from, g, &to, 1, &words[1], variable, 4, 4, cudaMemcpyDeviceToHost));
	p.srcPtr = make_cudaPitchedPtr(&words[1], 4, 4, 1);
	p.dstPtr = make_cudaPitchedPtr(&words[2], 4, 4, 1);
	p.extent = make_cudaExtent(4, 1, 1);
	p.kind = cudaMemcpyHostToHost;
	CHECK(cudaGraphAddMemcpyNode(&plain, g, &from, 1, &p));
	CHECK(cudaGraphMemcpyNodeSetParams1D(plain, &words[3], &words[1], 4, cudaMemcpyDefault));
	x = ready(g);
	launch(x);
	ASSERT(words[1] == 8 && words[2] == 0 && words[3] == 8);
	set.value = 9;
	CHECK(cudaGraphExecMemsetNodeSetParams(x, first, &set));
	CHECK(cudaGraphExecMemcpyNodeSetParams(x, plain, &p));
	CHECK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(x, from, &words[1], variable, 4, 4, cudaMemcpyDeviceToHost));
	launch(x);
	ASSERT(words[1] == 9 && words[2] == 9 && words[3] == 8);
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(x, plain, &words[4], &words[1], 4, cudaMemcpyHostToHost));
	launch(x);
	ASSERT(words[4] == 9);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(g));
}

static void hosts_and_events()
{
	cudaHostNodeParams h = {host, &words[0]}, got;
	cudaEvent_t one, two, e;
	cudaGraph_t g = empty();
	cudaGraphNode_t call, record, wait, nothing;
	cudaGraphExec_t x;
	unsigned long long flags = 9;

	CHECK(cudaEventCreate(&one));
	CHECK(cudaEventCreate(&two));
	CHECK(cudaGraphAddHostNode(&call, g, nullptr, 0, &h));
	CHECK(cudaGraphHostNodeGetParams(call, &got));
	ASSERT(got.fn == host && got.userData == &words[0]);
	got.userData = &words[1];
	CHECK(cudaGraphHostNodeSetParams(call, &got));
	CHECK(cudaGraphAddEventRecordNode(&record, g, &call, 1, one));
	CHECK(cudaGraphEventRecordNodeSetEvent(record, two));
	CHECK(cudaGraphEventRecordNodeGetEvent(record, &e));
	ASSERT(e == two);
	CHECK(cudaGraphAddEventWaitNode(&wait, g, &record, 1, one));
	CHECK(cudaGraphEventWaitNodeSetEvent(wait, two));
	CHECK(cudaGraphEventWaitNodeGetEvent(wait, &e));
	ASSERT(e == two);
	CHECK(cudaGraphAddEmptyNode(&nothing, g, &wait, 1));
	x = ready(g);
	CHECK(cudaGraphExecGetFlags(x, &flags));
	ASSERT(flags == 0);
	CHECK(cudaGraphExecHostNodeSetParams(x, call, &h));
	CHECK(cudaGraphExecEventRecordNodeSetEvent(x, record, one));
	CHECK(cudaGraphExecEventWaitNodeSetEvent(x, wait, one));
	CHECK(cudaGraphUpload(x));
	launch(x);
	CHECK(cudaEventQuery(one));
	ASSERT(words[0] == 100 && words[1] == 0);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(g));
}

static void memory()
{
	cudaMemAllocNodeParams p = {}, got;
	cudaGraph_t g = empty();
	cudaGraphNode_t alloc, release;
	unsigned long long used = 9;
	void *freed;

	p.poolProps.allocType = cudaMemAllocationTypePinned;
	p.poolProps.location = {cudaMemLocationTypeDevice, 0};
	p.bytesize = 1000;
	CHECK(cudaGraphAddMemAllocNode(&alloc, g, nullptr, 0, &p));
	CHECK(cudaGraphMemAllocNodeGetParams(alloc, &got));
	ASSERT(got.dptr == p.dptr && got.bytesize == 1000);
	CHECK(cudaGraphAddMemFreeNode(&release, g, &alloc, 1, p.dptr));
	CHECK(cudaGraphMemFreeNodeGetParams(release, &freed));
	ASSERT(freed == p.dptr);
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
	used = 0;
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
	CHECK(cudaGraphDestroy(g));
	CHECK(cudaDeviceGraphMemTrim(0));
}

// A child, a clone, edges, and an update of an executable graph.
static void structure()
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraphInstantiateParams ip = {};
	cudaGraphEdgeData data[4];
	cudaGraphNode_t nodes[4], more[4], a, b, child, twin;
	cudaGraph_t g = empty(), inner = empty(), other = empty(), clone, got;
	cudaGraphExec_t x;
	size_t n = 4;

	(void)adds(inner, &words[0], 1);
	(void)adds(other, &words[0], 50);
	a = adds(g, &words[1], 1);
	CHECK(cudaGraphAddChildGraphNode(&child, g, &a, 1, inner));
	CHECK(cudaGraphChildGraphNodeGetGraph(child, &got));
	CHECK(cudaGraphGetNodes(got, nodes, &n));
	ASSERT(got != inner && n == 1);
	b = adds(g, &words[2], 1);
	CHECK(cudaGraphAddDependencies(g, &child, &b, 1));
	n = 4;
	CHECK(cudaGraphGetRootNodes(g, nodes, &n));
	ASSERT(n == 1 && nodes[0] == a);
	n = 4;
	CHECK(cudaGraphGetEdges(g, nodes, more, &n));
	ASSERT(n == 2);
	n = 4;
	CHECK(cudaGraphNodeGetDependencies(b, nodes, &n));
	ASSERT(n == 1 && nodes[0] == child);
	n = 4;
	CHECK(cudaGraphNodeGetDependentNodes(a, nodes, &n));
	ASSERT(n == 1 && nodes[0] == child);
	CHECK(cudaGraphRemoveDependencies(g, &child, &b, 1));
	memset(data, 0, sizeof data);
	CHECK(cudaGraphAddDependencies_v2(g, &child, &b, data, 1));
	n = 4;
	CHECK(cudaGraphGetEdges_v2(g, nodes, more, data, &n));
	ASSERT(n == 2);
	n = 4;
	CHECK(cudaGraphNodeGetDependencies_v2(b, nodes, data, &n));
	CHECK(cudaGraphNodeGetDependentNodes_v2(a, nodes, data, &n));
	CHECK(cudaGraphRemoveDependencies_v2(g, &child, &b, data, 1));
	CHECK(cudaGraphClone(&clone, g));
	CHECK(cudaGraphNodeFindInClone(&twin, b, clone));
	CHECK(cudaGraphDestroyNode(twin));
	CHECK(cudaGraphInstantiateWithParams(&x, g, &ip));
	ASSERT(ip.result_out == cudaGraphInstantiateSuccess);
	CHECK(cudaGraphExecChildGraphNodeSetParams(x, child, other));
	launch(x);
	ASSERT(words[0] == 50 && words[1] == 1 && words[2] == 1);
	CHECK(cudaGraphExecUpdate(x, g, &info));
	ASSERT(info.result == cudaGraphExecUpdateSuccess);
	launch(x);
	ASSERT(words[0] == 51 && words[1] == 2);
	WANT(cudaGraphExecUpdate(x, clone, &info), cudaErrorGraphExecUpdateFailure);
	ASSERT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
	CHECK(cudaGraphExecDestroy(x));
	for (cudaGraph_t all : {g, inner, other, clone})
		CHECK(cudaGraphDestroy(all));
}

static void user_objects_and_dot()
{
	static int gone; // static, because the destructor may run at any later time
	cudaUserObject_t object;
	cudaGraph_t g = empty();
	char path[] = "/tmp/nodes-XXXXXX";
	int fd = mkstemp(path);

	(void)adds(g, &words[0], 1);
	CHECK(cudaUserObjectCreate(&object, &gone, host, 1, 1 /* cudaUserObjectNoDestructorSync */));
	CHECK(cudaUserObjectRetain(object, 1));
	CHECK(cudaGraphRetainUserObject(g, object, 2, 1 /* cudaGraphUserObjectMove */));
	CHECK(cudaGraphReleaseUserObject(g, object, 1));
	CHECK(cudaUserObjectRetain(object, 1));
	CHECK(cudaUserObjectRelease(object, 1));
	CHECK(cudaGraphDebugDotPrint(g, path, 0));
	ASSERT(fd >= 0 && lseek(fd, 0, SEEK_END) > 0);
	close(fd);
	unlink(path);
	CHECK(cudaGraphDestroy(g));
}

static void captures()
{
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaStreamCaptureStatus status;
	const cudaGraphEdgeData *edges;
	const cudaGraphNode_t *deps;
	cudaGraphNode_t node;
	unsigned long long id;
	cudaGraphExec_t x;
	cudaGraph_t g, into = empty();
	cudaStream_t s;
	size_t n;

	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	ASSERT(mode == cudaStreamCaptureModeGlobal);
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	add<<<1, 1, 0, s>>>(&words[0], 5);
	CHECK(cudaStreamIsCapturing(s, &status));
	ASSERT(status == cudaStreamCaptureStatusActive);
	CHECK((cudaStreamGetCaptureInfo)(s, &status, &id, &g, &deps, &n));
	ASSERT(n == 1 && id != 0);
	CHECK(cudaStreamGetCaptureInfo_v3(s, &status, &id, &g, &deps, &edges, &n));
	ASSERT(n == 1);
	CHECK(cudaGraphAddEmptyNode(&node, g, deps, 1));
	CHECK(cudaStreamUpdateCaptureDependencies(s, &node, 1, 1 /* cudaStreamSetCaptureDependencies */));
	CHECK(cudaStreamUpdateCaptureDependencies_v2(s, &node, nullptr, 1, 1));
	CHECK(cudaStreamEndCapture(s, &g));
	x = ready(g);
	launch(x);
	ASSERT(words[0] == 5);
	CHECK(cudaStreamBeginCaptureToGraph(s, into, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
	add<<<1, 1, 0, s>>>(&words[1], 6);
	CHECK(cudaStreamEndCapture(s, &g));
	ASSERT(g == into);
	CHECK(cudaGraphExecDestroy(x));
	x = ready(into);
	launch(x);
	ASSERT(words[1] == 6);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(into));
	CHECK(cudaStreamDestroy(s));
}

int main()
{
	void (*all[])() = {kernels, copies, hosts_and_events, memory, structure, user_objects_and_dot, captures};

	CHECK(cudaMallocHost(&words, 32));
	for (auto f : all) {
		memset(words, 0, 32);
		f();
	}
	CHECK(cudaFreeHost(words));
	puts("nodes: OK");
}
