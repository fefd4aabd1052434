/* Tests of copies between contexts, and of other calls that are meant for several devices. */
#include "good.h"

#define BYTES ((9u << 20) + 12345) /* more than one part of a copy between contexts */

static unsigned char *pattern(size_t n)
{
	unsigned char *p = malloc(n);
	unsigned int seed = 7;

	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
	return p;
}

static void peer_copies(void)
{
	unsigned char *in = pattern(BYTES), *out = calloc(1, BYTES);
	CUcontext a, b;
	CUdeviceptr of_a, again, of_b;
	CUstream s;
	CUgraph g;

	(void)demo_start("poke");
	CHECK(cuCtxGetCurrent(&a));
	CHECK(cuMemAlloc_v2(&of_a, BYTES));
	CHECK(cuMemAlloc_v2(&again, BYTES));
	CHECK(cuMemcpyHtoD_v2(of_a, in, BYTES));
	CHECK(cuCtxCreate_v2(&b, 0, 0));
	CHECK(cuMemAlloc_v2(&of_b, BYTES));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemcpyPeerAsync(of_b, b, of_a, a, BYTES, s));
	CHECK(cuMemcpyDtoHAsync_v2(out, of_b, BYTES, s));
	CHECK(cuStreamSynchronize(s));
	EXPECT(memcmp(in, out, BYTES) == 0);
	CHECK(cuMemsetD8Async(of_b, 7, 16, s));
	CHECK(cuMemcpyPeer(again, a, of_b, b, BYTES)); /* ordered after all work of b */
	memset(in, 7, 16);
	CHECK(cuCtxSetCurrent(a));
	CHECK(cuMemcpyDtoH_v2(out, again, BYTES));
	EXPECT(memcmp(in, out, BYTES) == 0);
	CHECK(cuMemcpyPeer_ptds(of_a, a, again, a, 16)); /* within one context */
	CHECK(cuMemcpyDtoH_v2(out, of_a, 16));
	EXPECT(out[15] == 7);
	CHECK(cuMemcpyPeerAsync_ptsz(of_b, b, of_a, a, 16, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(of_a, a, again, a, BYTES + 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(of_a, a, of_b, b, BYTES + 1));
	/* A copy within a context can be captured, a copy between two contexts cannot. */
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuMemcpyPeerAsync(again, a, of_a, a, 16, s));
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemcpyPeerAsync(again, a, of_b, b, 16, s));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
	CHECK(cuCtxDestroy_v2(b));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(again, a, of_b, b, 16));
	free(in);
	free(out);
}

#define BOX (2 * 4 * 16)

/* Calls every form of a copy of three rows of five bytes out of rows of sixteen, in two
 * layers. */
static void box_forms(const CUDA_MEMCPY3D_PEER *p, const unsigned char in[BOX])
{
	unsigned char out[BOX];

	for (int form = 0; form < 4; form++) {
		CHECK(cuMemsetD8_v2(p->dstDevice, 0, BOX));
		CHECK(cuCtxSynchronize());
		switch (form) {
		case 0: CHECK(cuMemcpy3DPeer(p)); break;
		case 1: CHECK(cuMemcpy3DPeer_ptds(p)); break;
		case 2: CHECK(cuMemcpy3DPeerAsync(p, NULL)); break;
		case 3: CHECK(cuMemcpy3DPeerAsync_ptsz(p, NULL)); break;
		}
		CHECK(cuCtxSynchronize());
		CHECK(cuMemcpyDtoH_v2(out, p->dstDevice, BOX));
		for (unsigned int z = 0; z < 2; z++)
			for (unsigned int y = 0; y < 3; y++)
				EXPECT(memcmp(out + (z * 4 + y) * 16 + 3, in + (z * 4 + y + 1) * 16 + 2, 5) == 0 && out[(z * 4 + y) * 16 + 8] == 0);
	}
}

