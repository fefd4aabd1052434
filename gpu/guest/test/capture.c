/* Tests of stream capture. */
#include "api.h"

struct work {
	CUfunction count;
	CUstream s, u;
	CUevent fork, join;
	CUdeviceptr p;
	unsigned int rounds;
};

static struct work start(void)
{
	struct work w = {.count = demo_start("count"), .rounds = 1};

	CHECK(cuStreamCreate(&w.s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&w.u, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&w.fork, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&w.join, CU_EVENT_DISABLE_TIMING));
	CHECK(cuMemAlloc(&w.p, 64));
	CHECK(cuMemsetD32(w.p, 0, 16));
	CHECK(cuCtxSynchronize());
	return w;
}

static void add(struct work *w, CUstream s, unsigned int word, unsigned int threads)
{
	CUdeviceptr at = w->p + 4 * word;
	void *params[] = {&at, &w->rounds};

	CHECK(cuLaunchKernel(w->count, 1, 1, 1, threads, 1, 1, 0, s, params, NULL));
}

static unsigned int word(const struct work *w, unsigned int i)
{
	unsigned int got;

	CHECK(cuMemcpyDtoH(&got, w->p + 4 * i, 4));
	return got;
}

static CUstreamCaptureStatus status(CUstream s)
{
	CUstreamCaptureStatus st;

	CHECK(cuStreamIsCapturing(s, &st));
	return st;
}

/* Work forks to a second stream and joins again, as in PyTorch. Nothing runs before the launch,
 * and every launch runs everything. */
