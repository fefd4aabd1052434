/* Batches of copies, with their attributes, and the error log. */
#include <stdlib.h>

#include "good.h"

#define N 6u
#define BYTES 256u

/* Six places of each kind: ordinary memory of the program, pinned memory, device memory. */
struct places {
	unsigned char own[N][BYTES], *pinned;
	CUdeviceptr device, other;
	CUstream stream;
};

static void places_make(struct places *p)
{
	(void)demo_start("poke");
	CHECK(cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemHostAlloc((void **)&p->pinned, N * BYTES, 0));
	CHECK(cuMemAlloc_v2(&p->device, N * BYTES));
	CHECK(cuMemAlloc_v2(&p->other, N * BYTES));
	for (unsigned int i = 0; i < N; i++)
		memset(p->own[i], (int)i + 1, BYTES);
	memset(p->pinned, 0, N * BYTES);
	CHECK(cuMemsetD8_v2(p->device, 0, N * BYTES));
	CHECK(cuMemsetD8_v2(p->other, 0, N * BYTES));
	CHECK(cuCtxSynchronize());
}

static bool all_are(CUdeviceptr p, unsigned char want)
{
	unsigned char got[BYTES];

	CHECK(cuMemcpyDtoH_v2(got, p, BYTES));
	for (unsigned int i = 0; i < BYTES; i++)
		if (got[i] != want)
			return false;
	return true;
}

#define HOST(p) ((CUdeviceptr)(uintptr_t)(p))

static void batch_copies(void)
{
	CUmemcpyAttributes a[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
				   {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, .flags = 1}};
	size_t sizes[N], from[2] = {0, 3}, fail = 77;
	CUdeviceptr dst[N], src[N];
	struct places p;

	places_make(&p);
	for (unsigned int i = 0; i < N; i++) {
		dst[i] = p.device + i * BYTES;
		src[i] = HOST(p.own[i]);
		sizes[i] = BYTES;
	}
	CHECK(cuMemcpyBatchAsync(dst, src, sizes, N, a, from, 2, &fail, p.stream));
	memset(p.own, 0xee, sizeof p.own); /* the sources have been staged */
	CHECK(cuStreamSynchronize(p.stream));
	for (unsigned int i = 0; i < N; i++)
		EXPECT(all_are(dst[i], (unsigned char)(i + 1)));
	EXPECT(fail == 77);
	/* Copies from the device into each kind of memory, in one batch, and back. */
	CUdeviceptr to[4] = {p.other, HOST(p.pinned), HOST(p.pinned + BYTES), HOST(p.own[0])}, back[4];
	for (unsigned int i = 0; i < 4; i++)
		back[i] = p.other + (i + 1) * BYTES;
	CHECK(cuMemcpyBatchAsync_v2(to, src + 0, (size_t[]){0, 0, 0, 0}, 4, a, from, 1, p.stream)); /* nothing */
	CHECK(cuMemcpyBatchAsync_v2(to, (CUdeviceptr[]){dst[1], dst[2], dst[3], dst[4]}, sizes, 4, a, from, 1, p.stream));
	CHECK(cuMemcpyBatchAsync_v2_ptsz(back, to, sizes, 4, a + 1, from, 1, p.stream));
	memset(p.pinned, 0xee, N * BYTES); /* the access order guarantees that it has been read */
	CHECK(cuStreamSynchronize(p.stream));
	for (unsigned int i = 0; i < 4; i++)
		EXPECT(all_are(back[i], (unsigned char)(i + 2)));
	EXPECT(p.own[0][0] == 5);
	CHECK(cuMemcpyWithAttributesAsync(p.device, p.other, BYTES, a + 1, p.stream));
	CHECK(cuStreamSynchronize(p.stream));
	EXPECT(all_are(p.device, 2));
	CHECK(cuMemcpyWithAttributesAsync_ptsz(p.device, back[3], BYTES, a, NULL));
	CHECK(cuCtxSynchronize());
	EXPECT(all_are(p.device, 5));
}

