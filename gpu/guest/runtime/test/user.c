/* A program in C that is linked with one of the libraries. It checks that every function of the
 * API exists, and that the device's properties have the layout of this version. */
#include <dlfcn.h>
#include <string.h>

#include "cuda_runtime_api.h"

#include "check.h"

/* The sizes in the ABI of each version. */
_Static_assert(sizeof(struct cudaDeviceProp) == (CUDART_MAJOR == 11 ? 728 : CUDART_MAJOR == 12 ? 1032 : 1008), "cudaDeviceProp");
_Static_assert(sizeof(struct cudaFuncAttributes) == (CUDART_MAJOR == 11 ? 56 : 144), "cudaFuncAttributes");
_Static_assert(sizeof(struct cudaPointerAttributes) == (CUDART_MAJOR == 13 ? 88 : 24), "cudaPointerAttributes");
_Static_assert(sizeof(struct cudaMemcpy3DParms) == 160 && sizeof(struct cudaKernelNodeParams) == 56, "copies and kernels");
_Static_assert(sizeof(cudaLaunchConfig_t) == 56 && sizeof(cudaLaunchAttribute) == 72, "launches");
_Static_assert(sizeof(struct cudaMemPoolProps) == 88 && sizeof(cudaIpcMemHandle_t) == 64, "pools and handles");

static const char *const names[] = {
#define X(name) #name,
#include "calls.h"
#undef X
	"__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterFunction",
	"__cudaRegisterVar", "__cudaRegisterManagedVar", "__cudaInitModule", "__cudaPushCallConfiguration",
	"__cudaPopCallConfiguration",
};

#if CUDART_MAJOR == 11
_Static_assert(sizeof(struct textureReference) == 124, "textureReference");

/* The data that a compiler generates for a program with references, with PTX as the code. */
extern void **__cudaRegisterFatBinary(void *wrapper);
extern void __cudaUnregisterFatBinary(void **handle);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
extern void __cudaRegisterTexture(void **, const void *, const void **, const char *, int, int, int);
extern void __cudaRegisterSurface(void **, const void *, const void **, const char *, int, int);

