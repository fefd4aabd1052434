/* Tests of host functions, boxes, memsets, occupancy, queries and dynamic shared memory. */
#include "api.h"

struct heard {
	pthread_mutex_t lock;
	pthread_cond_t go;
	int open, calls, forbidden;
	CUresult status;
	unsigned int *watched, seen;
	CUstream stream;
};

static void hear(void *p)
{
	struct heard *h = p;

	pthread_mutex_lock(&h->lock);
	while (!h->open)
		pthread_cond_wait(&h->go, &h->lock);
	h->calls++;
	h->seen = *h->watched;
	h->forbidden = cuStreamSynchronize(h->stream); /* not allowed, because it would wait for itself */
	pthread_mutex_unlock(&h->lock);
}

static void note(CUstream s, CUresult status, void *p)
{
	struct heard *h = p;

	(void)s;
	h->status = status;
	h->calls++;
}

static void open_up(struct heard *h)
{
	pthread_mutex_lock(&h->lock);
	h->open = 1;
	pthread_cond_broadcast(&h->go);
	pthread_mutex_unlock(&h->lock);
}

/* A host function is called after the earlier work of its stream, and before the later work. */
static void callbacks(void)
{
	CUfunction f = demo_start("count");
	struct heard h = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, -1, NULL, 0, NULL};
	unsigned int rounds = 2000, one = 1;
	CUdeviceptr p, q;
	CUstream s, u;
	void *params[] = {&p, &rounds}, *other[] = {&q, &one};

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	h.stream = s;
	CHECK(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemAlloc(&q, 4));
	CHECK(cuMemHostAlloc((void **)&h.watched, 4, 0));
	*h.watched = 0;
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuMemsetD32(q, 0, 1));
	CHECK(cuCtxSynchronize());
	CHECK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, s, params, NULL));
	CHECK(cuMemcpyDtoHAsync(h.watched, p, 4, s));
	CHECK(cuLaunchHostFunc(s, hear, &h));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	/* Another stream does not wait. */
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, u, other, NULL));
	CHECK(cuStreamSynchronize(u));
	EXPECT(h.calls == 0);
	open_up(&h);
	CHECK(cuStreamSynchronize(s));
	EXPECT(h.calls == 1 && h.seen == 1024 * rounds);
	EXPECT(h.forbidden == CUDA_ERROR_NOT_PERMITTED);
	CHECK(cuStreamQuery(s));
	for (int i = 0; i < 300; i++) /* more functions than there are slots */
		CHECK(cuLaunchHostFunc(i % 2 ? s : u, hear, &h));
	CHECK(cuCtxSynchronize());
	EXPECT(h.calls == 301);
	CHECK(cuStreamAddCallback(CU_STREAM_PER_THREAD, note, &h, 0));
	CHECK(cuStreamSynchronize(NULL)); /* waits for blocking streams */
	EXPECT(h.calls == 302 && h.status == 0);
	CHECK(cuLaunchHostFunc(NULL, hear, &h));
	CHECK(cuMemcpyDtoH(h.watched, q, 4));
	EXPECT(h.calls == 303);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(s, NULL, NULL));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchHostFunc((CUstream)(void *)0x999999, hear, &h));
	CHECK(cuLaunchHostFunc(s, hear, &h));
	CHECK(cuStreamDestroy(s));
	EXPECT(h.calls == 304);
}