/* If a copy of a batch is invalid, nothing is copied, and its index is returned. */
static void batch_refused(void)
{
	CUmemcpyAttributes a[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY}, {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY}};
	size_t sizes[N], from[2] = {0, 2}, fail;
	CUdeviceptr dst[N], src[N];
	struct places p;
	CUgraph g;

	places_make(&p);
	for (unsigned int i = 0; i < N; i++) {
		dst[i] = p.device + i * BYTES;
		src[i] = HOST(p.own[i]);
		sizes[i] = BYTES;
	}
#define WRONG(index, ...)                                                                                              \
	do {                                                                                                           \
		fail = 77;                                                                                             \
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(__VA_ARGS__, &fail, p.stream));                     \
		EXPECT(fail == (index));                                                                               \
	} while (0)
	WRONG(SIZE_MAX, dst, src, sizes, 0, a, from, 1);
	WRONG(SIZE_MAX, dst, src, NULL, N, a, from, 1);
	WRONG(SIZE_MAX, dst, src, sizes, N, a, from, 0);
	WRONG(SIZE_MAX, dst, src, sizes, 1, a, from, 2); /* more lists than copies */
	WRONG(SIZE_MAX, dst, src, sizes, N, a, from + 1, 1); /* the list does not begin at the first copy */
	WRONG(SIZE_MAX, dst, src, sizes, N, a, ((size_t[]){0, 0}), 2);
	WRONG(SIZE_MAX, dst, src, sizes, N, a, ((size_t[]){0, N}), 2);
	a[1].srcAccessOrder = 0;
	WRONG(2, dst, src, sizes, N, a, from, 2);
	a[1].srcAccessOrder = 4;
	WRONG(2, dst, src, sizes, N, a, from, 2);
	a[1] = a[0];
	a[1].flags = 2;
	WRONG(2, dst, src, sizes, N, a, from, 2);
	a[1].flags = 0;
	sizes[5] = BYTES + 1; /* past the allocation's end */
	WRONG(5, dst, src, sizes, N, a, from, 2);
	sizes[5] = BYTES;
	src[4] = 0;
	WRONG(4, dst, src, sizes, N, a, from, 2);
	src[4] = HOST(p.own[4]);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, N, a, from, 2, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(dst, src, sizes, N, a, from, 2, CU_STREAM_LEGACY));
	EXPECT(all_are(p.device, 0));
	CHECK(cuStreamBeginCapture_v2(p.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemcpyBatchAsync_v2(dst, src, sizes, N, a, from, 2, p.stream));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(p.stream, &g));
	CHECK(cuMemcpyBatchAsync_ptsz(dst, src, sizes, N, a, from, 2, NULL, NULL));
	CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	EXPECT(all_are(dst[5], 6));
}

/* Boxes of four by three by two elements. */
#define W 4u
#define H 3u
#define D 2u

static CUmemcpy3DOperand pointer(CUdeviceptr p, size_t row, size_t layer)
{
	return (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = p, .rowLength = row, .layerHeight = layer}};
}

