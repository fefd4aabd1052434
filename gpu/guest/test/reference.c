/* Tests of texture and surface references. */
#include "api.h"

static const char ptx[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
	".global .texref line;\n.global .texref image;\n.global .surfref face;\n"
	/* element(out, i): reads element i of linear memory. */
	".visible .entry element(.param .u64 out, .param .u32 i)\n{\n"
	".reg .b64 %o; .reg .b32 %i; .reg .f32 %f<4>;\n"
	"ld.param.u64 %o, [out]; ld.param.u32 %i, [i];\n"
	"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [line, {%i}];\n"
	"st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};\nret;\n}\n"
	/* at(out, x, y): reads an image, or the level that its reference selects. */
	".visible .entry at(.param .u64 out, .param .f32 x, .param .f32 y)\n{\n"
	".reg .b64 %o; .reg .f32 %f<6>;\n"
	"ld.param.u64 %o, [out]; ld.param.f32 %f4, [x]; ld.param.f32 %f5, [y];\n"
	"tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%f4, %f5}], 0f00000000;\n"
	"st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};\nret;\n}\n"
	/* write(): each thread writes its number. */
	".visible .entry write()\n{\n"
	".reg .b32 %x, %b;\n"
	"mov.u32 %x, %tid.x; shl.b32 %b, %x, 2;\n"
	"sust.b.1d.b32.trap [face, {%b}], %x;\nret;\n}\n";

static CUmodule module;
static CUdeviceptr out;

static CUfunction start(const char *name)
{
	CUcontext c;
	CUfunction f;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, 0, 0));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&f, module, name));
	CHECK(cuMemAlloc(&out, 16));
	return f;
}

static CUtexref reference(const char *name)
{
	CUtexref t, same;

	CHECK(cuModuleGetTexRef(&t, module, name));
	CHECK(cuModuleGetTexRef(&same, module, name));
	EXPECT(t == same);
	return t;
}

static void expect_element(CUfunction f, int i, float want)
{
	void *params[] = {&out, &i};
	float got[4];

	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(got, out, 16));
	if (got[0] != want)
		fprintf(stderr, "element %d is %g, want %g\n", i, (double)got[0], (double)want);
	EXPECT(got[0] == want);
}

static void expect_at(CUfunction f, float x, float y, float want)
{
	void *params[] = {&out, &x, &y};
	float got[4];

	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(got, out, 16));
	if (got[0] != want)
		fprintf(stderr, "the texture at (%g, %g) is %g, want %g\n", (double)x, (double)y, (double)got[0], (double)want);
	EXPECT(got[0] == want);
}

/* Linear memory: formats, an address within an allocation, a reference that is bound again. */
static void linear_references(void)
{
	CUfunction f = start("element");
	CUtexref line = reference("line");
	float numbers[256];
	CUarray_format format;
	int channels, none = 1;
	size_t offset = 77;
	CUdeviceptr d, back;
	CUarray a;

	for (int i = 0; i < 256; i++)
		numbers[i] = (float)i;
	CHECK(cuMemAlloc(&d, sizeof numbers));
	CHECK(cuMemcpyHtoD(d, numbers, sizeof numbers));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddress(&back, line));
	CHECK(cuTexRefSetFormat(line, CU_AD_FORMAT_FLOAT, 1));
	CHECK(cuTexRefSetAddress(&offset, line, d, sizeof numbers));
	EXPECT(offset == 0);
	CHECK(cuTexRefGetAddress(&back, line));
	EXPECT(back == d);
	expect_element(f, 7, 7);
	CHECK(cuTexRefSetFilterMode(line, CU_TR_FILTER_MODE_LINEAR)); /* no effect on linear memory */
	CHECK(cuTexRefSetAddress(&offset, line, d + 12, 512));
	EXPECT(offset == 12);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress(NULL, line, d + 12, 512));
	expect_element(f, 3 + 4, 7);
	CHECK(cuTexRefSetFormat(line, CU_AD_FORMAT_UNSIGNED_INT32, 2)); /* after the address */
	CHECK(cuTexRefSetFlags(line, CU_TRSF_READ_AS_INTEGER));
	CHECK(cuTexRefGetFormat(&format, &channels, line));
	EXPECT(format == CU_AD_FORMAT_UNSIGNED_INT32 && channels == 2);
	CHECK(cuTexRefGetFormat(NULL, &none, line));
	EXPECT(none == 2);
	expect_element(f, 4, 8);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress(&offset, line, d, sizeof numbers + 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress(&offset, line, d, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(line, CU_AD_FORMAT_FLOAT, 3));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(line, 0x77, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&a, line));
	CHECK(cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, line));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSetTexRef(f, 0, line));
}

