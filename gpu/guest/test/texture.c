/* Tests of arrays, textures and surfaces. */
#include "api.h"

#define W 5
#define H 4
#define D 3

static const char ptx[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
	/* read(out, texture, x, y): reads the four channels at a position. */
	".visible .entry read(.param .u64 out, .param .u64 texture, .param .f32 x, .param .f32 y)\n{\n"
	".reg .b64 %o, %t; .reg .f32 %f<6>;\n"
	"ld.param.u64 %o, [out]; ld.param.u64 %t, [texture]; ld.param.f32 %f4, [x]; ld.param.f32 %f5, [y];\n"
	"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4, %f5}];\n"
	"st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};\nret;\n}\n"
	/* level(out, texture, lod): reads the first channel in the middle. */
	".visible .entry level(.param .u64 out, .param .u64 texture, .param .f32 lod)\n{\n"
	".reg .b64 %o, %t; .reg .f32 %f<6>;\n"
	"ld.param.u64 %o, [out]; ld.param.u64 %t, [texture]; ld.param.f32 %f4, [lod]; mov.f32 %f5, 0f3F000000;\n"
	"tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f5, %f5}], %f4;\n"
	"st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};\nret;\n}\n"
	/* write(surface): each thread writes its number. */
	".visible .entry write(.param .u64 surface)\n{\n"
	".reg .b64 %s; .reg .b32 %x, %y, %b, %v;\n"
	"ld.param.u64 %s, [surface]; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; shl.b32 %b, %x, 2; mad.lo.u32 %v, %y, 100, %x;\n"
	"sust.b.2d.b32.trap [%s, {%b, %y}], %v;\nret;\n}\n";

static CUmodule module;

static CUfunction start(const char *name)
{
	CUcontext c;
	CUfunction f;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, 0, 0));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&f, module, name));
	return f;
}

static CUfunction function(const char *name)
{
	CUfunction f;

	CHECK(cuModuleGetFunction(&f, module, name));
	return f;
}

static CUarray array(size_t w, size_t h, size_t d, int format, unsigned int channels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR a = {w, h, d, format, channels, flags}, back;
	CUarray out;

	CHECK(cuArray3DCreate(&out, &a));
	CHECK(cuArray3DGetDescriptor(&back, out));
	EXPECT(memcmp(&a, &back, sizeof a) == 0);
	return out;
}

/* Allocates n bytes: ordinary memory, pinned memory or device memory. */
static void *place(int where, size_t n, CUdeviceptr *dev)
{
	void *p = NULL;

	*dev = 0;
	if (where == 0)
		p = malloc(n);
	else if (where == 1)
		CHECK(cuMemHostAlloc(&p, n, 0));
	else
		CHECK(cuMemAlloc(dev, n));
	EXPECT(p || *dev);
	return p;
}

static void unplace(int where, void *p, CUdeviceptr dev)
{
	if (where == 0)
		free(p);
	else if (where == 1)
		CHECK(cuMemFreeHost(p));
	else
		CHECK(cuMemFree(dev));
}

/* Copies a box from memory into an array, to another array, and back, all with pitches. */
static void round_trip(int from, int to, bool async)
{
	enum { PITCH = W * 4 + 12, ROWS = H + 1, N = PITCH * ROWS * D };
	CUarray a = array(W + 2, H + 1, D + 1, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0), b = array(W, H, D, CU_AD_FORMAT_FLOAT, 1, 0);
	unsigned char in[N], out[N], zero[N] = {0};
	CUdeviceptr src_dev, dst_dev;
	void *src = place(from, N, &src_dev), *dst = place(to, N, &dst_dev);
	CUstream s = NULL;

	for (int i = 0; i < N; i++)
		in[i] = (unsigned char)(i * 7 + i / 256);
	if (async)
		CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemcpy(src ? (CUdeviceptr)(uintptr_t)src : src_dev, (CUdeviceptr)(uintptr_t)in, N));
	CHECK(cuMemcpy(dst ? (CUdeviceptr)(uintptr_t)dst : dst_dev, (CUdeviceptr)(uintptr_t)zero, N));
	CHECK(cuCtxSynchronize());
	CUDA_MEMCPY3D c = {.srcMemoryType = src ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, .srcHost = src, .srcDevice = src_dev, .srcPitch = PITCH,
			   .srcHeight = ROWS, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a, .dstXInBytes = 4, .dstY = 1, .dstZ = 1,
			   .WidthInBytes = W * 4, .Height = H, .Depth = D};
	CHECK(async ? cuMemcpy3DAsync(&c, s) : cuMemcpy3D(&c));
	CUDA_MEMCPY3D m = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .srcXInBytes = 4, .srcY = 1, .srcZ = 1,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = b, .WidthInBytes = W * 4, .Height = H, .Depth = D};
	CHECK(async ? cuMemcpy3DAsync(&m, s) : cuMemcpy3D_v2_ptds(&m));
	if (!async)
		CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	CUDA_MEMCPY3D r = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = b, .dstMemoryType = dst ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
			   .dstHost = dst, .dstDevice = dst_dev, .dstPitch = PITCH, .dstHeight = ROWS, .WidthInBytes = W * 4, .Height = H, .Depth = D};
	CHECK(async ? cuMemcpy3DAsync(&r, s) : cuMemcpy3D(&r));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpy((CUdeviceptr)(uintptr_t)out, dst ? (CUdeviceptr)(uintptr_t)dst : dst_dev, N));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			EXPECT(memcmp(out + (z * ROWS + y) * PITCH, in + (z * ROWS + y) * PITCH, W * 4) == 0);
	CHECK(cuArrayDestroy(a));
	CHECK(cuArrayDestroy(b));
	unplace(from, src, src_dev);
	unplace(to, dst, dst_dev);
	if (s)
		CHECK(cuStreamDestroy(s));
}

