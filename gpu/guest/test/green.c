/* Tests of green contexts, and of events of whole contexts. */
#include "api.h"

static const char ptx[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
	/* wait(flag, out): sets out when flag is set. */
	".visible .entry wait(.param .u64 flag, .param .u64 out)\n{\n"
	".reg .b64 %f, %o; .reg .b32 %v; .reg .pred %p;\n"
	"ld.param.u64 %f, [flag]; ld.param.u64 %o, [out];\n"
	"again: ld.volatile.global.u32 %v, [%f]; setp.eq.u32 %p, %v, 0; @%p bra again;\n"
	"st.global.u32 [%o], %v;\nret;\n}\n";

static int attribute(int a)
{
	int v = -1;

	CHECK(cuDeviceGetAttribute(&v, a, 0));
	return v;
}

/* Returns the resource of all multiprocessors. */
static void all(CUdevResource *r)
{
	CHECK(cuDeviceGetDevResource(0, r, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(r->type == CU_DEV_RESOURCE_TYPE_SM && r->sm.smCount == (unsigned int)attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}

static CUgreenCtx green(CUdevResource *r, unsigned int n)
{
	CUdevResourceDesc d;
	CUgreenCtx g;

	CHECK(cuDevResourceGenerateDesc(&d, r, n));
	CHECK(cuGreenCtxCreate(&g, d, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	return g;
}

/* Splits of resources: their sizes, the remaining part, and which parts can be joined. */
static void green_splits(void)
{
	enum { FINE = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING };
	int major;
	unsigned int least, groups = 77, n;
	CUdevResource r, part[8], rest, forged, other[1];
	CUdevResourceDesc d;
	CUgreenCtx g;

	CHECK(cuInit(0));
	all(&r);
	major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	least = major >= 9 ? 8 : major == 8 ? 4 : major == 7 ? 2 : 1;
	EXPECT(r.sm.minSmPartitionSize == least);
	CHECK(cuDevSmResourceSplitByCount(NULL, &groups, &r, NULL, 0, 0));
	EXPECT(groups == r.sm.smCount / least);
	CHECK(cuDevSmResourceSplitByCount(NULL, &groups, &r, NULL, 0, r.sm.smCount));
	EXPECT(groups == (r.sm.smCount >= least && r.sm.smCount % r.sm.smCoscheduledAlignment == 0 ? 1u : 0u));
	groups = 1;
	if (r.sm.smCount < least)
		GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount(part, &groups, &r, NULL, 0, 0));
	groups = 1;
	CHECK(cuDevSmResourceSplitByCount(part, &groups, &r, &rest, FINE, 1));
	n = major >= 7 ? 2 : 1;
	EXPECT(groups == 1 && part[0].sm.smCount == n && rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount == r.sm.smCount - n);
	GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount(other, &groups, &part[0], NULL, FINE, 1)); /* a part cannot be split … */
	g = green(part, 1);
	CHECK(cuGreenCtxGetDevResource(g, &forged, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(forged.sm.smCount == n);
	CHECK(cuDevSmResourceSplitByCount(NULL, &groups, &forged, NULL, FINE, n)); /* … unless it is the resource of a green context */
	EXPECT(groups == 1);
	CHECK(cuGreenCtxDestroy(g));
	part[1] = rest;
	g = green(part, 2); /* two parts of one split */
	CHECK(cuGreenCtxGetDevResource(g, &forged, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(forged.sm.smCount == r.sm.smCount);
	CHECK(cuGreenCtxDestroy(g));
	groups = 8;
	CHECK(cuDevSmResourceSplitByCount(part, &groups, &r, &rest, FINE, n));
	EXPECT(groups == (r.sm.smCount / n < 8 ? r.sm.smCount / n : 8));
	groups = 1;
	CHECK(cuDevSmResourceSplitByCount(other, &groups, &r, &rest, FINE, r.sm.smCount));
	EXPECT(groups == 1 && rest.type == CU_DEV_RESOURCE_TYPE_INVALID);
	part[1] = other[0];
	GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&d, part, 2)); /* parts of two splits */
	part[1] = part[0];
	GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&d, part, 2)); /* the same twice */
	GIVES(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevResourceGenerateDesc(&d, &rest, 1));
	forged = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_SM, .sm.smCount = 2};
	GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&d, &forged, 1));
	forged = r;
	forged.sm.smCount *= 2;
	GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&d, &forged, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&d, &r, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(part, &groups, &r, NULL, 0, r.sm.smCount + 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(part, &groups, &r, NULL, 4, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(part, NULL, &r, NULL, 0, 0));
	GIVES(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &r, 7));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDevResource(1, &r, CU_DEV_RESOURCE_TYPE_SM));
}