static void capture_fork(void)
{
	struct work w = start();
	CUstreamCaptureStatus st;
	cuuint64_t id = 0;
	const CUgraphNode *deps;
	CUgraphNode nodes[8];
	CUgraph g, seen;
	CUgraphExec x;
	size_t n;

	EXPECT(status(w.s) == CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	add(&w, w.s, 0, 1);
	CHECK(cuEventRecord(w.fork, w.s));
	EXPECT(status(w.u) == CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK(cuStreamWaitEvent(w.u, w.fork, 0));
	EXPECT(status(w.u) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	add(&w, w.u, 1, 2);
	add(&w, w.s, 2, 3);
	CHECK(cuMemcpyDtoDAsync(w.p + 12, w.p + 4, 4, w.u));
	CHECK(cuEventRecord(w.join, w.u));
	CHECK(cuStreamWaitEvent(w.s, w.join, 0));
	CHECK(cuStreamGetCaptureInfo(w.s, &st, &id, &seen, &deps, &n));
	EXPECT(st == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && n == 2);
	CHECK(cuMemsetD32Async(w.p + 16, 7, 1, w.s));
	CHECK(cuMemcpyDtoDAsync(w.p + 20, w.p, 0, w.s)); /* a copy of 0 bytes adds no node */
	CHECK(cuStreamEndCapture(w.s, &g));
	EXPECT(g == seen && status(w.s) == 0 && status(w.u) == 0);
	n = 8;
	CHECK(cuGraphGetNodes(g, nodes, &n));
	EXPECT(n == 5);
	CHECK(cuGraphNodeGetDependencies_v2(nodes[4], NULL, NULL, &n));
	EXPECT(n == 2);
	EXPECT(word(&w, 0) == 0 && word(&w, 4) == 0);
	CHECK(cuGraphInstantiateWithFlags(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 1000; i++)
		CHECK(cuGraphLaunch(x, w.s));
	add(&w, w.u, 15, 1); /* the streams are not capturing any more */
	CHECK(cuCtxSynchronize());
	EXPECT(word(&w, 0) == 1000 && word(&w, 1) == 2000 && word(&w, 2) == 3000 && word(&w, 3) == 2000 && word(&w, 4) == 7);
	GIVES(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(w.fork)); /* until it is recorded again */
	CHECK(cuEventRecord(w.fork, w.s));
	CHECK(cuEventSynchronize(w.fork));
}

static void called(void *p)
{
	++*(int *)p;
}

/* Copies in boxes and of pageable memory, host functions, external events, a
 * graph in a graph, and dependencies that the program sets itself. */
static void capture_kinds(void)
{
	struct work w = start();
	unsigned int in[16], out[4] = {0}, *pinned;
	CUgraph g, inner;
	CUgraphExec x, child;
	CUgraphNode own;
	const CUgraphNode *deps;
	CUstreamCaptureStatus st;
	size_t n;
	int calls = 0;

	for (unsigned int i = 0; i < 16; i++)
		in[i] = 100 + i;
	CHECK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	CHECK(cuStreamBeginCapture(w.u, CU_STREAM_CAPTURE_MODE_RELAXED));
	add(&w, w.u, 8, 5);
	CHECK(cuStreamEndCapture(w.u, &inner));
	CHECK(cuGraphInstantiateWithFlags(&child, inner, 0));

	CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 16, .srcXInBytes = 4,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = w.p, .dstPitch = 8, .WidthInBytes = 8, .Height = 2};
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	CHECK(cuMemcpy2DAsync(&box, w.s));
	CHECK(cuMemcpyDtoHAsync(out, w.p, 16, w.s)); /* not done now, although the memory is pageable */
	CHECK(cuLaunchHostFunc(w.s, called, &calls));
	CHECK(cuGraphLaunch(child, w.s));
	CHECK(cuMemcpyDtoHAsync(pinned, w.p + 32, 4, w.s));
	CHECK(cuMemsetD2D32Async(w.p + 40, 8, 3, 1, 2, w.s));
	CHECK(cuEventRecordWithFlags(w.join, w.s, CU_EVENT_RECORD_EXTERNAL));
	CHECK(cuStreamGetCaptureInfo(w.s, &st, NULL, &g, &deps, &n));
	EXPECT(n == 1);
	CHECK(cuGraphAddEmptyNode(&own, g, deps, n));
	CHECK(cuStreamUpdateCaptureDependencies_v2(w.s, &own, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	CHECK(cuStreamEndCapture(w.s, &g));
	CHECK(cuGraphGetNodes(g, NULL, &n));
	EXPECT(n == 8 && out[0] == 0 && calls == 0);
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, w.s));
	CHECK(cuStreamSynchronize(w.s));
	EXPECT(out[0] == 101 && out[1] == 102 && out[2] == 105 && out[3] == 106 && calls == 1 && *pinned == 5);
	EXPECT(word(&w, 10) == 3 && word(&w, 11) == 0 && word(&w, 12) == 3);
	in[1] = 500;
	for (int i = 0; i < 50; i++)
		CHECK(cuGraphLaunch(x, w.s));
	CHECK(cuStreamSynchronize(w.s));
	EXPECT(out[0] == 500 && calls == 51 && *pinned == 5 * 51);
}

/* Captures into a graph of the program. */
static void capture_into(void)
{
	struct work w = start();
	CUgraph g, inner;
	CUgraphNode node;
	size_t n;

	CHECK(cuGraphCreate(&inner, 0));
	CHECK(cuGraphAddEmptyNode(&node, inner, NULL, 0));
	CHECK(cuStreamBeginCaptureToGraph(w.s, inner, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner));
	add(&w, w.s, 9, 1);
	CHECK(cuStreamEndCapture(w.s, &g));
	EXPECT(g == inner);
	CHECK(cuGraphNodeGetDependentNodes_v2(node, NULL, NULL, &n));
	EXPECT(n == 1);
	CHECK(cuGraphDestroy(inner));
}

/* Ends an invalidated capture, which gives no graph. */
static void lost(CUstream s)
{
	CUgraph g = (CUgraph)(void *)&g;

	EXPECT(status(s) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
	EXPECT(g == NULL && status(s) == CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Calls that are not allowed in a capturing stream, or in a thread that captures. */
static void capture_forbidden(void)
{
	struct work w = start();
	CUdeviceptr p;
	CUgraph g;

	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture(w.s, 3));
	GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(w.s, &g));
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(w.s));
	void *params[] = {&w.p, &w.rounds};
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuLaunchKernel(w.count, 1, 1, 1, 1, 1, 1, 0, w.s, params, NULL));
	lost(w.s);

	CUresult (*const waits[])(CUstream) = {cuStreamQuery, cuStreamSynchronize};
	for (int i = 0; i < 2; i++) {
		CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_RELAXED));
		GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, waits[i](w.s));
		lost(w.s);
	}
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_RELAXED));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
	lost(w.s);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&p, 16));
	lost(w.s);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuMemAlloc(&p, 16)); /* allowed there, and not part of the graph */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, w.s)); /* it does not belong to a graph */
	CHECK(cuStreamEndCapture(w.s, &g));
}

/* Unjoined work, an end in another stream, and a wait for work outside of the capture. Two
 * captures are separate, and events of a capture cannot be queried. */
