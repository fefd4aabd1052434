// Graphs whose nodes are created by type: conditional nodes, whose conditions kernels set, and
// all others. Parameters that were read from a node can be set again.
#include <cstring>

#include "check.h"

__device__ int variable[4];

__global__ void add(int *p, int n)
{
	*p += n;
}

// Sets the condition to the number of remaining rounds.
__global__ void count_down(cudaGraphConditionalHandle h, int *p)
{
	cudaGraphSetConditional(h, (unsigned int)--*p);
}

__global__ void choose(cudaGraphConditionalHandle h, const int *value)
{
	cudaGraphSetConditional(h, (unsigned int)*value);
}

static int *words; // pinned, eight of them

static cudaGraphNode_t node(cudaGraph_t g, cudaGraphNode_t behind, cudaGraphNodeParams &p)
{
	cudaGraphNode_t n;

	if (behind) {
		cudaGraphEdgeData edge = {};

		CHECK(cudaGraphAddNode_v2(&n, g, &behind, &edge, 1, &p));
	} else {
		CHECK(cudaGraphAddNode(&n, g, nullptr, 0, &p));
	}
	return n;
}

template <class... A> static cudaGraphNodeParams kernel(void (*f)(A...), A... a)
{
	static void *args[4];
	static char room[4][8];
	int i = 0;
	cudaGraphNodeParams p = {cudaGraphNodeTypeKernel};

	((memcpy(room[i], &a, sizeof a), args[i] = room[i], i++), ...);
	p.kernel = {(void *)f, dim3(1), dim3(1), 0, args, nullptr};
	return p;
}

static cudaGraphNode_t adds(cudaGraph_t g, cudaGraphNode_t behind, int i, int n)
{
	cudaGraphNodeParams p = kernel(add, &words[i], n);

	return node(g, behind, p);
}

static cudaGraph_t *bodies(cudaGraph_t g, cudaGraphNode_t behind, cudaGraphConditionalHandle h, cudaGraphConditionalNodeType type, unsigned int size)
{
	cudaGraphNodeParams p = {cudaGraphNodeTypeConditional};
	cudaGraphNodeType is;

	p.conditional = {h, type, size, nullptr};
	CHECK(cudaGraphNodeGetType(node(g, behind, p), &is));
	ASSERT(is == cudaGraphNodeTypeConditional && p.conditional.phGraph_out);
	return p.conditional.phGraph_out;
}

static void run(cudaGraph_t g, int times)
{
	cudaGraphExec_t x;

	CHECK(cudaGraphInstantiate(&x, g));
	for (int i = 0; i < times; i++)
		CHECK(cudaGraphLaunch(x));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaGraphExecDestroy(x));
}

// A loop whose rounds a word determines, with an if in each round.
static void loops()
{
	cudaGraphConditionalHandle rounds, every;
	cudaGraphNodeParams p = {cudaGraphNodeTypeEmpty};
	cudaGraph_t g, *body;
	cudaGraphNode_t n;

	memset(words, 0, 32);
	words[0] = 5, words[3] = 1;
	CHECK(cudaGraphCreate(&g, 0));
	CHECK(cudaGraphConditionalHandleCreate(&rounds, g, 1, cudaGraphCondAssignDefault));
	CHECK(cudaGraphConditionalHandleCreate(&every, g, 0, 0));
	body = bodies(g, nullptr, rounds, cudaGraphCondTypeWhile, 1);
	p = kernel(count_down, rounds, &words[0]);
	n = node(body[0], nullptr, p);
	p = kernel(choose, every, (const int *)&words[3]);
	n = node(body[0], adds(body[0], n, 1, 1), p);
	body = bodies(body[0], n, every, cudaGraphCondTypeIf, 1);
	adds(body[0], nullptr, 2, 10);
	run(g, 1);
	ASSERT(words[0] == 0 && words[1] == 5 && words[2] == 50);
	CHECK(cudaGraphDestroy(g));
}

static void switches()
{
	memset(words, 0, 32);
	for (unsigned int value = 0; value < 4; value++) {
		cudaGraphConditionalHandle h;
		cudaGraph_t g, *body;

		CHECK(cudaGraphCreate(&g, 0));
		CHECK(cudaGraphConditionalHandleCreate(&h, g, value, cudaGraphCondAssignDefault));
		body = bodies(g, nullptr, h, cudaGraphCondTypeSwitch, 3);
		for (int i = 0; i < 3; i++)
			adds(body[i], nullptr, i, 1);
		run(g, 2);
		CHECK(cudaGraphDestroy(g));
	}
	ASSERT(words[0] == 2 && words[1] == 2 && words[2] == 2);
}

static void wrong_conditions()
{
	cudaGraphNodeParams p = {cudaGraphNodeTypeConditional};
	cudaGraphConditionalHandle h;
	cudaGraphNode_t n;
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	p.conditional = {1, cudaGraphCondTypeIf, 1, nullptr};
	WANT(cudaGraphAddNode(&n, g, nullptr, 0, &p), cudaErrorInvalidValue);
	WANT(cudaGraphAddNode(&n, g, nullptr, 0, nullptr), cudaErrorInvalidValue);
	WANT(cudaGraphConditionalHandleCreate(&h, g, 0, 2), cudaErrorInvalidValue);
	WANT(cudaGraphConditionalHandleCreate(nullptr, g, 0, 0), cudaErrorInvalidValue);
	p.type = cudaGraphNodeTypeKernel;
	p.kernel = {&p, dim3(1), dim3(1), 0, nullptr, nullptr};
	WANT(cudaGraphAddNode(&n, g, nullptr, 0, &p), cudaErrorInvalidDeviceFunction);
	CHECK(cudaGraphDestroy(g));
}