static const char references_ptx[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
	".global .texref line;\n.global .surfref face;\n"
	".visible .entry pass(.param .u32 from)\n{\n"
	".reg .b32 %i, %b; .reg .f32 %f<4>;\n"
	"ld.param.u32 %i, [from]; mov.u32 %b, %tid.x; add.u32 %i, %i, %b; shl.b32 %b, %b, 2;\n"
	"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [line, {%i}];\n"
	"sust.b.1d.b32.trap [face, {%b}], %f0;\nret;\n}\n";
static struct textureReference line = {.addressMode = {cudaAddressModeClamp, cudaAddressModeClamp, cudaAddressModeClamp}};
static struct surfaceReference face;
static const char pass;

static void references(void)
{
	struct {
		unsigned int magic, version;
		const void *data, *more;
	} wrapper = {0x466243b1, 1, references_ptx, NULL};
	void **fatbin = __cudaRegisterFatBinary(&wrapper);
	const struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	const struct textureReference *found;
	const struct surfaceReference *face_found;
	float in[256], out[4];
	unsigned int from;
	void *p, *args[] = {&from};
	cudaArray_t a;
	size_t offset;

	__cudaRegisterFunction(fatbin, &pass, NULL, "pass", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterTexture(fatbin, &line, NULL, "line", 1, 0, 0);
	__cudaRegisterSurface(fatbin, &face, NULL, "face", 1, 0);
	for (int i = 0; i < 256; i++)
		in[i] = (float)i;
	CHECK(cudaMalloc(&p, sizeof in));
	CHECK(cudaMemcpy(p, in, sizeof in, cudaMemcpyHostToDevice));
	CHECK(cudaMallocArray(&a, &desc, 4, 0, cudaArraySurfaceLoadStore));
	CHECK(cudaGetTextureReference(&found, &line));
	CHECK(cudaGetSurfaceReference(&face_found, &face));
	ASSERT(found == &line && face_found == &face);
	WANT(cudaGetTextureReference(&found, &face), cudaErrorInvalidTexture);
	WANT(cudaGetSurfaceReference(&face_found, &line), cudaErrorInvalidSurface);
	WANT(cudaGetTextureAlignmentOffset(&offset, &line), cudaErrorInvalidTextureBinding);
	WANT(cudaBindTexture(NULL, &line, (char *)p + 40, &desc, 128), cudaErrorInvalidValue);
	CHECK(cudaBindTexture(&offset, &line, (char *)p + 40, &desc, 128));
	ASSERT(offset == 40);
	CHECK(cudaBindSurfaceToArray(&face, a, &desc));
	from = (unsigned int)(offset / 4);
	CHECK(cudaLaunchKernel(&pass, (dim3){1, 1, 1}, (dim3){4, 1, 1}, args, 0, NULL));
	CHECK(cudaMemcpyFromArray(out, a, 0, 0, sizeof out, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 4; i++)
		ASSERT(out[i] == (float)(10 + i));
	CHECK(cudaGetTextureAlignmentOffset(&offset, &line));
	ASSERT(offset == 40);
	CHECK(cudaUnbindTexture(&line));
	WANT(cudaGetTextureAlignmentOffset(&offset, &line), cudaErrorInvalidTextureBinding);
	WANT(cudaBindTexture(&offset, found + 1, p, &desc, 128), cudaErrorInvalidTexture);
	CHECK(cudaFreeArray(a));
	CHECK(cudaFree(p));
	__cudaUnregisterFatBinary(fatbin);
}
#endif

#if CUDART_MAJOR >= 12
_Static_assert(sizeof(struct cudaMemcpyAttributes) == 24 && sizeof(struct cudaMemcpy3DBatchOp) == 112, "batches");

/* Makes two copies in a batch, and copies a box, by the functions of this version. */
static void batches(void)
{
	struct cudaMemcpyAttributes order = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	struct cudaMemcpy3DBatchOp box = {.extent = {8, 1, 1}, .srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	unsigned int in[2] = {7, 8}, out[2] = {0};
	size_t sizes[2] = {4, 4}, first = 0;
	void *p, *src[2] = {&in[0], &in[1]}, *dst[2];
	cudaStream_t s;

	CHECK(cudaMalloc(&p, 16));
	CHECK(cudaStreamCreate(&s));
	dst[0] = p;
	dst[1] = (char *)p + 4;
	box.src.type = box.dst.type = cudaMemcpyOperandTypePointer;
	box.src.op.ptr.ptr = p;
	box.dst.op.ptr.ptr = out;
#if CUDART_MAJOR == 12
	size_t fail = 77;

	CHECK(cudaMemcpyBatchAsync(dst, src, sizes, 2, &order, &first, 1, &fail, s));
	CHECK(cudaMemcpy3DBatchAsync(1, &box, &fail, 0, s));
	sizes[1] = 1 << 20;
	WANT(cudaMemcpyBatchAsync(dst, src, sizes, 2, &order, &first, 1, &fail, s), cudaErrorInvalidValue);
	ASSERT(fail == 1);
#else
	CHECK(cudaMemcpyBatchAsync(dst, (const void *const *)src, sizes, 2, &order, &first, 1, s));
	CHECK(cudaMemcpy3DBatchAsync(1, &box, 0, s));
	WANT(cudaMemcpyBatchAsync(dst, (const void *const *)src, sizes, 2, &order, &first, 1, NULL), cudaErrorInvalidValue);
#endif
	CHECK(cudaStreamSynchronize(s));
	ASSERT(out[0] == 7 && out[1] == 8);
	(void)cudaGetLastError();
	CHECK(cudaFree(p));
	CHECK(cudaStreamDestroy(s));
}
#endif

#if CUDART_MAJOR >= 13
/* The functions that were added in version 13. */
static void newest(void)
{
	struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	enum cudaAtomicOperation add = cudaAtomicOperationIntegerAdd;
	size_t bytes = 4096, first = 0, size;
	unsigned int can = 77;
	cudaLogIterator from;
	char text[512];
	cudaMemPool_t pool, same;
	cudaStream_t s;
	void *p;

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMallocManaged(&p, bytes, cudaMemAttachGlobal));
	CHECK(cudaMemPrefetchBatchAsync(&p, &bytes, 1, &here, &first, 1, 0, s));
	CHECK(cudaMemDiscardBatchAsync(&p, &bytes, 1, 0, s));
	CHECK(cudaMemDiscardAndPrefetchBatchAsync(&p, &bytes, 1, &here, &first, 1, 0, s));
	CHECK(cudaMemGetDefaultMemPool(&pool, &here, cudaMemAllocationTypePinned));
	CHECK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, pool));
	CHECK(cudaMemGetMemPool(&same, &here, cudaMemAllocationTypePinned));
	ASSERT(same == pool);
	CHECK(cudaDeviceGetHostAtomicCapabilities(&can, &add, 1, 0));
	ASSERT(can == 0);
	WANT(cudaDeviceGetP2PAtomicCapabilities(&can, &add, 1, 0, 0), cudaErrorInvalidDevice);
	CHECK(cudaLogsCurrent(&from, 0));
	size = sizeof text;
	CHECK(cudaLogsDumpToMemory(&from, text, &size, 0));
	ASSERT(size == 0);
	(void)cudaGetLastError();
	CHECK(cudaFree(p));
	CHECK(cudaStreamDestroy(s));
}
#endif

int main(int argc, char **argv)
{
	struct cudaDeviceProp guarded[2];
	int version, driver, count, value, missing = 0;
	void *entry = NULL;

	ASSERT(argc == 2);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!dlvsym(RTLD_DEFAULT, names[i], argv[1])) {
			fprintf(stderr, "%s does not export %s\n", argv[1], names[i]);
			missing++;
		}
	ASSERT(missing == 0);
	CHECK(cudaRuntimeGetVersion(&version));
	ASSERT(version == CUDART_VERSION && version / 1000 == CUDART_MAJOR);
	CHECK(cudaDriverGetVersion(&driver));
	CHECK(cudaGetDeviceCount(&count));
	ASSERT(count == 1 && driver >= 11000);
	memset(guarded, 0xa5, sizeof guarded);
	CHECK(cudaGetDeviceProperties(&guarded[0], 0));
	for (size_t i = 0; i < sizeof guarded[1]; i++)
		ASSERT(((unsigned char *)&guarded[1])[i] == 0xa5);
	ASSERT(guarded[0].warpSize == 32 && guarded[0].maxThreadsPerBlock == 1024 && guarded[0].totalGlobalMem == (size_t)256 << 20);
	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxBlocksPerMultiprocessor, 0));
	ASSERT(guarded[0].maxBlocksPerMultiProcessor == value && guarded[0].major >= 5 && guarded[0].name[0]);
#if CUDART_MAJOR == 11
	CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry, 0));
	WANT(cudaGetDriverEntryPoint("cuNoSuchThing", &entry, 0), cudaErrorSymbolNotFound);
#else
	{
		enum cudaDriverEntryPointQueryResult result;

		CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry, 0, &result));
		ASSERT(entry && result == cudaDriverEntryPointSuccess);
		CHECK(cudaGetDriverEntryPoint("cuNoSuchThing", &entry, 0, &result));
		ASSERT(!entry && result == cudaDriverEntryPointSymbolNotFound);
	}
#endif
#if CUDART_MAJOR == 11
	references();
#endif
#if CUDART_MAJOR >= 12
	batches();
#endif
#if CUDART_MAJOR >= 13
	newest();
#endif
	printf("user: %d of %s: OK\n", version, guarded[0].name);
	return 0;
}
