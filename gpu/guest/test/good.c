/* Calls functions that no other test calls with valid arguments: older versions, forms for
 * per-thread default streams, and functions that only store a value. good_test.go checks that
 * no function of the table is missing. */
#include "good.h"

static void good_contexts(void)
{
	CUcontext all[4], c;
	unsigned int flags = 77;
	unsigned long long id = 0, other = 0;
	CUsharedconfig banks;
	CUfunc_cache cache;
	size_t limit = 0;
	int active;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate_v3(&all[0], NULL, 0, 1, 0));
	CHECK(cuCtxCreate_v4(&all[1], NULL, 0, 0));
	CHECK(cuCtxCreate_v2(&all[2], 0, 0));
	CHECK(cuCtxCreate_v2(&all[3], 0, 0));
	CHECK(cuCtxGetId(all[0], &id));
	CHECK(cuCtxGetId(NULL, &other));
	EXPECT(id && other && id != other);
	CHECK(cuCtxPopCurrent(&c));
	EXPECT(c == all[3]);
	CHECK(cuCtxPushCurrent(all[0]));
	CHECK(cuCtxGetFlags(&flags));
	EXPECT(flags == 1);
	CHECK(cuCtxSetFlags(4));
	CHECK(cuCtxGetFlags(&flags));
	EXPECT(flags == 4);
	CHECK(cuCtxSetLimit(0, 8192)); /* the size of the stack */
	CHECK(cuCtxGetLimit(&limit, 0));
	EXPECT(limit == 8192);
	CHECK(cuCtxSetCacheConfig(2));
	CHECK(cuCtxGetCacheConfig(&cache));
	EXPECT(cache == 2);
	CHECK(cuCtxSetSharedMemConfig(2));
	CHECK(cuCtxGetSharedMemConfig(&banks));
	EXPECT(banks == 2);
	GIVES(217, cuCtxEnablePeerAccess(all[1], 0)); /* there is one device */
	GIVES(705, cuCtxDisablePeerAccess(all[1]));
	CHECK(cuCtxDestroy(all[3]));
	CHECK(cuCtxAttach(&c, 0));
	EXPECT(c == all[0]);
	CHECK(cuCtxDetach(all[0]));
	CHECK(cuCtxGetApiVersion(all[0], &flags)); /* it still exists */
	CHECK(cuCtxDetach(all[0]));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(all[0], &flags));
	CHECK(cuDevicePrimaryCtxSetFlags(0, 1));
	CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT(flags == 1 && !active);
	CHECK(cuDevicePrimaryCtxSetFlags_v2(0, 0));
	CHECK(cuDevicePrimaryCtxRetain(&c, 0));
	CHECK(cuDevicePrimaryCtxReset_v2(0));
	CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT(flags == 0 && !active);
}

static void good_devices(void)
{
	int major = 0, minor = -1, can = 77, affinity = 77;
	unsigned long long bytes = 77;
	const char *text = NULL;
	CUdevprop properties;
	char bus[32];
	CUdevice d = -1;

	CHECK(cuInit(0));
	CHECK(cuDeviceComputeCapability(&major, &minor, 0));
	EXPECT(major >= 5 && minor >= 0);
	CHECK(cuDeviceGetProperties(&properties, 0));
	EXPECT(properties.SIMDWidth == 32 && properties.maxThreadsPerBlock >= 1024);
	CHECK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
	CHECK(cuDeviceGetByPCIBusId(&d, bus));
	EXPECT(d == 0);
	CHECK(cuDeviceCanAccessPeer(&can, 0, 0));
	CHECK(cuDeviceGetExecAffinitySupport(&affinity, 0, 0));
	EXPECT(can == 0 && affinity == 0);
	CHECK(cuDeviceGraphMemTrim(0));
	CHECK(cuDeviceGetGraphMemAttribute(0, 1, &bytes));
	EXPECT(bytes == 0);
	CHECK(cuDeviceSetGraphMemAttribute(0, 1, &bytes));
	CHECK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
	EXPECT(text && *text);
}

/* Checks the information about vecadd's parameters: three pointers and a number. */
static void parameters(CUfunction f, CUkernel k)
{
	size_t offset = 77, size = 77;

	CHECK(cuFuncGetParamInfo(f, 3, &offset, &size));
	EXPECT(offset == 24 && size == 4);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 4, &offset, &size));
	CHECK(cuKernelGetParamInfo(k, 1, &offset, &size));
	EXPECT(offset == 8 && size == 8);
}