/* In a context that has failed, only callbacks with a status argument are called. */
static void callback_errors(void)
{
	CUfunction f = demo_start("poke");
	struct heard h = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, 0, 0, -1, &h.seen, 0, NULL};
	CUdeviceptr wild = 0x10;
	unsigned int v = 1;
	CUstream s;
	void *params[] = {&wild, &v};

	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	CHECK(cuLaunchHostFunc(s, hear, &h));
	CHECK(cuStreamAddCallback(s, note, &h, 0));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
	EXPECT(h.calls == 1 && h.status == CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Copies a box of 5 x 4 x 3 out of one of 9 x 7 x 6 on the device, and back. */
static void boxes(void)
{
	unsigned char in[9 * 7 * 6], back[9 * 7 * 6], out[5 * 4 * 3];
	CUdeviceptr d;

	(void)demo_start("poke");
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (unsigned char)(i * 7);
	CHECK(cuMemAlloc(&d, sizeof in));
	CHECK(cuMemcpyHtoD(d, in, sizeof in));
	CUDA_MEMCPY3D c = {.srcXInBytes = 2, .srcY = 3, .srcZ = 1, .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = d,
			   .srcPitch = 9, .srcHeight = 7, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out,
			   .WidthInBytes = 5, .Height = 4, .Depth = 3};
	CHECK(cuMemcpy3D(&c));
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 4; y++)
			for (int x = 0; x < 5; x++)
				EXPECT(out[(z * 4 + y) * 5 + x] == in[((z + 1) * 7 + y + 3) * 9 + x + 2]);
	CHECK(cuMemsetD8(d, 0, sizeof in));
	CUDA_MEMCPY3D r = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = out, .dstXInBytes = 2, .dstY = 3, .dstZ = 1,
			   .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = d, .dstPitch = 9, .dstHeight = 7,
			   .WidthInBytes = 5, .Height = 4, .Depth = 3};
	CHECK(cuMemcpy3D(&r));
	CHECK(cuMemcpyDtoH(back, d, sizeof back));
	for (int i = 0; i < 9 * 7 * 6; i++) {
		int x = i % 9, y = i / 9 % 7, z = i / 63;
		int inside = x >= 2 && x < 7 && y >= 3 && z >= 1 && z < 4;

		EXPECT(back[i] == (inside ? in[i] : 0));
	}
	r.dstZ = 4; /* one layer beyond */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&r));
	r.dstMemoryType = CU_MEMORYTYPE_ARRAY; /* no array is given */
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3D(&r));
}

static void memsets(void)
{
	unsigned char b[6 * 64];
	CUdeviceptr d;
	CUstream s;

	(void)demo_start("poke");
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuMemAlloc(&d, sizeof b));
	for (unsigned int width = 1; width <= 4; width *= 2) {
		CHECK(cuMemsetD8(d, 0xee, sizeof b));
		switch (width) {
		case 1: CHECK(cuMemsetD2D8(d + 8, 64, 0x11, 20, 5)); break;
		case 2: CHECK(cuMemsetD2D16(d + 8, 64, 0x1111, 10, 5)); break;
		default: CHECK(cuMemsetD2D32Async(d + 8, 64, 0x11111111, 5, 5, s)); break;
		}
		CHECK(cuStreamSynchronize(s));
		CHECK(cuMemcpyDtoH(b, d, sizeof b));
		for (int i = 0; i < 6 * 64; i++)
			EXPECT(b[i] == (i < 5 * 64 && i % 64 >= 8 && i % 64 < 28 ? 0x11 : 0xee));
	}
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(d, 64, 1, 64, 7)); /* one row beyond */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(d, 8, 1, 64, 2));	/* rows that overlap */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(d + 2, 1, 1));
}

static void registers(void)
{
	unsigned char *b = malloc(1 << 20), *c = malloc(1 << 20);
	unsigned int flags = 9;
	CUdeviceptr d;
	void *p;

	(void)demo_start("poke");
	memset(b, 7, 1 << 20);
	CHECK(cuMemAlloc(&d, 1 << 20));
	CHECK(cuMemHostRegister(b, 1 << 20, 1));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(b + 4096, 4096, 0));
	CHECK(cuMemHostGetFlags(&flags, b + 5));
	EXPECT(flags == 1);
	CHECK(cuMemcpyHtoDAsync(d, b, 1 << 20, NULL));
	CHECK(cuMemcpyDtoH(c, d, 1 << 20));
	EXPECT(memcmp(b, c, 1 << 20) == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(b)); /* the library has not allocated it */
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(b + 4096));
	CHECK(cuMemHostUnregister(b));
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(b));
	CHECK(cuMemHostAlloc(&p, 4096, 0));
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(p));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(p, 4096, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister(c, 4096, 4)); /* I/O memory */
}

static void occupancy(void)
{
	CUfunction f = demo_start("matmul");
	int blocks, less, grid, size, sms;

	CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&less, f, 1024, 0));
	EXPECT(blocks > 0 && less > 0 && less <= blocks);
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&less, f, 256, 96 << 10));
	EXPECT(less < blocks);
	CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &size, f, NULL, 0, 0));
	EXPECT(size > 0 && size <= 1024 && grid > 0 && grid % sms == 0);
	CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &size, f, NULL, 0, 100));
	EXPECT(size <= 100);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0));
}