static void peer_boxes(void)
{
	CUDA_MEMCPY3D_PEER p = {.srcXInBytes = 2, .srcY = 1, .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcPitch = 16, .srcHeight = 4,
				.dstXInBytes = 3, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstPitch = 16, .dstHeight = 4,
				.WidthInBytes = 5, .Height = 3, .Depth = 2};
	unsigned char in[BOX];

	for (unsigned int i = 0; i < BOX; i++)
		in[i] = (unsigned char)(i + 1);
	(void)demo_start("poke");
	CHECK(cuCtxGetCurrent(&p.srcContext));
	CHECK(cuMemAlloc_v2(&p.srcDevice, BOX));
	CHECK(cuMemcpyHtoD_v2(p.srcDevice, in, BOX));
	CHECK(cuCtxCreate_v2(&p.dstContext, 0, 0));
	CHECK(cuMemAlloc_v2(&p.dstDevice, BOX));
	box_forms(&p, in);
	p.srcContext = p.dstContext;
	CHECK(cuMemAlloc_v2(&p.srcDevice, BOX));
	CHECK(cuMemcpyHtoD_v2(p.srcDevice, in, BOX));
	box_forms(&p, in);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeer(NULL));
	p.srcContext = NULL;
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpy3DPeer(&p));
}

/* Calls for memory with SYNC_MEMOPS return when the copy is done, even if other calls need
 * not. */
static void sync_memops(void)
{
	unsigned int on = 1, off = 0, got = 77;
	CUdeviceptr p, q;

	(void)demo_start("poke");
	CHECK(cuMemAlloc_v2(&p, 1 << 20));
	CHECK(cuMemAlloc_v2(&q, 1 << 20));
	CHECK(cuPointerSetAttribute(&on, 6, p + 16));
	CHECK(cuPointerGetAttribute(&got, 6, p));
	EXPECT(got == 1);
	CHECK(cuPointerGetAttribute(&got, 6, q));
	EXPECT(got == 0);
	CHECK(cuMemsetD8_v2(p, 1, 1 << 20));
	CHECK(cuStreamQuery(NULL)); /* no work is running */
	CHECK(cuMemcpyDtoD_v2(q, p, 1 << 20));
	CHECK(cuStreamQuery(NULL));
	CHECK(cuMemcpyHtoD_v2(p, &on, sizeof on));
	CHECK(cuStreamQuery(NULL));
	CHECK(cuPointerSetAttribute(&off, 6, p));
	CHECK(cuPointerGetAttribute(&got, 6, p));
	EXPECT(got == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, 7, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, 6, (uintptr_t)&on));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(NULL, 6, p));
}

/* Queries that concern several devices, or arrays that are not plain. */
static void one_device(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUfunction f = demo_start("poke");
	unsigned int value = 5, got = 0;
	uint64_t out[8];
	CUdeviceptr p;
	void *params[] = {&p, &value};
	CUDA_LAUNCH_PARAMS l = {.function = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = params};
	CUmipmappedArray levels;
	CUarray array, plane;
	int can = 77;

	CHECK(cuMemAlloc_v2(&p, 4));
	CHECK(cuStreamCreate(&l.hStream, 0));
	CHECK(cuLaunchCooperativeKernelMultiDevice(&l, 1, 0));
	CHECK(cuStreamSynchronize(l.hStream));
	CHECK(cuMemcpyDtoH_v2(&got, p, sizeof got));
	EXPECT(got == 5);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&l, 2, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&l, 1, 4));
	l.hStream = NULL;
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchCooperativeKernelMultiDevice(&l, 1, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&can, 1, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&can, 6, 0, 0));
	CHECK(cuArray3DCreate_v2(&array, &desc));
	CHECK(cuMipmappedArrayCreate(&levels, &desc, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)out, array, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)out, array));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)out, levels, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)out, levels));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayGetPlane(&plane, (CUarray)(uintptr_t)0x5eed5eed, 0));
}

const struct test peer_tests[] = {
	{"peer_copies", peer_copies}, {"peer_boxes", peer_boxes}, {"sync_memops", sync_memops}, {"one_device", one_device}, {NULL, NULL},
};