static void batch_boxes(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {8, 8, 4, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
	unsigned int in[W * H * D], out[8 * 5 * D], packed[W * H * D];
	CUDA_MEMCPY3D_BATCH_OP ops[2] = {{.extent = {W, H, D}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL},
					 {.extent = {sizeof in, 1, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
	struct places p;
	CUarray array;
	size_t fail = 77;

	places_make(&p);
	for (unsigned int i = 0; i < W * H * D; i++)
		in[i] = i + 1;
	CHECK(cuArray3DCreate_v2(&array, &desc));
	/* From packed memory into the array at (1, 2, 1), and bytes of memory. */
	ops[0].src = pointer(HOST(in), 0, 0);
	ops[0].dst = (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_ARRAY, .op.array = {array, {1, 2, 1}}};
	ops[1].src = pointer(HOST(in), 0, 0);
	ops[1].dst = pointer(p.device, 0, 0);
	CHECK(cuMemcpy3DBatchAsync(2, ops, &fail, 0, p.stream));
	memset(out, 0, sizeof out);
	memset(packed, 0, sizeof packed);
	/* Back into rows of eight and layers of five. */
	ops[0].src = ops[0].dst;
	ops[0].dst = pointer(HOST(out), 8, 5);
	ops[1].src = pointer(p.device, 0, 0);
	ops[1].dst = pointer(HOST(packed), 0, 0);
	CHECK(cuMemcpy3DBatchAsync_v2(2, ops, 0, p.stream));
	CHECK(cuStreamSynchronize(p.stream));
	EXPECT(memcmp(in, packed, sizeof in) == 0);
	for (unsigned int z = 0; z < D; z++)
		for (unsigned int y = 0; y < H; y++)
			EXPECT(memcmp(out + (z * 5 + y) * 8, in + (z * H + y) * W, W * sizeof *in) == 0 && out[(z * 5 + y) * 8 + W] == 0);
	memset(packed, 0, sizeof packed);
	CHECK(cuMemcpy3DWithAttributesAsync(&ops[1], 0, p.stream));
	CHECK(cuStreamSynchronize(p.stream));
	EXPECT(memcmp(in, packed, sizeof in) == 0);
	CHECK(cuMemcpy3DWithAttributesAsync_ptsz(&ops[1], 0, NULL));
	CHECK(cuMemcpy3DBatchAsync_ptsz(2, ops, NULL, 0, NULL));
	CHECK(cuMemcpy3DBatchAsync_v2_ptsz(2, ops, 0, NULL));
	/* Invalid arguments. */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(0, ops, &fail, 0, p.stream));
	EXPECT(fail == SIZE_MAX);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, ops, &fail, 1, p.stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, ops, &fail, 0, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DWithAttributesAsync(&ops[1], 1, p.stream));
	for (unsigned int i = 0; i < 7; i++) {
		CUDA_MEMCPY3D_BATCH_OP bad[2] = {ops[0], ops[1]};

		switch (i) {
		case 0: bad[1].extent.height = 0; break;
		case 1: bad[1].srcAccessOrder = 0; break;
		case 2: bad[1].flags = 2; break;
		case 3: bad[1].src.op.ptr.rowLength = sizeof in - 1; break;
		case 4: bad[1].dst.type = 3; break;
		case 5: bad[1].extent.width = N * BYTES + 1; break;
		case 6: bad[1].extent.depth = SIZE_MAX / 2; break;
		}
		fail = 77;
		GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, bad, &fail, 0, p.stream));
		EXPECT(fail == 1);
	}
	ops[0].src.op.array.array = (CUarray)(uintptr_t)0x5eed5eed;
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3DBatchAsync(2, ops, &fail, 0, p.stream));
	EXPECT(fail == 0);
	CHECK(cuArrayDestroy(array));
}