/* All blocks wait at the barrier in the workspace, as with cooperative groups. */
static void cooperative(void)
{
	static const char ptx[] =
		".version 8.1\n.target sm_70\n.address_size 64\n"
		".visible .entry meet(.param .u64 sum) {\n"
		"	.reg .u64 %a, %w;\n	.reg .u32 %b, %n, %v, %old;\n	.reg .pred %p;\n"
		"	mov.b64 %w, {%envreg2, %envreg1};\n	ld.param.u64 %a, [sum];\n	red.global.add.u32 [%a], 1;\n"
		"	mov.u32 %b, %ctaid.x;\n	mov.u32 %n, %nctaid.x;\n	setp.eq.u32 %p, %b, 0;\n	mov.u32 %v, 1;\n"
		"	@%p sub.u32 %v, 0x80000001, %n;\n	atom.add.u32 %old, [%w+4], %v;\n"
		"again:	ld.volatile.u32 %v, [%w+4];\n	xor.b32 %v, %v, %old;\n	setp.ge.s32 %p, %v, 0;\n	@%p bra again;\n"
		"	ld.volatile.global.u32 %v, [%a];\n	setp.eq.u32 %p, %v, %n;\n	@%p red.global.add.u32 [%a+4], 1;\n	ret;\n}\n";
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, &attribute, 1};
	unsigned int back[2];
	int each, sms;
	CUdeviceptr sum;
	CUfunction f;
	CUmodule m;
	void *params[] = {&sum};

	(void)demo_start("count");
	CHECK(cuModuleLoadData(&m, ptx));
	CHECK(cuModuleGetFunction(&f, m, "meet"));
	CHECK(cuMemAlloc(&sum, 8));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, 1, 0));
	CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	for (int ex = 0; ex < 2; ex++) {
		CHECK(cuMemsetD8(sum, 0, 8));
		config.gridDimX = (unsigned int)(each * sms);
		if (ex)
			CHECK(cuLaunchKernelEx(&config, f, params, NULL));
		else
			CHECK(cuLaunchCooperativeKernel(f, config.gridDimX, 1, 1, 1, 1, 1, 0, NULL, params));
		CHECK(cuMemcpyDtoH(back, sum, 8));
		EXPECT(back[0] == config.gridDimX && back[1] == config.gridDimX);
	}
	GIVES(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchCooperativeKernel(f, config.gridDimX + 1, 1, 1, 1, 1, 1, 0, NULL, params));
	config.gridDimY = 2;
	GIVES(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchKernelEx(&config, f, params, NULL));
	CHECK(cuCtxSynchronize());
}

/* Attributes that do not change results are accepted. */
static void launch_hints(void)
{
	CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW}, {.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY},
					  {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}, {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP},
					  {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN}};
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, attributes, sizeof attributes / sizeof attributes[0]};
	CUfunction f = demo_start("poke");
	CUdeviceptr p;
	unsigned int v = 7, got = 0;
	void *params[] = {&p, &v};

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuLaunchKernelEx(&config, f, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 7);
}

/* Parameters of the maximum size that CUDA allows. */
static void large_parameters(void)
{
	static const char ptx[] = ".version 8.1\n.target sm_70\n.address_size 64\n"
				  ".visible .entry last(.param .u64 out, .param .align 4 .b8 p[32756]) {\n"
				  "	.reg .u64 %a;\n	.reg .u32 %v;\n	ld.param.u64 %a, [out];\n	ld.param.u32 %v, [p+32752];\n"
				  "	st.global.u32 [%a], %v;\n	ret;\n}\n";
	static unsigned int p[32756 / 4];
	CUgraphExec e;
	CUgraphNode n;
	CUdeviceptr out;
	unsigned int back;
	CUfunction f;
	CUmodule m;
	CUgraph g;
	void *params[] = {&out, p};

	(void)demo_start("count");
	CHECK(cuModuleLoadData(&m, ptx));
	CHECK(cuModuleGetFunction(&f, m, "last"));
	CHECK(cuMemAlloc(&out, 4));
	p[32752 / 4] = 0xfeed;
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&back, out, 4));
	EXPECT(back == 0xfeed);
	CHECK(cuGraphCreate(&g, 0));
	p[32752 / 4] = 0xbeef;
	CUDA_KERNEL_NODE_PARAMS k = {.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
				     .blockDimZ = 1, .kernelParams = params};
	CHECK(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
	CHECK(cuGraphInstantiateWithFlags(&e, g, 0));
	p[32752 / 4] = 0; /* the graph has a copy */
	CHECK(cuGraphLaunch(e, NULL));
	CHECK(cuMemcpyDtoH(&back, out, 4));
	EXPECT(back == 0xbeef);
}