/* Work in streams of green contexts, beside work of the primary context. */
static void green_contexts(void)
{
	CUcontext primary, converted, now;
	unsigned long long id = 0, other = 0;
	CUdevResource r, of;
	CUgreenCtx g, back;
	CUfunction f, own;
	CUmodule module;
	CUstream s, t, none;
	CUdeviceptr flag, out;
	unsigned int word = 5, got = 0;
	CUevent e;
	void *params[] = {&flag, &out};

	CHECK(cuInit(0));
	all(&r);
	g = green(&r, 1);
	CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
	CHECK(cuCtxFromGreenCtx(&converted, g));
	EXPECT(converted != primary);
	CHECK(cuGreenCtxGetId(g, &id));
	CHECK(cuCtxSetCurrent(converted));
	CHECK(cuCtxGetCurrent(&now));
	EXPECT(now == converted);
	CHECK(cuCtxGetId(NULL, &other));
	EXPECT(id == other);
	CHECK(cuCtxGetId(primary, &other));
	EXPECT(id != other);
	CHECK(cuCtxGetDevResource(converted, &of, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(of.sm.smCount == r.sm.smCount);
	CHECK(cuCtxGetDevResource(primary, &of, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&f, module, "wait"));
	CHECK(cuMemAlloc(&flag, 4));
	CHECK(cuMemAlloc(&out, 4));
	CHECK(cuMemsetD32(flag, 0, 1));
	CHECK(cuMemsetD32(out, 0, 1));
	CHECK(cuCtxSynchronize()); /* the streams do not wait for the default stream */
	CHECK(cuGreenCtxStreamCreate(&s, g, CU_STREAM_NON_BLOCKING, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&none, g, 0, 0));
	CHECK(cuStreamGetGreenCtx(s, &back));
	EXPECT(back == g);
	CHECK(cuStreamGetCtx(s, &now));
	EXPECT(now == converted);
	CHECK(cuStreamGetCtx_v2(s, &now, &back));
	EXPECT(now == primary && back == g);
	CHECK(cuStreamGetGreenCtx(NULL, &back));
	EXPECT(back == g);
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));

	CHECK(cuCtxSetCurrent(primary)); /* memory and modules belong to it */
	CHECK(cuStreamGetGreenCtx(NULL, &back));
	EXPECT(back == NULL);
	CHECK(cuModuleGetFunction(&own, module, "wait"));
	EXPECT(own == f);
	CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	CHECK(cuGreenCtxRecordEvent(g, e));
	CHECK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamGetGreenCtx(t, &back));
	EXPECT(back == NULL);
	GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	CHECK(cuMemcpyHtoDAsync(flag, &word, 4, t));
	CHECK(cuEventSynchronize(e));
	CHECK(cuMemcpyDtoH(&got, out, 4));
	EXPECT(got == 5);
	CHECK(cuStreamDestroy(s));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(converted));
	CHECK(cuCtxSetCurrent(converted));
	CHECK(cuGreenCtxDestroy(g));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(converted));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy(g));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxFromGreenCtx(&converted, g));
	CHECK(cuCtxSetCurrent(primary)); /* the reference of the other context keeps it */
	CHECK(cuMemcpyDtoH(&got, out, 4));
}

/* When a context waits for an event, its streams wait, and those that are created later. With
 * of_green it is a green context. */
static void waits(bool of_green)
{
	CUcontext c, other;
	CUdevResource r;
	CUgreenCtx g = NULL;
	CUfunction f;
	CUmodule module;
	CUstream holding, before, after, blocking;
	CUdeviceptr flag, out;
	CUevent e, foreign;
	volatile unsigned int *word;
	unsigned int got = 7;
	void *params[] = {&flag, &out}, *p;

	CHECK(cuInit(0));
	if (attribute(19) == 0) /* kernels cannot access host memory */
		return;
	if (of_green) {
		all(&r);
		g = green(&r, 1);
	}
	CHECK(cuDevicePrimaryCtxRetain(&c, 0));
	CHECK(cuCtxSetCurrent(c));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&f, module, "wait"));
	CHECK(cuMemHostAlloc(&p, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&flag, p, 0));
	CHECK(cuMemAlloc(&out, 4));
	word = p;
	*word = 0;
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamCreate(&holding, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	if (of_green) {
		CHECK(cuGreenCtxStreamCreate(&before, g, CU_STREAM_NON_BLOCKING, 0));
	} else {
		CHECK(cuStreamCreate(&before, CU_STREAM_NON_BLOCKING));
	}
	CHECK(cuStreamCreate(&blocking, 0));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, holding, params, NULL));
	CHECK(cuEventRecord(e, holding));
	if (of_green) {
		CHECK(cuGreenCtxWaitEvent(g, e));
		CHECK(cuGreenCtxStreamCreate(&after, g, CU_STREAM_NON_BLOCKING, 0));
	} else {
		CHECK(cuCtxWaitEvent(c, e));
		CHECK(cuStreamCreate(&after, CU_STREAM_NON_BLOCKING));
	}
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(before));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(after));
	CHECK(cuMemsetD32Async(out, 0, 1, blocking)); /* it is ordered with the default stream */
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(blocking));
	CHECK(cuCtxCreate(&other, 0, 0));
	CHECK(cuEventCreate(&foreign, CU_EVENT_DISABLE_TIMING));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(c, foreign));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(c, NULL));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(c, NULL));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(NULL, e));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxWaitEvent((CUgreenCtx)(void *)c, e));
	CHECK(cuCtxSetCurrent(c));
	CHECK(cuCtxRecordEvent(c, e)); /* after all work of the context */
	GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	*word = 1;
	CHECK(cuEventSynchronize(e));
	CHECK(cuStreamSynchronize(before));
	CHECK(cuStreamSynchronize(after));
	CHECK(cuStreamSynchronize(blocking));
	CHECK(cuCtxDestroy(other)); /* only now, because on a physical GPU it waits for the kernels of other contexts */
	CHECK(cuCtxSetCurrent(c));
	CHECK(cuMemcpyDtoH(&got, out, 4));
	EXPECT(got == 0); /* set by the kernel, cleared after it */
	if (of_green)
		CHECK(cuGreenCtxDestroy(g));
}

static void context_events(void)
{
	waits(false);
}

static void green_events(void)
{
	waits(true);
}

const struct test green_tests[] = {
	{"green_splits", green_splits}, {"green_contexts", green_contexts}, {"context_events", context_events}, {"green_events", green_events}, {0},
};