static void capture_edges(void)
{
	struct work w = start();
	CUgraph g;

	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuEventRecord(w.fork, w.s));
	CHECK(cuStreamWaitEvent(w.u, w.fork, 0));
	add(&w, w.u, 0, 1);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(w.s, &g));
	EXPECT(status(w.u) == 0);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuEventRecord(w.fork, w.s));
	CHECK(cuStreamWaitEvent(w.u, w.fork, 0));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(w.u, &g));
	lost(w.s);
	CHECK(cuEventRecord(w.join, w.u));
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(w.s, w.join, 0));
	lost(w.s);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuStreamBeginCapture(w.u, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuEventRecord(w.fork, w.s));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(w.u, w.fork, 0));
	lost(w.u);
	lost(w.s);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuEventRecord(w.fork, w.s));
	GIVES(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(w.fork));
	lost(w.s);
	GIVES(CUDA_ERROR_CAPTURED_EVENT, cuStreamWaitEvent(w.u, w.fork, 0));
}

/* If a stream is destroyed while it participates, the capture keeps its work. */
static void capture_streams_go(void)
{
	struct work w = start();
	CUgraphExec x;
	CUgraph g;

	for (int join = 0; join < 2; join++) {
		CUstream gone;
		CUevent joined;

		CHECK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
		CHECK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
		CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
		CHECK(cuEventRecord(w.fork, w.s));
		CHECK(cuStreamWaitEvent(gone, w.fork, 0));
		add(&w, gone, 0, 4);
		CHECK(cuEventRecord(joined, gone));
		CHECK(cuStreamDestroy(gone));
		if (join)
			CHECK(cuStreamWaitEvent(w.s, joined, 0));
		CHECK(cuEventDestroy(joined));
		add(&w, w.s, 1, 2);
		GIVES(join ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(w.s, &g));
	}
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, w.s));
	CHECK(cuStreamSynchronize(w.s));
	EXPECT(word(&w, 0) == 4 && word(&w, 1) == 2);
}

/* The legacy stream beside a capturing blocking stream, and streams that are destroyed. */
static void capture_legacy(void)
{
	struct work w = start();
	CUstream blocking, gone;
	CUstreamCaptureStatus st;
	CUdeviceptr p;
	unsigned int v;
	int data = 0;
	CUgraph h;

	CHECK(cuStreamCreate(&blocking, 0));
	CHECK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &st));
	EXPECT(status(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32(w.p, 0, 1));
	lost(blocking);
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuMemsetD32(w.p, 3, 1)); /* allowed, because the capturing stream is non-blocking */
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(w.s, (CUstreamCallback)(void *)called, &data, 0));
	lost(w.s);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(w.join, w.s, CU_EVENT_RECORD_EXTERNAL));

	CHECK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(gone, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuStreamDestroy(gone));
	CHECK(cuMemAlloc(&p, 16));
	CHECK(cuStreamBeginCapture(w.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuStreamEndCapture(w.s, &h)); /* an empty graph */
	CHECK(cuMemcpyDtoH(&v, w.p, 4));
	EXPECT(v == 3 && data == 0);
}

struct other {
	CUcontext context;
	CUstream s;
	CUstreamCaptureMode mode;
	CUresult alloc, end;
};