/* Calls that the library passes on to the worker unchanged. */
static void passed_on(void)
{
	CUfunction f = demo_start("matmul");
	size_t alone, shared;
	uint64_t back;
	CUdeviceptr p;
	CUstream s;

	CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&alone, f, 1, 256));
	CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, f, 2, 256));
	EXPECT(shared > 0 && shared < alone);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&alone, f, 0, 256));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(NULL, f, 1, 256));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuOccupancyAvailableDynamicSMemPerBlock(&alone, NULL, 1, 256));
	CHECK(cuProfilerStart());
	CHECK(cuProfilerStop());
	CHECK(cuCtxResetPersistingL2Cache());
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&p, 8));
	CHECK(cuStreamWriteValue64(s, p, 0x1122334455667788u, 0));
	CHECK(cuStreamWriteValue32(s, p + 4, 9, 0));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpyDtoH(&back, p, 8));
	EXPECT(back == 0x0000000955667788u);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(s, p + 8, 9, 0));
}

/* Execution affinity of a context is for clients of MPS, and reported as not supported. */
static void exec_affinity(void)
{
	CUexecAffinityParam p = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{4}}};
	CUctxCreateParams params = {&p, 1, NULL};
	CUcontext c;
	int support = 7;

	CHECK(cuInit(0));
	CHECK(cuDeviceGetExecAffinitySupport(&support, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	EXPECT(support == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetExecAffinitySupport(&support, 1, 0));
	GIVES(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v3(&c, &p, 1, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(&c, NULL, 1, 0, 0));
	GIVES(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v4(&c, &params, 0, 0));
	params = (CUctxCreateParams){NULL, 0, &p};
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuCtxCreate_v4(&c, &params, 0, 0));
	params.cigParams = NULL;
	CHECK(cuCtxCreate_v4(&c, &params, 0, 0));
	GIVES(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&p, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	CHECK(cuCtxDestroy(c));
	CHECK(cuCtxCreate_v4(&c, NULL, 0, 0));
	CHECK(cuCtxDestroy(c));
}

/* A program reads the attributes of a stream that it has set. Each stream has its own. */
static void stream_attributes(void)
{
	CUstreamAttrValue v;
	CUstream a, b;
	CUdeviceptr p;

	(void)demo_start("count");
	CHECK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&p, 1 << 20));
	memset(&v, 0xee, sizeof v);
	CHECK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	/* Only the relevant member is written. Driver 580 returns -1 if the policy was never set. */
	EXPECT((v.syncPolicy == CU_SYNC_POLICY_AUTO || (int)v.syncPolicy == -1) && v.pad[4] == (char)0xee);
	v.syncPolicy = CU_SYNC_POLICY_YIELD;
	CHECK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	v.accessPolicyWindow = (CUaccessPolicyWindow){(void *)(uintptr_t)p, 1 << 20, 0.5f, 2, 1};
	CHECK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
	memset(&v, 0, sizeof v);
	CHECK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
	EXPECT(v.accessPolicyWindow.base_ptr == (void *)(uintptr_t)p && v.accessPolicyWindow.num_bytes == 1 << 20 &&
	       v.accessPolicyWindow.hitRatio == 0.5f && v.accessPolicyWindow.hitProp == 2 && v.accessPolicyWindow.missProp == 1);
	CHECK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	EXPECT(v.syncPolicy == CU_SYNC_POLICY_AUTO || (int)v.syncPolicy == -1);
	CHECK(cuStreamCopyAttributes(b, a));
	CHECK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	EXPECT(v.syncPolicy == CU_SYNC_POLICY_YIELD);
	CHECK(cuStreamCopyAttributes(NULL, a)); /* the default stream has attributes too */
	CHECK(cuStreamGetAttribute_ptsz(CU_STREAM_LEGACY, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	EXPECT(v.syncPolicy == CU_SYNC_POLICY_YIELD);
	v.syncPolicy = 9;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
	v.accessPolicyWindow = (CUaccessPolicyWindow){(void *)(uintptr_t)p, (1 << 20) + 1, 0.5f, 2, 1};
	GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
	CHECK(cuStreamDestroy(b));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamCopyAttributes(a, b));
}

/* Programs poll these queries, so they must succeed in the end, and in order. */
static void queries(void)
{
	CUfunction f = demo_start("count");
	unsigned int rounds = 20000, got, unready = 0;
	CUresult r;
	CUdeviceptr p;
	CUstream s;
	CUevent e;
	void *params[] = {&p, &rounds};

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuCtxSynchronize());
	CHECK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, s, params, NULL));
	CHECK(cuEventRecord(e, s));
	while ((r = cuEventQuery(e)) == CUDA_ERROR_NOT_READY)
		unready++;
	EXPECT(r == 0);
	CHECK(cuStreamQuery(s));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 1024 * rounds);
	CHECK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, s, params, NULL));
	while ((r = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
		unready++;
	EXPECT(r == 0 && unready > 0);
}

/* Sixteen streams, each of which waits for the previous one. */
static void event_chain(void)
{
	enum { N = 16 };
	CUstream s[N];
	CUevent e[N];
	CUdeviceptr p;
	unsigned int got[N];

	(void)demo_start("poke");
	CHECK(cuMemAlloc(&p, 4 * (N + 1)));
	CHECK(cuMemsetD32(p, 0, N + 1));
	CHECK(cuMemsetD32(p, 42, 1));
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < N; i++) {
		CHECK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
		CHECK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
		if (i)
			CHECK(cuStreamWaitEvent(s[i], e[i - 1], 0));
		CHECK(cuMemcpyDtoDAsync(p + 4 * (unsigned)i + 4, p + 4 * (unsigned)i, 4, s[i]));
		CHECK(cuEventRecord(e[i], s[i]));
		if (i)
			CHECK(cuEventDestroy(e[i - 1])); /* streams that wait for it continue to wait */
	}
	CHECK(cuStreamSynchronize(s[N - 1]));
	CHECK(cuMemcpyDtoH(got, p + 4, sizeof got));
	for (int i = 0; i < N; i++)
		EXPECT(got[i] == 42);
}