static void good_functions(void)
{
	CUfunction f = demo_start("vecadd"), all[64], of_kernel;
	CUfunctionLoadingState loaded = 77;
	CUdeviceptr table = 0;
	unsigned int n = 0, kernels = 0;
	int value = -1, blocks = 0, threads = 0;
	const char *name = NULL;
	size_t bytes = 0;
	CUlibrary lib;
	CUmodule m;
	CUkernel k;

	CHECK(cuFuncGetModule(&m, f));
	CHECK(cuModuleGetFunctionCount(&n, m));
	EXPECT(n >= 5 && n <= 64);
	CHECK(cuModuleEnumerateFunctions(all, n, m));
	CHECK(cuFuncGetName(&name, f));
	EXPECT(strcmp(name, "vecadd") == 0);
	CHECK(cuFuncLoad(f));
	CHECK(cuFuncIsLoaded(&loaded, f));
	EXPECT(loaded == 1);
	CHECK(cuFuncSetCacheConfig(f, 1));
	CHECK(cuFuncSetSharedMemConfig(f, 1));
	CHECK(cuOccupancyMaxPotentialBlockSizeWithFlags(&blocks, &threads, f, NULL, 0, 256, 0));
	EXPECT(blocks > 0 && threads > 0 && threads <= 256);

	CHECK(cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernelCount(&kernels, lib));
	EXPECT(kernels == n);
	CHECK(cuLibraryGetGlobal(&table, &bytes, lib, "table"));
	EXPECT(table && bytes == 16);
	CHECK(cuLibraryGetKernel(&k, lib, "vecadd"));
	CHECK(cuKernelGetName(&name, k));
	EXPECT(strcmp(name, "vecadd") == 0);
	CHECK(cuKernelGetFunction(&of_kernel, k));
	CHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, k, 0));
	CHECK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, k, 0));
	EXPECT(value == 50);
	parameters(of_kernel, k);
}

/* Creates a file with the PTX. The caller removes it. */
static void ptx_file(char path[])
{
	size_t size = strlen(kernels_ptx);
	int fd = mkstemp(path);

	EXPECT(fd >= 0 && write(fd, kernels_ptx, size) == (ssize_t)size && close(fd) == 0);
}

static void good_modules(void)
{
	char path[] = "/tmp/basalt-guest-XXXXXX";
	CUlinkState link;
	CUmodule m;
	CUfunction f;
	void *image;
	size_t size = 0;

	(void)demo_start("poke");
	ptx_file(path);
	CUresult loaded = cuModuleLoad(&m, path);
	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	CUresult added = cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL);
	unlink(path);
	CHECK(loaded);
	CHECK(added);
	CHECK(cuModuleGetFunction(&f, m, "poke"));
	CHECK(cuLinkComplete(link, &image, &size));
	EXPECT(image && size);
	CHECK(cuLinkDestroy(link));
	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels_ptx, strlen(kernels_ptx) + 1, "k", 0, NULL, NULL));
	CHECK(cuLinkComplete(link, &image, &size));
	CHECK(cuModuleLoadFatBinary(&m, image));
	CHECK(cuModuleGetFunction(&f, m, "count"));
	CHECK(cuLinkDestroy(link));
}

static unsigned int word_at(CUdeviceptr p)
{
	unsigned int got = 0;

	CHECK(cuMemcpyDtoH_v2_ptds(&got, p, sizeof got));
	return got;
}

static void good_launches(void)
{
	CUfunction f = demo_start("poke");
	CUdeviceptr p;
	unsigned int value = 5;
	void *params[] = {&p, &value};
	CUlaunchConfig one = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};

	CHECK(cuMemAlloc_v2(&p, 4));
	CHECK(cuLaunchKernelEx(&one, f, params, NULL));
	EXPECT(word_at(p) == 5);
	value = 6;
	CHECK(cuLaunchKernelEx_ptsz(&one, f, params, NULL));
	EXPECT(word_at(p) == 6);
}

/* Launches as programs did before CUDA 4, and as pycuda still does. */
static void good_kept_launches(void)
{
	CUfunction f = demo_start("poke");
	CUdeviceptr p;
	CUstream s;

	CHECK(cuMemAlloc_v2(&p, 4));
	CHECK(cuStreamCreate(&s, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunch(f)); /* it has no block yet */
	CHECK(cuFuncSetBlockShape(f, 1, 1, 1));
	CHECK(cuFuncSetSharedSize(f, 64));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunch(f)); /* and no parameters */
	CHECK(cuParamSetv(f, 0, &p, sizeof p));
	CHECK(cuParamSeti(f, 8, 5));
	CHECK(cuParamSetSize(f, 12));
	CHECK(cuLaunch(f));
	EXPECT(word_at(p) == 5);
	CHECK(cuParamSetf(f, 8, 1.0f));
	CHECK(cuLaunchGrid(f, 2, 2));
	EXPECT(word_at(p) == 0x3f800000);
	CHECK(cuParamSeti(f, 8, 7));
	CHECK(cuLaunchGridAsync(f, 1, 1, s));
	CHECK(cuParamSeti(f, 8, 8)); /* for the next one */
	CHECK(cuStreamSynchronize(s));
	EXPECT(word_at(p) == 7);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(f, 0, 1, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSeti(f, 4094, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSeti(f, -4, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, 0, NULL, 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(f, 4097));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 0, 1));
}