/* Hints about managed memory are checked, and do not change the bytes. */
static void batch_managed(void)
{
	CUmemLocation to[2] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_HOST, 0}}, nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 7};
	CUmemcpyAttributes stream_order = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	size_t sizes[3] = {4096, 4096, 4096}, from[2] = {0, 2};
	CUdeviceptr at[3];
	struct places p;
	int last = 77;

	places_make(&p);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK(cuMemAllocManaged(&at[i], 4096, CU_MEM_ATTACH_GLOBAL));
		*(unsigned int *)(uintptr_t)at[i] = i + 7;
	}
	CHECK(cuMemPrefetchBatchAsync(at, sizes, 3, to, from, 2, 0, p.stream));
	for (unsigned int i = 0; i < 3; i++) {
		CHECK(cuMemRangeGetAttribute(&last, sizeof last, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at[i], 4096));
		EXPECT(last == (i < 2 ? 0 : CU_DEVICE_CPU));
	}
	CHECK(cuMemDiscardAndPrefetchBatchAsync(at, sizes, 3, to + 1, from, 1, 0, p.stream));
	CHECK(cuMemRangeGetAttribute(&last, sizeof last, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at[0], 4096));
	EXPECT(last == CU_DEVICE_CPU);
	CHECK(cuMemPrefetchBatchAsync_ptsz(at, sizes, 3, to, from, 2, 0, NULL));
	CHECK(cuMemDiscardAndPrefetchBatchAsync_ptsz(at, sizes, 3, to, from, 2, 0, NULL));
	CHECK(cuMemDiscardBatchAsync(at, sizes, 3, 0, p.stream));
	CHECK(cuMemDiscardBatchAsync_ptsz(at, sizes, 3, 0, NULL));
	CHECK(cuStreamSynchronize(p.stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(at, sizes, 0, 0, p.stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(at, sizes, 3, 1, p.stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(at, sizes, 3, 0, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(at, sizes, 3, to, from + 1, 1, 0, p.stream));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchBatchAsync(at, sizes, 3, &nowhere, from, 1, 0, p.stream));
	*(unsigned int *)(uintptr_t)at[0] = 77; /* it can be copied like any other */
	sizes[0] = BYTES;
	CHECK(cuMemcpyBatchAsync_v2(&p.device, at, sizes, 1, &stream_order, from, 1, p.stream));
	CHECK(cuStreamSynchronize(p.stream));
	CHECK(cuMemcpyDtoH_v2(p.own, p.device, 4));
	EXPECT(p.own[0][0] == 77);
	at[2] = p.device; /* the device's own */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(at, sizes, 3, 0, p.stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(at, sizes, 3, to, from, 2, 0, p.stream));
}

/* The last call of the log callback. */
struct told {
	unsigned int times;
	int level;
	char message[256];
};

static void tell(void *data, int level, char *message, size_t length)
{
	struct told *t = data;

	EXPECT(strlen(message) == length && length < sizeof t->message);
	memcpy(t->message, message, length + 1);
	t->level = level;
	t->times++;
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGLInit()); /* errors in the callback are not passed to it */
	GIVES(CUDA_ERROR_NOT_PERMITTED, cuLogsRegisterCallback(tell, data, NULL));
}

/* Reads the file that a dump has written, and removes it. */
static size_t read_and_remove(const char *path, char *text, size_t room)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, room - 1, f) : 0;

	EXPECT(f && fclose(f) == 0 && unlink(path) == 0);
	text[n] = 0;
	return n;
}

static void error_log(void)
{
	char text[32768], path[] = "/tmp/basalt-log-XXXXXX";
	CUlogsCallbackHandle handle;
	CUlogIterator from, all = 0;
	struct told told = {0};
	size_t size = sizeof text;

	(void)demo_start("poke");
	close(mkstemp(path));
	CHECK(cuLogsCurrent(&from, 0));
	CHECK(cuLogsDumpToMemory(&from, text, &size, 0));
	EXPECT(size == 0 && text[0] == 0);
	CHECK(cuLogsRegisterCallback(tell, &told, &handle));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetLuid(NULL, NULL, 0));
	EXPECT(told.times == 1 && told.level == CU_LOG_LEVEL_ERROR && strstr(told.message, "no such function"));
	CHECK(cuLogsUnregisterCallback(handle));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(handle));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetLuid(NULL, NULL, 0));
	EXPECT(told.times == 1);
	/* Three lines: the one of the callback's own call is in the middle. */
	size = 60;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&from, text, &size, 0)); /* not even one fits */
	EXPECT(size == 0);
	size = sizeof text;
	CHECK(cuLogsDumpToMemory(&from, text, &size, 0));
	EXPECT(size == strlen(text) && text[size - 1] == '\n' && strstr(text, "[CUDA][E][cuDeviceGetLuid] ") && strstr(text, "[cuGLInit] "));
	size = sizeof text;
	CHECK(cuLogsDumpToMemory(&from, text, &size, 0)); /* from has advanced to the end */
	EXPECT(size == 0);
	/* More messages than are kept: the oldest are removed, and a line reports that. */
	for (int i = 0; i < 600; i++)
		GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGLInit());
	CHECK(cuLogsDumpToFile(&all, path, 0));
	EXPECT(read_and_remove(path, text, sizeof text) > 20000 && !strstr(text, "cuDeviceGetLuid") && text[0] == '[' && strstr(text, "are gone]\n") < strchr(text, '\n'));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGLInit());
	CHECK(cuLogsDumpToFile(&all, path, 0));
	EXPECT(read_and_remove(path, text, sizeof text) && strchr(text, '\n') == strrchr(text, '\n'));
	setenv("CUDA_LOG_FILE", path, 1);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGLInit());
	EXPECT(read_and_remove(path, text, sizeof text) && strstr(text, "[cuGLInit]"));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(&from, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(NULL, NULL, &size, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, "/nowhere/at/all", 0));
}