/* Writes the last word of the dynamic shared memory and reads it back. */
static const char shared_ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.extern .shared .align 4 .b8 room[];\n"
	".visible .entry last(.param .u64 out, .param .u32 bytes)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n"
	"ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [bytes];\nmov.u32 %r2, room;\nadd.u32 %r1, %r1, %r2;\n"
	"mov.u32 %r3, 77;\nst.shared.u32 [%r1+-4], %r3;\nld.shared.u32 %r3, [%r1+-4];\n"
	"cvta.to.global.u64 %rd1, %rd1;\nst.global.u32 [%rd1], %r3;\nret;\n}\n";

static void dynamic_shared(void)
{
	unsigned int bytes, got;
	int most, normal, value;
	CUfunction f;
	CUdeviceptr p;
	CUmodule m;
	void *params[] = {&p, &bytes};

	(void)demo_start("poke");
	CHECK(cuModuleLoadData(&m, shared_ptx));
	CHECK(cuModuleGetFunction(&f, m, "last"));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuDeviceGetAttribute(&normal, 8, 0));
	CHECK(cuDeviceGetAttribute(&most, 97, 0));
	EXPECT(most > normal);
	bytes = (unsigned int)normal;
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 77);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1));
	CHECK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
	CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	EXPECT(value == most);
	CHECK(cuMemsetD32(p, 0, 1));
	bytes = (unsigned int)most;
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 77);
}

const struct test work_tests[] = {
	{"callbacks", callbacks}, {"callback_errors", callback_errors}, {"boxes", boxes}, {"memsets", memsets},
	{"registers", registers}, {"occupancy", occupancy}, {"cooperative", cooperative}, {"launch_hints", launch_hints}, {"passed_on", passed_on}, {"stream_attributes", stream_attributes}, {"exec_affinity", exec_affinity}, {"large_parameters", large_parameters}, {"queries", queries}, {"event_chain", event_chain},
	{"dynamic_shared", dynamic_shared}, {NULL, NULL},
};