static void good_streams(void)
{
	CUcontext current, of;
	unsigned long long id = 0, other = 0;
	unsigned int flags = 77, got[2] = {0};
	int priority = 77;
	CUstreamBatchMemOpParams ops[3] = {0};
	CUdeviceptr p;
	CUstream s;
	CUevent e;

	(void)demo_start("poke");
	CHECK(cuCtxGetCurrent(&current));
	CHECK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -1));
	CHECK(cuStreamGetPriority(s, &priority));
	EXPECT(priority == -1);
	CHECK(cuStreamGetFlags(s, &flags));
	EXPECT(flags == CU_STREAM_NON_BLOCKING);
	CHECK(cuStreamGetCtx(s, &of));
	EXPECT(of == current);
	CHECK(cuStreamGetId(s, &id));
	CHECK(cuStreamGetId(NULL, &other));
	EXPECT(id != other);
	CHECK(cuMemAlloc_v2(&p, sizeof got));
	/* A soft GPU does not have these operations; a physical GPU writes. */
	CHECK(cuMemsetD32_v2(p, 1, 2));
	CHECK(cuCtxSynchronize());
	for (int wide = 0; wide < 2; wide++) {
		CUresult r = wide ? cuStreamWriteValue64(s, p, 1ull << 32 | 8, 0) : cuStreamWriteValue32(s, p, 7, 0);

		if (r != CUDA_ERROR_NOT_SUPPORTED)
			CHECK(r);
		CHECK(cuStreamSynchronize(s));
		CHECK(cuMemcpyDtoH_v2(got, p, sizeof got));
		EXPECT(got[0] == (r ? 1 : wide ? 8 : 7) && got[1] == 1);
	}
	for (int form = 0; form < 8; form++) { /* the value that the word has, so that nothing waits */
		CUstream in = form & 2 ? NULL : s;
		uint64_t word = 9;

		CHECK(cuMemcpyHtoD_v2(p, &word, sizeof word));
		CHECK(cuCtxSynchronize());
		switch (form) {
		case 0: CHECK(cuStreamWaitValue32(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 1: CHECK(cuStreamWaitValue32_v2(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 2: CHECK(cuStreamWaitValue32_ptsz(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 3: CHECK(cuStreamWaitValue32_v2_ptsz(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 4: CHECK(cuStreamWaitValue64(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 5: CHECK(cuStreamWaitValue64_v2(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 6: CHECK(cuStreamWaitValue64_ptsz(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		case 7: CHECK(cuStreamWaitValue64_v2_ptsz(in, p, 9, CU_STREAM_WAIT_VALUE_EQ)); break;
		}
		CHECK(cuCtxSynchronize());
	}
	ops[0].writeValue.address = p;
	ops[1].operation = CU_STREAM_MEM_OP_BARRIER;
	ops[2].writeValue.address = p + 4;
	for (int form = 0; form < 4; form++) {
		CUstream in = form < 2 ? s : NULL;

		for (unsigned int i = 0; i < 3; i += 2) {
			ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
			ops[i].writeValue.value = 20 + 2 * (unsigned int)form + i / 2;
		}
		CHECK((form & 1 ? form == 1 ? cuStreamBatchMemOp_v2 : cuStreamBatchMemOp_v2_ptsz : form ? cuStreamBatchMemOp_ptsz : cuStreamBatchMemOp)(in, 3, ops, 0));
		CHECK(cuCtxSynchronize());
		CHECK(cuMemcpyDtoH_v2(got, p, sizeof got));
		EXPECT(got[0] == 20 + 2 * (unsigned int)form && got[1] == got[0] + 1);
	}
	CHECK(cuEventCreate(&e, 0));
	CHECK(cuEventDestroy(e));
	CHECK(cuStreamDestroy(s));
}

/* Calls every form of memset on a word that it sets, and checks another that it must not. */
static void good_memsets(void)
{
	CUstream s;
	CUdeviceptr p;

	(void)demo_start("poke");
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuMemAlloc_v2(&p, 8));
#define SETS(want, call)                                                                                               \
	do {                                                                                                           \
		CHECK(cuMemsetD32_v2(p, 9, 2));                                                                        \
		CHECK(call);                                                                                           \
		CHECK(cuCtxSynchronize());                                                                             \
		EXPECT(word_at(p) == (want) && word_at(p + 4) == 9);                                                   \
	} while (0)
	SETS(0x00030003, cuMemsetD16_v2(p, 3, 2));
	SETS(0x00030003, cuMemsetD16_v2_ptds(p, 3, 2));
	SETS(0x00040004, cuMemsetD16Async(p, 4, 2, s));
	SETS(0x01010101, cuMemsetD8_v2_ptds(p, 1, 4));
	SETS(0x12345678, cuMemsetD32_v2_ptds(p, 0x12345678, 1));
	SETS(0x00050005, cuMemsetD2D16Async(p, 2, 5, 1, 2, s));
	SETS(0x00060006, cuMemsetD2D16_v2_ptds(p, 2, 6, 1, 2));
	SETS(7, cuMemsetD2D32_v2(p, 4, 7, 1, 1));
	SETS(8, cuMemsetD2D32_v2_ptds(p, 4, 8, 1, 1));
	SETS(0x02020202, cuMemsetD2D8Async(p, 2, 2, 2, 2, s));
	SETS(0x03030303, cuMemsetD2D8_v2_ptds(p, 2, 3, 2, 2));
}

static void good_copies(void)
{
	unsigned int in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, own[4];
	CUdeviceptr p, q, pitched;
	size_t pitch = 0;
	CUstream s;

	(void)demo_start("poke");
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuMemAlloc_v2(&p, sizeof in));
	CHECK(cuMemAlloc_v2(&q, sizeof in));
	CHECK(cuMemcpyHtoD_v2(p, in, sizeof in));
	CHECK(cuMemcpyDtoD_v2_ptds(q, p, sizeof in));
	EXPECT(word_at(q + 4) == 2);
	CHECK(cuMemcpyAsync(q, p + 4, 4, s));
	CHECK(cuStreamSynchronize(s));
	EXPECT(word_at(q) == 2);
	CHECK(cuMemcpy_ptds(q, p + 8, 4));
	EXPECT(word_at(q) == 3);
	/* The second word of each row of two. */
	CUDA_MEMCPY2D column = {.srcXInBytes = 4, .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 8,
				.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = q, .dstPitch = 4, .WidthInBytes = 4, .Height = 4};
	CHECK(cuMemcpy2DUnaligned_v2(&column));
	EXPECT(word_at(q) == 2 && word_at(q + 12) == 8);
	column.srcXInBytes = 0;
	CHECK(cuMemcpy2DUnaligned_v2_ptds(&column));
	EXPECT(word_at(q) == 1 && word_at(q + 12) == 7);
	column.srcXInBytes = 4;
	CHECK(cuMemcpy2D_v2_ptds(&column));
	EXPECT(word_at(q) == 2 && word_at(q + 12) == 8);
	CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 8, .srcHeight = 2,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = q, .dstPitch = 4, .dstHeight = 2,
			     .WidthInBytes = 4, .Height = 2, .Depth = 2};
	CHECK(cuMemcpy3D_v2_ptds(&box));
	EXPECT(word_at(q) == 1 && word_at(q + 12) == 7);
	box.srcXInBytes = 4;
	CHECK(cuMemcpy3DAsync_v2(&box, s));
	CHECK(cuStreamSynchronize(s));
	EXPECT(word_at(q) == 2 && word_at(q + 12) == 8);
	CHECK(cuMemAllocPitch_v2(&pitched, &pitch, 100, 3, 4));
	EXPECT(pitch >= 100 && pitch % 4 == 0);
	CHECK(cuMemcpyHtoD_v2(pitched + 2 * pitch, in, 4));
	CHECK(cuMemHostRegister(own, sizeof own, 0));
	CHECK(cuMemcpyDtoH_v2(own, pitched + 2 * pitch, 4));
	EXPECT(own[0] == 1);
	CHECK(cuMemHostUnregister(own));
}

const struct test good_tests[] = {
	{"good_contexts", good_contexts}, {"good_devices", good_devices}, {"good_functions", good_functions}, {"good_modules", good_modules},
	{"good_launches", good_launches}, {"good_kept_launches", good_kept_launches}, {"good_streams", good_streams}, {"good_memsets", good_memsets}, {"good_copies", good_copies},
	{NULL, NULL},
};
