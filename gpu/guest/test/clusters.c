/* Tests of kernels whose blocks are in clusters. */
#include "api.h"

/* A device without clusters returns an error for calls that request them. */
static void no_clusters(void)
{
	CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE},
					   {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}}};
	CUlaunchConfig config = {4, 1, 1, 1, 1, 1, 0, NULL, attributes, 2};
	CUfunction f = demo_start("count");
	CUdeviceptr p;
	unsigned int n = 4;
	int most = 77;
	void *params[] = {&p, &n, &n, &n};

	CHECK(cuMemAlloc(&p, 64));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, f, params, NULL));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuOccupancyMaxActiveClusters(&most, f, &config));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuOccupancyMaxPotentialClusterSize(&most, f, &config));
	attributes[1].value.clusterDim.y = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, f, params, NULL));
	attributes[1].value.clusterDim.y = 256;
	GIVES(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, f, params, NULL));
	CHECK(cuCtxSynchronize());
}

/* The attributes that libraries set for kernels with clusters. */
static void cluster_attributes(CUfunction f)
{
	int value = -1;

	CHECK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, f));
	EXPECT(value == 1);
	CHECK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2));
	CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, f));
	EXPECT(value == 2);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 3));
}

/* Occupancy of clusters of two blocks. */
static void occupancy_of_clusters(CUfunction f, CUlaunchConfig config)
{
	CUlaunchAttribute three = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {3, 1, 1}};
	int each = 0, sms = 0, clusters = 0, size = 0;

	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, 1, 0));
	CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	CHECK(cuOccupancyMaxActiveClusters(&clusters, f, &config));
	EXPECT(clusters > 0 && clusters <= each * sms / 2);
	CHECK(cuOccupancyMaxPotentialClusterSize(&size, f, &config));
	EXPECT(size == 8);
	config.attrs = &three; /* a grid of four cannot be divided into such clusters */
	GIVES(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, f, &config));
	config.numAttrs = 0;
	GIVES(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, f, &config));
	config.blockDimY = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialClusterSize(&size, f, &config));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(NULL, f, &config));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(&clusters, f, NULL));
}

static void with_clusters(void)
{
	static const char ptx[] =
		".version 7.8\n.target sm_90\n.address_size 64\n"
		".visible .entry neighbour(.param .u64 out) {\n"
		"	.reg .u64 %a;\n	.reg .u32 %r, %n, %at, %v;\n	.shared .u32 own;\n"
		"	mov.u32 %r, %cluster_ctarank;\n	add.u32 %v, %r, 10;\n	st.shared.u32 [own], %v;\n"
		"	barrier.cluster.arrive;\n	barrier.cluster.wait;\n"
		"	xor.b32 %n, %r, 1;\n	mov.u32 %at, own;\n	mapa.shared::cluster.u32 %at, %at, %n;\n	ld.shared::cluster.u32 %v, [%at];\n"
		"	barrier.cluster.arrive;\n	barrier.cluster.wait;\n"
		"	ld.param.u64 %a, [out];\n	mov.u32 %n, %ctaid.x;\n	mad.wide.u32 %a, %n, 4, %a;\n	st.global.u32 [%a], %v;\n	ret;\n}\n";
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}};
	CUlaunchConfig config = {4, 1, 1, 1, 1, 1, 0, NULL, &attribute, 1};
	unsigned int back[4];
	CUkernelNodeAttrValue got;
	CUdeviceptr out;
	CUfunction f;
	CUgraph g;
	CUgraphExec e;
	CUgraphNode n;
	CUmodule m;
	void *params[] = {&out};
	CUDA_KERNEL_NODE_PARAMS k = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = params};

	(void)demo_start("count");
	CHECK(cuModuleLoadData(&m, ptx));
	CHECK(cuModuleGetFunction(&f, m, "neighbour"));
	cluster_attributes(f);
	CHECK(cuMemAlloc(&out, sizeof back));
	CHECK(cuLaunchKernelEx(&config, f, params, NULL));
	CHECK(cuMemcpyDtoH(back, out, sizeof back));
	EXPECT(back[0] == 11 && back[1] == 10 && back[2] == 11 && back[3] == 10);
	occupancy_of_clusters(f, config);
	CHECK(cuMemsetD8(out, 0, sizeof back));
	k.func = f;
	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
	CHECK(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &attribute.value));
	CHECK(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &got));
	EXPECT(got.clusterDim.x == 2 && got.clusterDim.y == 1 && got.clusterDim.z == 1);
	CHECK(cuGraphInstantiateWithFlags(&e, g, 0));
	CHECK(cuGraphLaunch(e, NULL));
	CHECK(cuMemcpyDtoH(back, out, sizeof back));
	EXPECT(back[0] == 11 && back[1] == 10 && back[2] == 11 && back[3] == 10);
	config.gridDimX = 5;
	GIVES(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, f, params, NULL));
}

/* Attributes that allow a kernel to begin earlier, and hints, have no effect that a program can
 * observe. Their events are done when the kernel is. */
static void launch_attributes(void)
{
	CUevent e, c;
	CUdeviceptr p;
	CUfunction f = demo_start("poke");
	unsigned int value = 5, got = 0;
	void *params[] = {&p, &value};
	CUlaunchAttribute a[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.cooperative = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, .value.cooperative = 50},
		{.id = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, .value.cooperative = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT},
		{.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT},
	};
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, a, sizeof a / sizeof a[0]};

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemsetD32(p, 0, 1));
	CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&c, CU_EVENT_DISABLE_TIMING));
	a[3].value.programmaticEvent.event = e;
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernelEx(&config, f, params, NULL)); /* there is no event, and nothing was launched */
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 0);
	a[4].value.launchCompletionEvent.event = c;
	CHECK(cuLaunchKernelEx(&config, f, params, NULL));
	CHECK(cuEventSynchronize(e));
	CHECK(cuEventSynchronize(c));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 5);
	a[4].value.launchCompletionEvent.flags = 2;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, f, params, NULL));
	a[4].id = 13; /* an attribute of a node that kernels can change */
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, f, params, NULL));
}

/* The default soft GPU has clusters; one with compute capability 8.6 does not (TestClusters). */
static void clusters(void)
{
	int has;

	CHECK(cuInit(0));
	CHECK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	if (has)
		with_clusters();
	else
		no_clusters();
}

const struct test cluster_tests[] = {{"clusters", clusters}, {"launch_attributes", launch_attributes}, {NULL, NULL}};