/* Images: an array, rows with a pitch, levels, and the sampling state. */
static void image_references(void)
{
	CUfunction f = start("at");
	CUtexref image = reference("image");
	const float texels[4] = {0, 1, 2, 3}, red[4] = {5, 6, 7, 8};
	CUDA_ARRAY_DESCRIPTOR d = {2, 2, CU_AD_FORMAT_FLOAT, 1};
	CUDA_ARRAY3D_DESCRIPTOR d3 = {2, 2, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = texels, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .WidthInBytes = 8, .Height = 2};
	float bias, least, most, border[4];
	CUmipmappedArray m, m_back;
	unsigned int flags;
	CUarray a, level, back;
	CUaddress_mode mode;
	CUfilter_mode filter;
	CUdeviceptr p, at;
	size_t pitch;
	int anisotropy;

	CHECK(cuArrayCreate(&a, &d));
	c.dstArray = a;
	CHECK(cuMemcpy2D(&c));
	CHECK(cuTexRefSetArray(image, a, CU_TRSA_OVERRIDE_FORMAT));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetArray(image, a, 0));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetArray(image, NULL, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuTexRefGetArray(&back, image));
	EXPECT(back == a);
	expect_at(f, 1.5f, 0.5f, 1);
	expect_at(f, 9, 9, 3);
	CHECK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
	expect_at(f, 1, 1, 1.5f);
	CHECK(cuTexRefSetFlags(image, CU_TRSF_NORMALIZED_COORDINATES));
	CHECK(cuTexRefSetAddressMode(image, 0, CU_TR_ADDRESS_MODE_WRAP));
	expect_at(f, 5.25f, 0.25f, 0);
	CHECK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_POINT));
	CHECK(cuTexRefSetAddressMode(image, 0, CU_TR_ADDRESS_MODE_BORDER));
	CHECK(cuTexRefSetBorderColor(image, (float *)red));
	expect_at(f, 2, 0.25f, 5);
	CHECK(cuTexRefGetBorderColor(border, image));
	CHECK(cuTexRefGetAddressMode(&mode, image, 0));
	CHECK(cuTexRefGetFilterMode(&filter, image));
	CHECK(cuTexRefGetFlags(&flags, image));
	EXPECT(memcmp(border, red, sizeof red) == 0 && mode == CU_TR_ADDRESS_MODE_BORDER && filter == CU_TR_FILTER_MODE_POINT &&
	       flags == CU_TRSF_NORMALIZED_COORDINATES);
	CHECK(cuTexRefGetAddressMode(&mode, image, 1));
	EXPECT(mode == CU_TR_ADDRESS_MODE_CLAMP);

	CHECK(cuMemAllocPitch(&p, &pitch, 8, 2, 4));
	c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = red, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p, .dstPitch = pitch,
			    .WidthInBytes = 8, .Height = 2};
	CHECK(cuMemcpy2D(&c));
	CHECK(cuTexRefSetAddress2D_v3(image, &d, p, pitch));
	CHECK(cuTexRefSetAddress2D_v2(image, &d, p, pitch));
	CHECK(cuTexRefGetAddress(&at, image));
	EXPECT(at == p);
	expect_at(f, 0.75f, 0.75f, 8);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(image, CU_AD_FORMAT_FLOAT, 1)); /* not allowed after cuTexRefSetAddress2D */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(image, &d, p + 4, pitch));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(image, &d, p, pitch + 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(image, &(CUDA_ARRAY_DESCRIPTOR){2, 9000, CU_AD_FORMAT_FLOAT, 1}, p, pitch));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&back, image));

	CHECK(cuMipmappedArrayCreate(&m, &d3, 2));
	CHECK(cuMipmappedArrayGetLevel(&level, m, 1));
	CHECK(cuMemcpyHtoA(level, 0, red, 4));
	CHECK(cuTexRefSetMipmappedArray(image, m, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuTexRefGetMipmappedArray(&m_back, image));
	EXPECT(m_back == m);
	CHECK(cuTexRefSetMipmapLevelClamp(image, 1, 1));
	CHECK(cuTexRefSetMipmapFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
	CHECK(cuTexRefSetMipmapLevelBias(image, 0.5f));
	CHECK(cuTexRefSetMaxAnisotropy(image, 4));
	CHECK(cuTexRefGetMipmapLevelClamp(&least, &most, image));
	CHECK(cuTexRefGetMipmapFilterMode(&filter, image));
	CHECK(cuTexRefGetMipmapLevelBias(&bias, image));
	CHECK(cuTexRefGetMaxAnisotropy(&anisotropy, image));
	EXPECT(least == 1 && most == 1 && filter == CU_TR_FILTER_MODE_LINEAR && bias == 0.5f && anisotropy == 4);
	expect_at(f, 0.25f, 0.25f, 5);
}

static void surface_references(void)
{
	CUfunction f = start("write");
	CUDA_ARRAY3D_DESCRIPTOR d = {4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
	CUDA_ARRAY_DESCRIPTOR plain = {4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
	unsigned int got[4];
	CUsurfref face;
	CUarray a, other, back;
	CUtexref none;

	GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&none, module, "face"));
	GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&face, module, "line"));
	CHECK(cuModuleGetSurfRef(&face, module, "face"));
	CHECK(cuArray3DCreate(&a, &d));
	CHECK(cuArrayCreate(&other, &plain));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuSurfRefGetArray(&back, face));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuSurfRefSetArray(face, other, 0)); /* the array lacks the flag for surfaces */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuSurfRefSetArray(face, a, 1));
	CHECK(cuSurfRefSetArray(face, a, 0));
	CHECK(cuSurfRefGetArray(&back, face));
	EXPECT(back == a);
	CHECK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, NULL, NULL, NULL));
	CHECK(cuMemcpyAtoH(got, a, 0, sizeof got));
	for (unsigned int i = 0; i < 4; i++)
		EXPECT(got[i] == i);
}