static void *elsewhere(void *arg)
{
	struct other *o = arg;
	CUstreamCaptureMode mode = o->mode;
	CUdeviceptr p;
	CUgraph g;

	CHECK(cuCtxSetCurrent(o->context));
	CHECK(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	o->alloc = cuMemAlloc(&p, 16);
	o->end = cuStreamEndCapture(o->s, &g);
	return NULL;
}

/* The calls that another thread may make while this one captures. */
static void capture_modes(void)
{
	enum { GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL, LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED };
	static const struct {
		CUstreamCaptureMode capture, thread;
		CUresult alloc, end;
	} rows[] = {
		{GLOBAL, GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD},
		{GLOBAL, LOCAL, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD},
		{GLOBAL, RELAXED, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD},
		{LOCAL, GLOBAL, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD},
		{RELAXED, GLOBAL, 0, 0},
	};
	struct work w = start();
	struct other o = {.s = w.s};
	CUstreamCaptureMode mode = RELAXED;
	CUdeviceptr p;
	pthread_t t;
	CUgraph g;

	CHECK(cuCtxGetCurrent(&o.context));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(cuStreamBeginCapture(w.s, rows[i].capture));
		o.mode = rows[i].thread;
		EXPECT(pthread_create(&t, NULL, elsewhere, &o) == 0);
		pthread_join(t, NULL);
		GIVES(rows[i].alloc, o.alloc);
		GIVES(rows[i].end, o.end);
		if (o.end)
			GIVES(o.alloc ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0, cuStreamEndCapture(w.s, &g));
	}
	CHECK(cuStreamBeginCapture(w.s, GLOBAL));
	CHECK(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT(mode == GLOBAL);
	CHECK(cuMemAlloc(&p, 16));
	CHECK(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT(mode == RELAXED);
	mode = 7;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(cuStreamEndCapture(w.s, &g));
}

static CUkernelNodeAttrValue attribute(CUgraph g, size_t i, int id)
{
	CUkernelNodeAttrValue v;
	CUgraphNode nodes[8];
	size_t n = 8;

	memset(&v, 0xee, sizeof v);
	CHECK(cuGraphGetNodes(g, nodes, &n));
	EXPECT(i < n);
	CHECK(cuGraphKernelNodeGetAttribute(nodes[i], id, &v));
	return v;
}

/* A kernel has the attributes that its stream had when it was captured. Attributes that only
 * streams have are not copied. */
static void capture_attributes(void)
{
	struct work w = start();
	CUstreamAttrValue window = {.accessPolicyWindow = {(void *)(uintptr_t)w.p, 64, 0.5f, 2, 1}}, none = {{0}}, v;
	CUgraphNode nodes[8];
	CUgraph g, clone;
	CUgraphExec x;
	CUstream fast;
	size_t n = 8;

	/* A priority, before any stream has been given an attribute. */
	CHECK(cuStreamCreateWithPriority(&fast, CU_STREAM_NON_BLOCKING, -3));
	CHECK(cuStreamBeginCapture(fast, CU_STREAM_CAPTURE_MODE_RELAXED));
	add(&w, fast, 0, 1);
	CHECK(cuStreamEndCapture(fast, &g));
	EXPECT(attribute(g, 0, CU_LAUNCH_ATTRIBUTE_PRIORITY).priority == -3);
	EXPECT(attribute(g, 0, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes == 0);

	v.syncPolicy = CU_SYNC_POLICY_YIELD;
	CHECK(cuStreamSetAttribute(fast, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	CHECK(cuStreamSetAttribute(fast, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window));
	CHECK(cuStreamBeginCapture(fast, CU_STREAM_CAPTURE_MODE_RELAXED));
	add(&w, fast, 0, 1);
	CHECK(cuStreamSetAttribute(fast, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &none));
	add(&w, fast, 0, 2);
	CHECK(cuStreamEndCapture(fast, &g));
	EXPECT(attribute(g, 0, CU_LAUNCH_ATTRIBUTE_PRIORITY).priority == -3 && attribute(g, 1, CU_LAUNCH_ATTRIBUTE_PRIORITY).priority == -3);
	v = attribute(g, 0, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	EXPECT(memcmp(&v.accessPolicyWindow, &window.accessPolicyWindow, 28) == 0);
	EXPECT(attribute(g, 1, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes == 0);
	CHECK(cuGraphClone(&clone, g));
	v = attribute(clone, 0, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	EXPECT(memcmp(&v.accessPolicyWindow, &window.accessPolicyWindow, 28) == 0);
	CHECK(cuGraphGetNodes(g, nodes, &n));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphKernelNodeGetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));

	/* The program can change attributes; changing parameters does not change them. */
	CHECK(cuGraphKernelNodeSetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window));
	window.accessPolicyWindow.num_bytes = 65;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window));
	CUDA_KERNEL_NODE_PARAMS k;

	CHECK(cuGraphKernelNodeGetParams_v2(nodes[1], &k));
	CHECK(cuGraphKernelNodeSetParams_v2(nodes[1], &k));
	EXPECT(attribute(g, 1, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes == 64);
	EXPECT(attribute(g, 1, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap.remote == 1);
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphKernelNodeGetParams_v2(nodes[1], &k)); /* the old parameters are freed */
	CHECK(cuGraphExecKernelNodeSetParams_v2(x, nodes[1], &k));
	CHECK(cuGraphLaunch(x, fast));
	CHECK(cuStreamSynchronize(fast));
	EXPECT(word(&w, 0) == 3);
}

const struct test capture_tests[] = {
	{"capture_fork", capture_fork}, {"capture_kinds", capture_kinds}, {"capture_into", capture_into},
	{"capture_forbidden", capture_forbidden}, {"capture_edges", capture_edges}, {"capture_legacy", capture_legacy},
	{"capture_streams_go", capture_streams_go},
	{"capture_modes", capture_modes}, {"capture_attributes", capture_attributes}, {NULL, NULL},
};
