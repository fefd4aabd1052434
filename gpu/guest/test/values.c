/* Tests of streams that wait for a value in memory. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>

#include "api.h"

static CUstream stream_new(void)
{
	CUstream s;

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

/* Checks that a stream still waits, after another stream has completed work. */
static void expect_waiting(CUstream s, CUstream other)
{
	for (int i = 0; i < 5; i++) {
		CHECK(cuStreamSynchronize(other)); /* the values are checked after each operation */
		GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	}
}

static void write_value(CUstream s, bool wide, CUdeviceptr p, uint64_t value)
{
	if (wide)
		CHECK(cuStreamWriteValue64(s, p, value, 0));
	else
		CHECK(cuStreamWriteValue32(s, p, (uint32_t)value, 0));
}

/* Each comparison, with a value for which the stream waits and one for which it continues. */
static void values_compare(void)
{
	static const struct {
		unsigned int flags;
		uint64_t wanted, waits, goes;
	} cases[] = {
		{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6},
		{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5},
		{CU_STREAM_WAIT_VALUE_GEQ, 2, UINT64_MAX - 1, 2}, /* modular comparison: -2 is less than 2 */
		{CU_STREAM_WAIT_VALUE_GEQ, UINT64_MAX - 1, UINT64_MAX - 2, 3},
		{CU_STREAM_WAIT_VALUE_EQ, 7, 8, 7},
		{CU_STREAM_WAIT_VALUE_AND, 6, 9, 12},
		{CU_STREAM_WAIT_VALUE_NOR, 0xff, UINT64_MAX << 8, UINT64_MAX << 9},
	};
	CUstream waiting, writing;
	CUdeviceptr p;

	(void)demo_start("poke");
	waiting = stream_new();
	writing = stream_new();
	CHECK(cuMemAlloc(&p, 16));
	for (int wide = 0; wide < 2; wide++) {
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			write_value(writing, wide, p, cases[i].waits);
			CHECK(cuStreamSynchronize(writing));
			CHECK(wide ? cuStreamWaitValue64(waiting, p, cases[i].wanted, cases[i].flags) :
				     cuStreamWaitValue32(waiting, p, (uint32_t)cases[i].wanted, cases[i].flags));
			expect_waiting(waiting, writing);
			write_value(writing, wide, p, cases[i].goes);
			CHECK(cuStreamSynchronize(waiting));
		}
	}
}

/* Work after a wait reads what was written before the value, whatever wrote it: a kernel, a
 * copy, a write in a stream, or the program. */
static void values_written(void)
{
	CUfunction f = demo_start("poke");
	CUstream waiting, other;
	unsigned int got, value;
	_Atomic uint32_t *shared;
	CUdeviceptr p;
	void *params[] = {&p, &value};

	waiting = stream_new();
	other = stream_new();
	CHECK(cuMemAlloc(&p, 8));
	CHECK(cuMemsetD32(p, 0, 2));
	CHECK(cuMemHostAlloc((void **)&shared, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	atomic_store(shared, 0);
	CHECK(cuCtxSynchronize());
	for (value = 1; value <= 40; value++) {
		CUdeviceptr at = value % 4 == 3 ? (uintptr_t)shared : p;

		CHECK(cuStreamWaitValue32(waiting, at, value, CU_STREAM_WAIT_VALUE_EQ));
		CHECK(cuMemcpyDtoDAsync(p + 4, at, 4, waiting));
		switch (value % 4) {
		case 0: CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, other, params, NULL)); break;
		case 1: CHECK(cuMemcpyHtoDAsync(p, &value, 4, other)); break;
		case 2: CHECK(cuStreamWriteValue32(other, p, value, 0)); break;
		case 3: atomic_store(shared, value); break;
		}
		CHECK(cuStreamSynchronize(waiting));
		CHECK(cuMemcpyDtoH(&got, p + 4, 4));
		EXPECT(got == value);
	}
}

/* Two streams alternately increase a number. */
static void values_ping_pong(void)
{
	CUstream a, b;
	CUdeviceptr p;
	unsigned int got;

	(void)demo_start("poke");
	a = stream_new();
	b = stream_new();
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuCtxSynchronize());
	for (unsigned int i = 0; i < 200; i++) {
		CHECK(cuStreamWaitValue32(a, p, 2 * i, CU_STREAM_WAIT_VALUE_EQ));
		CHECK(cuStreamWriteValue32(a, p, 2 * i + 1, 0));
		CHECK(cuStreamWaitValue32(b, p, 2 * i + 1, CU_STREAM_WAIT_VALUE_EQ));
		CHECK(cuStreamWriteValue32(b, p, 2 * i + 2, 0));
	}
	CHECK(cuStreamSynchronize(a));
	CHECK(cuStreamSynchronize(b));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 400);
}

