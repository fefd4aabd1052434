/* Tests of graphs that allocate and free memory. */
#include <stdbool.h>
#include <stdint.h>

#include "api.h"

#define SIZE (1u << 20)

static CUDA_MEM_ALLOC_NODE_PARAMS params_of(size_t size)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}}, .bytesize = size};
}

static uint64_t attribute(int which)
{
	uint64_t value = UINT64_MAX;

	CHECK(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

static CUgraphNode memset_node(CUgraph g, CUgraphNode after, CUdeviceptr p, unsigned int value)
{
	CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .value = value, .elementSize = 4, .width = SIZE / 4, .height = 1};
	CUcontext context;
	CUgraphNode n;

	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuGraphAddMemsetNode(&n, g, &after, 1, &set, context));
	return n;
}

static unsigned int word(CUdeviceptr p)
{
	unsigned int got;

	CHECK(cuMemcpyDtoH(&got, p, 4));
	return got;
}

/* A graph that allocates, writes, copies out and frees, launched repeatedly. */
static void memory_inside(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = params_of(SIZE), got;
	CUgraphNode allocate, set, copy, end;
	CUgraph g, other;
	CUgraphExec x, second;
	CUcontext context;
	CUdeviceptr out, freed;
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 4, .Height = 1, .Depth = 1};
	size_t before;
	int type;

	(void)start_alone("poke");
	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuMemAlloc(&out, 4));
	before = free_bytes();
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddMemAllocNode(&allocate, g, NULL, 0, &a));
	EXPECT(a.dptr != 0);
	CHECK(cuGraphNodeGetType(allocate, &type));
	EXPECT(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	CHECK(cuGraphMemAllocNodeGetParams(allocate, &got));
	EXPECT(got.dptr == a.dptr && got.bytesize == SIZE);
	set = memset_node(g, allocate, a.dptr, 42);
	c.srcDevice = a.dptr;
	c.dstDevice = out;
	CHECK(cuGraphAddMemcpyNode(&copy, g, &set, 1, &c, context));
	CHECK(cuGraphAddMemFreeNode(&end, g, &copy, 1, a.dptr));
	CHECK(cuGraphMemFreeNodeGetParams(end, &freed));
	EXPECT(freed == a.dptr);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&end, g, &copy, 1, a.dptr)); /* once */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a.dptr));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a.dptr, NULL));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&other, g));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(copy));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&second, g, 0));
	EXPECT(attribute(0) == 0 && attribute(2) == SIZE);
	for (int i = 0; i < 10; i++) {
		CHECK(cuMemsetD32(out, 0, 1));
		CHECK(cuGraphLaunch(x, NULL));
		EXPECT(word(out) == 42);
	}
	EXPECT(attribute(0) == 0 && attribute(1) == SIZE && attribute(3) == SIZE);
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0)); /* now there is no other executable graph */
	CHECK(cuGraphDestroy(g));
	CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(x));
	EXPECT(attribute(2) == 0 && free_bytes() == before);
}

/* Memory that a graph allocates and does not free belongs to the program, until the program or
 * another graph frees it. */
static void memory_outside(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = params_of(SIZE);
	CUgraphNode allocate, n;
	CUgraphExec x, y;
	CUgraph g, h;
	size_t before;
	unsigned int type;

	(void)start_alone("poke");
	before = free_bytes();
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphCreate(&h, 0));
	CHECK(cuGraphAddMemAllocNode(&allocate, g, NULL, 0, &a));
	(void)memset_node(g, allocate, a.dptr, 7);
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a.dptr)); /* not yet */
	for (int i = 0; i < 6; i++) {
		CHECK(cuGraphLaunch(x, NULL));
		EXPECT(word(a.dptr) == 7 && attribute(0) == SIZE);
		CHECK(cuPointerGetAttribute(&type, 2, a.dptr));
		GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(x, NULL)); /* the program has not freed the memory */
		if (i % 2)
			CHECK(cuMemFree(a.dptr));
		else
			CHECK(cuMemFreeAsync(a.dptr, NULL));
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a.dptr));
		EXPECT(attribute(0) == 0);
	}
	CHECK(cuGraphAddMemFreeNode(&n, h, NULL, 0, a.dptr));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&n, g, NULL, 0, a.dptr));
	CHECK(cuGraphInstantiateWithFlags(&y, h, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(y, NULL)); /* there is no memory to free */
	for (int i = 0; i < 3; i++) {
		CHECK(cuGraphLaunch(x, NULL));
		CHECK(cuGraphLaunch(y, NULL));
	}
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphInstantiateWithFlags(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphLaunch(x, NULL));
	CHECK(cuMemFree(a.dptr));
	CHECK(cuGraphDestroy(h)); /* now another graph may free it */
	CHECK(cuGraphCreate(&h, 0));
	CHECK(cuGraphAddMemFreeNode(&n, h, NULL, 0, a.dptr));
	CHECK(cuGraphLaunch(x, NULL));
	/* The memory remains allocated after its graphs are destroyed. */
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphExecDestroy(y));
	CHECK(cuGraphDestroy(g));
	CHECK(cuGraphDestroy(h));
	EXPECT(word(a.dptr) == 7 && free_bytes() == before - SIZE);
	CHECK(cuMemFree(a.dptr));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a.dptr));
	EXPECT(free_bytes() == before && attribute(2) == 0);
}