static void array_copies(void)
{
	(void)start("read");
	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 3; to++)
			for (int async = 0; async < 2; async++)
				round_trip(from, to, async);
}

/* A copy that needs more temporary device memory than its limit. */
static void large_array_copies(void)
{
	enum { WIDE = 2048, HIGH = 1500 };
	CUarray a;
	unsigned int *in = malloc(WIDE * HIGH * 4), *out = calloc(WIDE * HIGH, 4);
	CUDA_ARRAY_DESCRIPTOR d = {WIDE, HIGH, CU_AD_FORMAT_UNSIGNED_INT32, 1}, back;
	size_t before, after, total;

	(void)start("read");
	CHECK(cuMemGetInfo(&before, &total));
	EXPECT(in && out);
	for (unsigned int i = 0; i < WIDE * HIGH; i++)
		in[i] = i * 2654435761u;
	CHECK(cuArrayCreate(&a, &d));
	CHECK(cuArrayGetDescriptor(&back, a));
	EXPECT(memcmp(&d, &back, sizeof d) == 0);
	CHECK(cuMemGetInfo(&after, &total));
	EXPECT(before - after >= WIDE * HIGH * 4);
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a,
			   .WidthInBytes = WIDE * 4, .Height = HIGH};
	CHECK(cuMemcpy2DAsync(&c, NULL));
	CUDA_MEMCPY2D r = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out,
			   .WidthInBytes = WIDE * 4, .Height = HIGH};
	CHECK(cuMemcpy2D(&r));
	EXPECT(memcmp(in, out, WIDE * HIGH * 4) == 0);
	CHECK(cuArrayDestroy(a));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemGetInfo(&after, &total));
	EXPECT(before == after);
	free(in);
	free(out);
}

/* Copies of arrays with one row. */
static void row_copies(void)
{
	CUarray a, b;
	unsigned int in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
	CUdeviceptr d;

	(void)start("read");
	a = array(8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0);
	b = array(8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0);
	CHECK(cuMemAlloc(&d, sizeof in));
	CHECK(cuMemcpyHtoA(a, 4, in, 28));
	CHECK(cuMemcpyHtoA_v2_ptds(a, 4, in, 28));
	CHECK(cuMemcpyHtoAAsync(a, 8, in, 8, NULL));
	CHECK(cuMemcpyAtoA(b, 0, a, 4, 28));
	CHECK(cuMemcpyAtoD(d, b, 0, 28));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyAtoA_v2_ptds(b, 0, a, 4, 28));
	CHECK(cuMemcpyAtoD_v2_ptds(d, b, 0, 28));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoA(a, 0, d, 28));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoA_v2_ptds(a, 0, d, 28));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyAtoH(out, a, 0, 16));
	CHECK(cuMemcpyAtoH_v2_ptds(out + 4, a, 16, 8));
	CHECK(cuMemcpyAtoHAsync(out + 6, a, 24, 4, NULL));
	CHECK(cuStreamSynchronize(NULL));
	for (unsigned int i = 0; i < 7; i++)
		EXPECT(out[i] == (i == 1 ? 1 : i == 2 ? 2 : i + 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 8, in, 28));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, SIZE_MAX, in, 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoD(d + 16, a, 0, 28));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpyAtoH(out, (CUarray)(uintptr_t)d, 0, 4));
	CHECK(cuArrayDestroy(a));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpyAtoH(out, a, 0, 4));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(a));
}