/* Hundreds of streams wait, while kernels of others run. */
static void values_many(void)
{
	enum { STREAMS = 300 };
	CUfunction f = demo_start("count");
	CUstream streams[STREAMS], other;
	unsigned int rounds = 100, got;
	CUdeviceptr p, counter;
	void *params[] = {&counter, &rounds};

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemAlloc(&counter, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuMemsetD32(counter, 0, 1));
	CHECK(cuCtxSynchronize());
	other = stream_new();
	for (int i = 0; i < STREAMS; i++) {
		streams[i] = stream_new();
		CHECK(cuStreamWaitValue32(streams[i], p, 1, CU_STREAM_WAIT_VALUE_GEQ));
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, streams[i], params, NULL));
	}
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, other, params, NULL));
	CHECK(cuMemcpyDtoHAsync(&got, counter, 4, other));
	CHECK(cuStreamSynchronize(other));
	EXPECT(got == rounds);
	CHECK(cuStreamWriteValue32(other, p, 1, 0));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(&got, counter, 4));
	EXPECT(got == rounds * (STREAMS + 1));
}

static void values_refused(void)
{
	CUstream s;
	CUdeviceptr p;

	(void)demo_start("poke");
	s = stream_new();
	CHECK(cuMemAlloc(&p, 16));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s, p + 2, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(s, p + 4, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s, p + 16, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s, 0, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s, p, 0, 4));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32(s, p, 0, CU_STREAM_WAIT_VALUE_FLUSH | CU_STREAM_WAIT_VALUE_EQ));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitValue32((CUstream)(void *)12345, p, 0, 0));
}

/* A program exits while streams wait for values that are never written. */
static void values_leave(void)
{
	pid_t child = fork();
	int status;

	EXPECT(child >= 0);
	if (child == 0) {
		CUdeviceptr p;

		(void)demo_start("poke");
		CHECK(cuMemAlloc(&p, 4));
		CHECK(cuMemsetD32(p, 0, 1));
		for (int i = 0; i < 20; i++)
			CHECK(cuStreamWaitValue32(stream_new(), p, 1, CU_STREAM_WAIT_VALUE_EQ));
		exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static unsigned int word_at(CUdeviceptr p)
{
	unsigned int value;

	CHECK(cuMemcpyDtoH(&value, p, 4));
	return value;
}

/* The batches of values_graph: one writes, one waits for a value of 64 bits and writes. */
static void batches(CUdeviceptr p, uint64_t waits, CUstreamBatchMemOpParams write[1], CUstreamBatchMemOpParams wait[3])
{
	write[0] = (CUstreamBatchMemOpParams){.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = p, .value = 1}};
	wait[0] = (CUstreamBatchMemOpParams){.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = p + 8, .value64 = waits, .flags = CU_STREAM_WAIT_VALUE_GEQ}};
	wait[1] = (CUstreamBatchMemOpParams){.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER}};
	wait[2] = (CUstreamBatchMemOpParams){.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = p + 16, .value64 = waits << 32 | 9}};
}

/* Launches the graph, which waits until the value is there. */
static void launch_and_release(CUgraphExec x, CUstream s, CUstream other, CUdeviceptr p, uint64_t value)
{
	CHECK(cuMemsetD32(p, 0, 8));
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphLaunch(x, s));
	expect_waiting(s, other);
	write_value(other, true, p + 8, value);
	CHECK(cuStreamSynchronize(s));
	EXPECT(word_at(p) == 1 && word_at(p + 4) == 3 && word_at(p + 16) == 9 && word_at(p + 20) == value && word_at(p + 24) == 4);
}