static void host(void *p)
{
	*(int *)p += 100;
}

// One node of every other type, each of which depends on the previous one.
static void every_type()
{
	cudaGraphNodeParams p = {cudaGraphNodeTypeMemAlloc};
	cudaGraph_t g, child;
	cudaGraphNode_t n;
	cudaEvent_t event;
	int *d;

	memset(words, 0, 32);
	CHECK(cudaEventCreate(&event));
	CHECK(cudaGraphCreate(&g, 0));
	CHECK(cudaGraphCreate(&child, 0));
	p.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
	p.alloc.poolProps.location = {cudaMemLocationTypeDevice, 0};
	p.alloc.bytesize = 4;
	n = node(g, nullptr, p);
	d = (int *)p.alloc.dptr;
	p = {cudaGraphNodeTypeMemset};
	p.memset = {d, 4, 3, 4, 1, 1};
	n = node(g, n, p);
	p = kernel(add, d, 4);
	(void)node(child, nullptr, p);
	p = {cudaGraphNodeTypeGraph};
	p.graph.graph = child;
	n = node(g, n, p);
	p = {cudaGraphNodeTypeMemcpy};
	p.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(d, 4, 4, 1);
	p.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(&words[0], 4, 4, 1);
	p.memcpy.copyParams.extent = make_cudaExtent(4, 1, 1);
	p.memcpy.copyParams.kind = cudaMemcpyDefault;
	n = node(g, n, p);
	p = {cudaGraphNodeTypeMemFree};
	p.free.dptr = d;
	n = node(g, n, p);
	p = {cudaGraphNodeTypeEventRecord};
	p.eventRecord.event = event;
	n = node(g, n, p);
	p = {cudaGraphNodeTypeWaitEvent};
	p.eventWait.event = event;
	n = node(g, n, p);
	p = {cudaGraphNodeTypeEmpty};
	n = node(g, n, p);
	p = {cudaGraphNodeTypeHost};
	p.host = {host, &words[0]};
	(void)node(g, n, p);
	run(g, 1);
	ASSERT(words[0] == 107);
	CHECK(cudaEventQuery(event));
	CHECK(cudaGraphDestroy(g));
	CHECK(cudaGraphDestroy(child));
	CHECK(cudaEventDestroy(event));
}

// The parameters that a node returns can be set again, in the graph and in the executable graph.
static void set_again()
{
	cudaKernelNodeParams k;
	cudaMemcpy3DParms c;
	cudaGraphNodeParams p = {cudaGraphNodeTypeEmpty};
	cudaGraphNode_t n, copy;
	cudaGraphExec_t x;
	cudaGraph_t g;
	int two = 2;
	void *args[] = {&words, &two};

	memset(words, 0, 32);
	CHECK(cudaGraphCreate(&g, 0));
	n = adds(g, nullptr, 0, 1);
	CHECK(cudaGraphKernelNodeGetParams(n, &k));
	ASSERT(k.func == (void *)add && k.blockDim.x == 1);
	k.kernelParams = args;
	CHECK(cudaGraphKernelNodeSetParams(n, &k));
	CHECK(cudaGraphAddMemcpyNode1D(&copy, g, &n, 1, &words[4], &words[0], 4, cudaMemcpyHostToHost));
	CHECK(cudaGraphMemcpyNodeGetParams(copy, &c));
	ASSERT(c.srcPtr.ptr == &words[0] && c.dstPtr.ptr == &words[4] && c.extent.width == 4 && c.kind == cudaMemcpyHostToHost);
	c.dstPtr.ptr = &words[5];
	CHECK(cudaGraphMemcpyNodeSetParams(copy, &c));
	run(g, 1);
	ASSERT(words[0] == 2 && words[4] == 0 && words[5] == 2);
	p = kernel(add, &words[1], 7);
	CHECK(cudaGraphNodeSetParams(n, &p));
	CHECK(cudaGraphMemcpyNodeSetParamsToSymbol(copy, variable, &words[0], 4, 8, cudaMemcpyHostToDevice));
	CHECK(cudaGraphInstantiate(&x, g));
	CHECK(cudaGraphLaunch(x));
	p = kernel(add, &words[1], 10);
	CHECK(cudaGraphExecNodeSetParams(x, n, &p));
	CHECK(cudaGraphExecMemcpyNodeSetParamsToSymbol(x, copy, variable, &words[1], 4, 12, cudaMemcpyHostToDevice));
	CHECK(cudaGraphLaunch(x));
	CHECK(cudaMemcpyFromSymbol(&words[2], variable, 16));
	ASSERT(words[1] == 17 && words[2] == 0 && words[4] == 2 && words[5] == 17);
	CHECK(cudaGraphMemcpyNodeSetParamsFromSymbol(copy, &words[6], variable, 4, 12, cudaMemcpyDeviceToHost));
	run(g, 1);
	CHECK(cudaGraphDestroy(g));
	CHECK(cudaGraphExecDestroy(x));
	ASSERT(words[6] == 17 && words[1] == 24);
}

int main()
{
	CHECK(cudaMallocHost(&words, 32));
	loops();
	switches();
	wrong_conditions();
	every_type();
	set_again();
	CHECK(cudaFreeHost(words));
	puts("graphs: OK");
}