static void expect_read(CUfunction f, unsigned long long texture, float x, float y, float a, float b)
{
	static CUdeviceptr out;
	float got[4];
	void *params[] = {&out, &texture, &x, &y};

	if (!out)
		CHECK(cuMemAlloc(&out, 16));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(got, out, 16));
	if (got[0] != a || got[1] != b)
		fprintf(stderr, "the texture at (%g, %g) is (%g, %g), want (%g, %g)\n", (double)x, (double)y, (double)got[0], (double)got[1], (double)a, (double)b);
	EXPECT(got[0] == a && got[1] == b);
}

static void textures(void)
{
	CUfunction read = start("read");
	CUarray a = array(2, 2, 0, CU_AD_FORMAT_FLOAT, 2, 0);
	const float texels[8] = {0, 10, 1, 20, 2, 30, 3, 40};
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = texels, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a,
			   .WidthInBytes = 16, .Height = 2};
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a}, r_back;
	CUDA_TEXTURE_DESC t = {.addressMode = {1, 1, 1}, .filterMode = CU_TR_FILTER_MODE_LINEAR}, t_back;
	CUDA_RESOURCE_VIEW_DESC v = {.format = 0x17, .width = 2, .height = 2}, v_back;
	unsigned char bytes[4 * 32] = {0, 255};
	unsigned long long o, p;
	CUdeviceptr d;
	size_t most;

	CHECK(cuMemcpy2D(&c));
	CHECK(cuTexObjectCreate(&o, &r, &t, NULL));
	expect_read(read, o, 1, 1, 1.5f, 25);
	expect_read(read, o, 0.75f, 0.5f, 0.25f, 12.5f);
	expect_read(read, o, -7, 99, 2, 30);
	CHECK(cuTexObjectGetResourceDesc(&r_back, o));
	CHECK(cuTexObjectGetTextureDesc(&t_back, o));
	EXPECT(memcmp(&r, &r_back, sizeof r) == 0 && memcmp(&t, &t_back, sizeof t) == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceViewDesc(&v_back, o));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(o));
	CHECK(cuTexObjectDestroy(o));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(o));

	t.flags = CU_TRSF_NORMALIZED_COORDINATES;
	t.addressMode[0] = CU_TR_ADDRESS_MODE_WRAP;
	CHECK(cuTexObjectCreate(&o, &r, &t, &v));
	CHECK(cuTexObjectGetResourceViewDesc(&v_back, o));
	EXPECT(memcmp(&v, &v_back, sizeof v) == 0);
	expect_read(read, o, 5, 0.25f, 0.5f, 15);
	CHECK(cuTexObjectDestroy(o));

	/* Device memory with a pitch: bytes that are read as numbers from 0 to 1. */
	bytes[33] = 51;
	CHECK(cuMemAlloc(&d, sizeof bytes));
	CHECK(cuMemcpyHtoD(d, bytes, sizeof bytes));
	r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D,
				 .res.pitch2D = {d, CU_AD_FORMAT_UNSIGNED_INT8, 2, 2, 2, 32}};
	t = (CUDA_TEXTURE_DESC){.addressMode = {1, 1, 1}};
	CHECK(cuTexObjectCreate(&p, &r, &t, NULL));
	expect_read(read, p, 0, 0, 0, 1);
	expect_read(read, p, 0, 1, 0, 0.2f);
	CHECK(cuTexObjectDestroy(p));
	r.res.pitch2D.height = 5; /* beyond the allocation */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&p, &r, &t, NULL));
	r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR, .res.linear = {d + 4, CU_AD_FORMAT_FLOAT, 1, 16}};
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&p, &r, &t, NULL)); /* not aligned */
	r.res.linear.devPtr = d;
	CHECK(cuTexObjectCreate(&p, &r, &t, NULL));
	CHECK(cuTexObjectDestroy(p));
	CHECK(cuDeviceGetTexture1DLinearMaxWidth(&most, CU_AD_FORMAT_FLOAT, 4, 0));
	EXPECT(most >= 1 << 20);
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuTexObjectCreate(&p, &(CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY}, &t, NULL));
}