/* Nodes of a graph that write and wait, between kernels. */
static void values_graph(void)
{
	CUfunction poke = demo_start("poke");
	CUstreamBatchMemOpParams write[1], wait[3];
	CUDA_BATCH_MEM_OP_NODE_PARAMS b = {.count = 1, .paramArray = write}, got;
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	CUstream s = stream_new(), other = stream_new();
	unsigned int three = 3, four = 4;
	CUdeviceptr p, q;
	void *params[] = {&q, &three}, *last[] = {&q, &four};
	CUDA_KERNEL_NODE_PARAMS k = {.func = poke, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = params};
	CUgraphNode n[4];
	CUgraphNodeType type;
	CUgraph g, same;
	CUgraphExec x, y;

	CHECK(cuMemAlloc(&p, 64));
	batches(p, 5, write, wait);
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddBatchMemOpNode(&n[0], g, NULL, 0, &b));
	q = p + 4;
	CHECK(cuGraphAddKernelNode(&n[1], g, &n[0], 1, &k));
	any.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = 3, .paramArray = wait};
	CHECK(cuGraphAddNode(&n[2], g, &n[1], 1, &any));
	q = p + 24;
	k.kernelParams = last;
	CHECK(cuGraphAddKernelNode(&n[3], g, &n[2], 1, &k));
	CHECK(cuGraphNodeGetType(n[2], &type));
	CHECK(cuGraphBatchMemOpNodeGetParams(n[2], &got));
	EXPECT(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && got.count == 3 && got.paramArray != wait && memcmp(got.paramArray, wait, sizeof wait) == 0);
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	launch_and_release(x, s, other, p, 5);
	launch_and_release(x, s, other, p, 5);

	batches(p, 7, write, wait); /* changes of an executable graph, and of the graph */
	CHECK(cuGraphExecBatchMemOpNodeSetParams(x, n[2], &any.memOp));
	launch_and_release(x, s, other, p, 7);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecBatchMemOpNodeSetParams(x, n[2], &b)); /* other operations */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecBatchMemOpNodeSetParams(x, n[1], &any.memOp));
	batches(p, 8, write, wait);
	CHECK(cuGraphBatchMemOpNodeSetParams(n[2], &any.memOp));
	CHECK(cuGraphClone(&same, g));
	CHECK(cuGraphInstantiateWithFlags(&y, same, 0));
	launch_and_release(y, s, other, p, 8);
	CUgraphExecUpdateResultInfo info;
	CHECK(cuGraphExecUpdate_v2(x, g, &info));
	launch_and_release(x, s, other, p, 8);

	any.memOp.count = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n[2], g, NULL, 0, &any));
	any.memOp.count = 3;
	any.memOp.flags = 1;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&n[2], g, NULL, 0, &any));
	any.memOp.flags = 0;
	wait[0].waitValue.address = p + 4;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&n[2], g, NULL, 0, &any.memOp));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&n[2], g, NULL, 0, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphBatchMemOpNodeGetParams(n[1], &got));
}

/* Memory operations in a capture become nodes, which a launch performs between kernels. */
static void values_captured(void)
{
	CUfunction poke = demo_start("poke");
	CUstream s = stream_new(), other = stream_new();
	CUstreamBatchMemOpParams write[1], wait[3];
	CUDA_BATCH_MEM_OP_NODE_PARAMS got;
	CUdeviceptr p, q;
	unsigned int value = 3;
	void *params[] = {&q, &value};
	CUgraphNode n[6];
	size_t count = 6;
	CUgraph g;
	CUgraphExec x;

	CHECK(cuMemAlloc(&p, 64));
	CHECK(cuMemsetD32(p, 0, 16));
	batches(p, 5, write, wait);
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuStreamWriteValue32(s, p, 1, 0));
	q = p + 4;
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	CHECK(cuStreamWaitValue64(s, p + 8, 5, CU_STREAM_WAIT_VALUE_GEQ));
	CHECK(cuStreamBatchMemOp(s, 3, wait, 0));
	CHECK(cuStreamBatchMemOp(s, 0, NULL, 0));
	CHECK(cuStreamWriteValue64(s, p + 32, UINT64_MAX, 0));
	q = p + 24;
	value = 4;
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(s, p + 2, 1, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s, 0, 1, 0));
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(cuStreamSynchronize(s));
	EXPECT(word_at(p) == 0);
	CHECK(cuGraphGetNodes(g, n, &count));
	EXPECT(count == 6);
	CHECK(cuGraphBatchMemOpNodeGetParams(n[3], &got));
	EXPECT(got.count == 3 && memcmp(got.paramArray, wait, sizeof wait) == 0);
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	launch_and_release(x, s, other, p, 5);
	EXPECT(word_at(p + 36) == UINT32_MAX);
}

const struct test value_tests[] = {
	{"values_compare", values_compare}, {"values_written", values_written}, {"values_ping_pong", values_ping_pong},
	{"values_many", values_many}, {"values_refused", values_refused}, {"values_leave", values_leave}, {"values_graph", values_graph}, {"values_captured", values_captured},
	{NULL, NULL},
};