/* Tests the additional arguments of newer forms of functions. */
static void newer_forms(void)
{
	unsigned int operations[2] = {0, 12}, can[2] = {77, 77};
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
	CUmemoryPool standard, pool, current;
	CUcontext a, b, of;
	CUgreenCtx green = (CUgreenCtx)(uintptr_t)77;
	CUlibrary lib, back;
	CUdevice d = 77;
	CUkernel k;
	CUstream s;
	CUevent e[2];
	float ms = -1;

	(void)demo_start("poke");
	CHECK(cuCtxGetCurrent(&a));
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuStreamGetDevice(s, &d));
	CHECK(cuStreamGetDevice_ptsz(NULL, &d));
	EXPECT(d == 0);
	CHECK(cuStreamGetCtx_v2(s, &of, &green));
	EXPECT(of == a && !green);
	CHECK(cuStreamGetCtx_v2_ptsz(NULL, &of, &green));
	CHECK(cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&k, lib, "poke"));
	CHECK(cuKernelGetLibrary(&back, k));
	EXPECT(back == lib);
	CHECK(cuEventCreate(&e[0], 0));
	CHECK(cuEventCreate(&e[1], 0));
	CHECK(cuEventRecord(e[0], s));
	CHECK(cuEventRecord(e[1], s));
	CHECK(cuCtxCreate_v2(&b, 0, 0));
	CHECK(cuCtxSynchronize_v2(a)); /* not the current one */
	CHECK(cuEventElapsedTime_v2(&ms, e[0], e[1]));
	EXPECT(ms >= 0);
	CHECK(cuCtxSynchronize_v2(NULL));
	CHECK(cuCtxGetDevice_v2(&d, a));
	CHECK(cuCtxGetDevice_v2(&d, NULL));
	CHECK(cuCtxPopCurrent_v2(&b));
	CHECK(cuCtxDestroy_v2(b));
	CHECK(cuCtxGetDevice_v2(&d, b)); /* no longer a context, which means the current one: numba */
	CHECK(cuCtxSynchronize_v2(b));
	CHECK(cuDeviceGetHostAtomicCapabilities(can, (CUatomicOperation *)operations, 2, 0));
	EXPECT(can[0] == 0 && can[1] == 0);
	operations[1] = 13;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, (CUatomicOperation *)operations, 2, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, (CUatomicOperation *)operations, 0, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(can, (CUatomicOperation *)operations, 1, 0, 0));
	CHECK(cuMemGetDefaultMemPool(&standard, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(cuMemPoolCreate(&pool, &props));
	CHECK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
	CHECK(cuMemGetMemPool(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	EXPECT(current == pool && current != standard);
	CHECK(cuDeviceGetMemPool(&current, 0));
	EXPECT(current == pool);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemGetMemPool(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemGetMemPool(&current, &here, CU_MEM_ALLOCATION_TYPE_MANAGED));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&current, &here, 3));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&current, NULL, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(cuMemPoolDestroy(pool));
}

const struct test batch_tests[] = {
	{"batch_copies", batch_copies}, {"batch_refused", batch_refused}, {"batch_boxes", batch_boxes}, {"batch_managed", batch_managed},
	{"error_log", error_log}, {"newer_forms", newer_forms}, {NULL, NULL},
};