static void surfaces(void)
{
	CUfunction write = start("write");
	CUarray a = array(4, 2, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST), plain = array(4, 2, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a}, back;
	unsigned int out[8];
	unsigned long long o;
	void *params[] = {&o};

	CHECK(cuSurfObjectCreate(&o, &r));
	CHECK(cuSurfObjectGetResourceDesc(&back, o));
	EXPECT(memcmp(&r, &back, sizeof r) == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(o));
	CHECK(cuLaunchKernel(write, 1, 1, 1, 4, 2, 1, 0, NULL, params, NULL));
	CHECK(cuSurfObjectDestroy(o)); /* takes effect when the kernel is done */
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out,
			   .WidthInBytes = 16, .Height = 2};
	CHECK(cuMemcpy2D_v2_ptds(&c));
	for (unsigned int i = 0; i < 8; i++)
		EXPECT(out[i] == i / 4 * 100 + i % 4);
	r.res.array.hArray = plain;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&o, &r)); /* the array lacks the flag for surfaces */
	CHECK(cuLaunchKernel(write, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize()); /* the object was destroyed */
}

static void mipmaps(void)
{
	CUfunction level = start("level");
	CUDA_ARRAY3D_DESCRIPTOR d = {8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0}, back;
	CUDA_TEXTURE_DESC t = {.addressMode = {1, 1, 1}, .flags = CU_TRSF_NORMALIZED_COORDINATES, .mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR,
			       .maxMipmapLevelClamp = 9};
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
	CUmipmappedArray m;
	CUarray l, same;
	unsigned long long o;
	CUdeviceptr out;
	float lod = 1.25f, got;
	void *params[] = {&out, &o, &lod};

	CHECK(cuMemAlloc(&out, 16));
	CHECK(cuMipmappedArrayCreate(&m, &d, 3));
	for (unsigned int i = 0; i < 3; i++) {
		float texels[32];

		CHECK(cuMipmappedArrayGetLevel(&l, m, i));
		CHECK(cuMipmappedArrayGetLevel(&same, m, i));
		EXPECT(l == same);
		CHECK(cuArray3DGetDescriptor(&back, l));
		EXPECT(back.Width == 8u >> i && back.Height == 4u >> i && back.Depth == 0);
		for (int k = 0; k < 32; k++)
			texels[k] = (float)(i * i);
		CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = texels, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = l,
				   .WidthInBytes = back.Width * 4, .Height = back.Height};
		CHECK(cuMemcpy2D(&c));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(l));
	}
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&l, m, 3));
	r.res.mipmap.hMipmappedArray = m;
	CHECK(cuTexObjectCreate(&o, &r, &t, NULL));
	CHECK(cuLaunchKernel(level, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, out, 4));
	EXPECT(got == 0.75f * 1 + 0.25f * 4);
	CHECK(cuTexObjectDestroy(o));
	CHECK(cuMipmappedArrayDestroy(m));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&back, same));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&l, m, 0));
	(void)function("level");
}

/* Invalid sizes and formats of arrays, and handles of another context. */
static void bad_arrays(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR bad[] = {
		{0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, {4, 0, 0, CU_AD_FORMAT_FLOAT, 3, 0}, {4, 0, 0, 0x77, 1, 0}, {4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0x100},
		{SIZE_MAX, 2, 2, CU_AD_FORMAT_FLOAT, 1, 0}, {4, 4, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP}, {4, 0, 3, CU_AD_FORMAT_FLOAT, 1, 0},
	};
	CUDA_ARRAY3D_DESCRIPTOR large = {16384, 16384, 16384, CU_AD_FORMAT_FLOAT, 4, 0};
	CUcontext other;
	CUarray a;
	unsigned int word = 0;
	unsigned long long o;

	(void)start("read");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		GIVES(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&a, &bad[i]));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuArray3DCreate(&a, &large));
	a = array(4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
	CUDA_TEXTURE_DESC t = {.filterMode = 7};
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, &t, NULL));
	t = (CUDA_TEXTURE_DESC){.addressMode = {-1, 0, 0}};
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, &t, NULL));
	CHECK(cuCtxCreate(&other, 0, 0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyHtoA(a, 0, &word, 4));
	t = (CUDA_TEXTURE_DESC){0};
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuTexObjectCreate(&o, &r, &t, NULL));
	CHECK(cuCtxDestroy(other));
	CHECK(cuMemcpyHtoA(a, 0, &word, 4));
}

const struct test texture_tests[] = {
	{"array_copies", array_copies}, {"large_array_copies", large_array_copies}, {"row_copies", row_copies}, {"textures", textures},
	{"surfaces", surfaces}, {"mipmaps", mipmaps}, {"bad_arrays", bad_arrays}, {0},
};