/* Stream-ordered allocations in a capture belong to the graph. */
static void memory_captured(void)
{
	unsigned int got = 0;
	CUdeviceptr p, q, mine;
	CUstream s;
	CUgraph g;
	CUgraphExec x;
	size_t before;

	(void)start_alone("poke");
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&mine, 4));
	before = free_bytes();
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	CHECK(cuMemAllocAsync(&p, SIZE, s));
	CHECK(cuMemsetD32Async(p, 5, SIZE / 4, s));
	CHECK(cuMemcpyDtoDAsync(mine, p, 4, s));
	CHECK(cuMemFreeAsync(p, s));
	CHECK(cuMemAllocAsync(&q, SIZE, s));
	CHECK(cuMemsetD32Async(q, 6, SIZE / 4, s));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(mine, s)); /* it does not belong to a graph */
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < 3; i++) {
		CHECK(cuMemsetD32(mine, 0, 1));
		CHECK(cuCtxSynchronize()); /* s does not wait for it */
		CHECK(cuGraphLaunch(x, s));
		CHECK(cuStreamSynchronize(s));
		CHECK(cuMemcpyDtoH(&got, mine, 4));
		EXPECT(got == 5 && word(q) == 6);
		CHECK(cuMemFreeAsync(q, s));
	}
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphDestroy(g));
	CHECK(cuCtxSynchronize());
	EXPECT(free_bytes() == before);
}

static void memory_refused(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = params_of(SIZE), bad;
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUgraphNode n;
	CUgraph g, parent;
	CUcontext context;
	CUdeviceptr p;
	size_t before;

	(void)start_alone("poke");
	CHECK(cuCtxGetCurrent(&context));
	before = free_bytes();
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphCreate(&parent, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&n, g, NULL, 0, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(NULL, g, NULL, 0, &a));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&n, NULL, NULL, 0, &a));
	bad = params_of(0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&n, g, NULL, 0, &bad));
	bad = params_of(SIZE);
	bad.poolProps.location.id = 1;
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuGraphAddMemAllocNode(&n, g, NULL, 0, &bad));
	bad = params_of(SIZE);
	bad.poolProps.handleTypes = 1;
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&n, g, NULL, 0, &bad));
	bad = params_of((size_t)1 << 50);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuGraphAddMemAllocNode(&n, g, NULL, 0, &bad));
	CHECK(cuMemAlloc(&p, 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&n, g, NULL, 0, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&n, g, NULL, 0, 0));
	CHECK(cuMemFree(p));
	EXPECT(free_bytes() == before);
	any.alloc = params_of(SIZE);
	CHECK(cuGraphAddNode(&n, g, NULL, 0, &any));
	EXPECT(any.alloc.dptr && free_bytes() == before - SIZE);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&n, parent, NULL, 0, g));
	p = any.alloc.dptr;
	any = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
	any.free = p;
	CHECK(cuGraphAddNode(&n, g, NULL, 0, &any));
	CHECK(cuGraphDestroy(g));
	EXPECT(free_bytes() == before);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	/* The memory is freed with its context. */
	CHECK(cuGraphAddMemAllocNode(&n, parent, NULL, 0, &a));
	CHECK(cuCtxDestroy(context));
	CHECK(cuGraphDestroy(parent));
	EXPECT(attribute(2) == 0);
}

const struct test graph_memory_tests[] = {
	{"graph_memory_inside", memory_inside}, {"graph_memory_outside", memory_outside}, {"graph_memory_captured", memory_captured},
	{"graph_memory_refused", memory_refused}, {NULL, NULL},
};