/* A kernel in a stream and one in a graph: each launch uses the resource that is bound at that
 * time. */
static void references_of_launches(void)
{
	CUfunction f = start("element");
	CUtexref line = reference("line");
	const float numbers[2] = {3, 4};
	CUdeviceptr d[2], results;
	CUgraphExec exec;
	float got[3][4];
	int i = 0;
	void *params[] = {&results, &i};
	CUgraph g;
	CUstream s;

	CHECK(cuMemAlloc(&results, sizeof got));
	for (int k = 0; k < 2; k++) {
		CHECK(cuMemAlloc(&d[k], 4));
		CHECK(cuMemcpyHtoD(d[k], &numbers[k], 4));
	}
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int k = 0; k < 2; k++) {
		CHECK(cuTexRefSetAddress(NULL, line, d[k], 4));
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
		results += 16;
	}
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(cuGraphInstantiateWithFlags(&exec, g, 0));
	CHECK(cuTexRefSetAddress(NULL, line, d[0], 4));
	CHECK(cuGraphLaunch(exec, s));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpyDtoH(got, results - 32, sizeof got));
	EXPECT(got[0][0] == 3 && got[1][0] == 4 && got[2][0] == 3);
}

static void bad_references(void)
{
	CUfunction f = start("element");
	CUtexref line = reference("line"), own, none;
	CUDA_ARRAY_DESCRIPTOR d = {4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
	CUcontext other;
	CUmodule twice;
	CUarray a;

	GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&none, module, "nothing"));
	GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&none, module, ""));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleGetTexRef(&none, NULL, "line"));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(NULL, module, "line"));
	CHECK(cuModuleLoadData(&twice, ptx));
	CHECK(cuModuleGetTexRef(&none, twice, "line"));
	EXPECT(none != line);
	CHECK(cuModuleUnload(twice));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(none, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefDestroy(line)); /* it belongs to the module */
	CHECK(cuTexRefCreate(&own));
	CHECK(cuTexRefSetFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, own));
	CHECK(cuTexRefDestroy(own));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefDestroy(own));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(line, 3, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(line, 0, 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFilterMode(line, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(line, 1u << 20));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetMaxAnisotropy(line, 17));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetBorderColor(line, NULL));
	CHECK(cuCtxCreate(&other, 0, 0));
	CHECK(cuArrayCreate(&a, &d));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuTexRefSetArray(line, a, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuCtxDestroy(other));
	CHECK(cuArrayCreate(&a, &d));
	CHECK(cuTexRefSetArray(line, a, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuArrayDestroy(a)); /* before the worker has received the binding */
	CHECK(cuCtxSynchronize());
	CHECK(cuModuleUnload(module));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(line, 0));
}

/* A reference with an invalid state is an error of launches, until it is corrected. */
static void reference_filters(void)
{
	CUfunction f = start("element");
	CUtexref line = reference("line");
	CUDA_ARRAY_DESCRIPTOR d = {4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
	CUarray a;
	int i = 0;
	void *params[] = {&out, &i};

	CHECK(cuArrayCreate(&a, &d));
	CHECK(cuTexRefSetArray(line, a, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuTexRefSetFilterMode(line, CU_TR_FILTER_MODE_LINEAR)); /* integers cannot be interpolated */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuTexRefSetFilterMode(line, CU_TR_FILTER_MODE_POINT));
	CHECK(cuTexRefSetFlags(line, CU_TRSF_READ_AS_INTEGER));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
}

const struct test reference_tests[] = {
	{"linear_references", linear_references}, {"image_references", image_references}, {"surface_references", surface_references},
	{"references_of_launches", references_of_launches}, {"bad_references", bad_references}, {"reference_filters", reference_filters}, {0},
};
