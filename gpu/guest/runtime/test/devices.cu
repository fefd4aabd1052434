// Queries of devices, streams, kernels, memory, pools and libraries that other programs do not
// make, and calls that a vGPU does not support.
#include <cstring>
#include <unistd.h>

#include "check.h"

// Calls functions by their own names.
#undef cudaGetDeviceProperties
#undef cudaStreamGetCaptureInfo

__device__ int variable[4];

__global__ void add(int *p, int n)
{
	*p += n;
}

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .global .align 4 .u32 word = 7;\n"
			  ".visible .entry nothing()\n{\n\tret;\n}\n";

static void devices()
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
	enum cudaFuncCache cache;
	enum cudaSharedMemConfig banks;
	cudaDeviceProp prop = {};
	char bus[32];
	int d = 9, list[] = {0};
	unsigned int flags;
	size_t n;
	void *entry = nullptr;
	enum cudaDriverEntryPointQueryResult how;
	const void *table;
	cudaUUID_t id = {};

	CHECK(cudaGetDeviceProperties(&prop, 0)); // in the layout of CUDA 11
	ASSERT(prop.warpSize == 32);
	CHECK(cudaChooseDevice(&d, &prop));
	ASSERT(d == 0);
	CHECK(cudaInitDevice(0, 0, 0));
	CHECK(cudaSetValidDevices(list, 1));
	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CHECK(cudaGetDeviceFlags(&flags));
	ASSERT(flags & cudaDeviceScheduleBlockingSync);
	CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
	CHECK(cudaDeviceGetByPCIBusId(&d, bus));
	ASSERT(d == 0);
	CHECK(cudaDeviceCanAccessPeer(&d, 0, 0));
	ASSERT(d == 0);
	WANT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
	WANT(cudaDeviceDisablePeerAccess(0), cudaErrorInvalidDevice);
	WANT(cudaDeviceGetP2PAttribute(&d, cudaDevP2PAttrAccessSupported, 0, 0), cudaErrorInvalidDevice);
	CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	CHECK(cudaDeviceGetCacheConfig(&cache));
	CHECK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeFourByte));
	CHECK(cudaDeviceGetSharedMemConfig(&banks));
	CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&n, &desc, 0));
	ASSERT(n > 1000);
	CHECK(cudaCtxResetPersistingL2Cache());
	WANT(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner),
	     cudaErrorNotSupported);
	CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, 0, &how));
	ASSERT(entry && how == cudaDriverEntryPointSuccess);
	WANT(cudaGetExportTable(&table, &id), cudaErrorNotSupported);
	CHECK(cudaProfilerStart());
	CHECK(cudaProfilerStop());
}

// The functions from before CUDA 4.
static void threads_of_old()
{
	enum cudaFuncCache cache;
	double v = 1.5;
	size_t n;

	CHECK(cudaThreadSetCacheConfig(cudaFuncCachePreferNone));
	CHECK(cudaThreadGetCacheConfig(&cache));
	CHECK(cudaThreadGetLimit(&n, cudaLimitStackSize));
	CHECK(cudaThreadSetLimit(cudaLimitStackSize, n));
	CHECK(cudaThreadSynchronize());
	CHECK(cudaSetDoubleForDevice(&v));
	CHECK(cudaSetDoubleForHost(&v));
	ASSERT(v == 1.5);
}

static void kernels()
{
	cudaLaunchConfig_t c = {};
	size_t offset, size;
	int n = 0;

	c.gridDim = c.blockDim = dim3(32);
	CHECK(cudaFuncGetParamInfo((const void *)add, 1, &offset, &size));
	ASSERT(offset == 8 && size == 4);
	CHECK(cudaFuncSetCacheConfig(add, cudaFuncCachePreferShared));
	CHECK(cudaFuncSetSharedMemConfig((const void *)add, cudaSharedMemBankSizeDefault));
	CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&size, (const void *)add, 1, 32));
	ASSERT(size > 0);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, (const void *)add, 32, 0, 0));
	ASSERT(n > 0);
	CHECK(cudaOccupancyMaxPotentialClusterSize(&n, (const void *)add, &c));
	ASSERT(n == 8);
	WANT(cudaOccupancyMaxActiveClusters(&n, (const void *)add, &c), cudaErrorInvalidClusterSize); // config has no cluster size
}

static void streams()
{
	cudaLaunchAttributeValue v = {};
	cudaStreamCaptureStatus status;
	cudaStream_t s, t;
	cudaEvent_t a, b;
	unsigned long long id, other;
	int d = 9;
	float ms;
	void *p;

	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaStreamCreate(&t));
	CHECK(cudaStreamGetId(s, &id));
	CHECK(cudaStreamGetId(t, &other));
	ASSERT(id != other);
	CHECK(cudaStreamGetDevice(s, &d));
	ASSERT(d == 0);
	CHECK(cudaStreamGetCaptureInfo(s, &status, &id));
	ASSERT(status == cudaStreamCaptureStatusNone);
	v.syncPolicy = cudaSyncPolicyYield;
	CHECK(cudaStreamSetAttribute(s, cudaLaunchAttributeSynchronizationPolicy, &v));
	CHECK(cudaStreamCopyAttributes(t, s));
	v.syncPolicy = cudaSyncPolicyAuto;
	CHECK(cudaStreamGetAttribute(t, cudaLaunchAttributeSynchronizationPolicy, &v));
	ASSERT(v.syncPolicy == cudaSyncPolicyYield);
	CHECK(cudaEventCreate(&a));
	CHECK(cudaEventCreate(&b));
	CHECK(cudaEventRecordWithFlags(a, s, 0));
	CHECK(cudaMallocAsync(&p, 1000, s));
	CHECK(cudaFreeAsync(p, s));
	CHECK(cudaEventRecord(b, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaEventElapsedTime_v2(&ms, a, b));
	ASSERT(ms >= 0);
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaStreamDestroy(t));
}

static void host_and_managed_memory()
{
	enum cudaMemRangeAttribute which[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation};
	cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	int values[2], *p, most = 9;
	void *data[] = {&values[0], &values[1]};
	size_t sizes[] = {4, 4}, page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int flags = 9;
	void *mine = nullptr;

	ASSERT(posix_memalign(&mine, page, page) == 0);
	CHECK(cudaHostRegister(mine, page, 0));
	CHECK(cudaHostGetFlags(&flags, mine));
	CHECK(cudaHostUnregister(mine));
	free(mine);
	CHECK(cudaMallocHost(&mine, 100));
	CHECK(cudaFreeHost(mine));
	CHECK(cudaMallocManaged(&p, 4096));
	CHECK(cudaMemAdvise(p, 4096, cudaMemAdviseSetReadMostly, 0));
	CHECK(cudaMemAdvise_v2(p, 4096, cudaMemAdviseSetPreferredLocation, here));
	CHECK(cudaMemRangeGetAttribute(&most, 4, cudaMemRangeAttributeReadMostly, p, 4096));
	ASSERT(most == 1);
	CHECK(cudaMemRangeGetAttributes(data, sizes, which, 2, p, 4096));
	ASSERT(values[0] == 1 && values[1] == 0);
	CHECK(cudaMemPrefetchAsync(p, 4096, 0));
	CHECK(cudaMemPrefetchAsync_v2(p, 4096, here, 0));
	CHECK(cudaStreamAttachMemAsync(nullptr, p, 0, 1 /* cudaMemAttachGlobal */));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(p));
}

static void copies()
{
	int host[16], back[16];
	cudaMemcpy3DPeerParms peer = {};
	cudaPitchedPtr box;
	int *a;

	for (int i = 0; i < 16; i++)
		host[i] = i;
	CHECK(cudaMalloc(&a, 64));
	CHECK(cudaMemcpy2DAsync(a, 16, host, 16, 16, 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemset2DAsync(a, 16, 0, 4, 4));
	CHECK(cudaMemcpy(back, a, 64, cudaMemcpyDeviceToHost));
	ASSERT(back[0] == 0 && back[1] == 1 && back[4] == 0 && back[7] == 7);
	box = make_cudaPitchedPtr(a, 16, 16, 4);
	CHECK(cudaMemset3DAsync(box, 0, make_cudaExtent(16, 1, 1)));
	peer.srcPtr = box;
	peer.dstPtr = make_cudaPitchedPtr(a + 12, 16, 16, 1);
	peer.extent = make_cudaExtent(16, 1, 1);
	CHECK(cudaMemcpy3DPeerAsync(&peer));
	CHECK(cudaMemcpy3DPeer(&peer));
	CHECK(cudaMemcpyPeerAsync(a + 8, 0, a + 4, 0, 16));
	CHECK(cudaMemcpyPeer(a + 8, 0, a + 4, 0, 16));
	CHECK(cudaMemcpyFromSymbolAsync(back, variable, 16, 0, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(back, a, 64, cudaMemcpyDeviceToHost));
	ASSERT(back[3] == 0 && back[7] == 7 && back[11] == 7 && back[15] == 0);
	CHECK(cudaFree(a));
}

static void arrays()
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindSigned), got;
	struct cudaResourceDesc r = {}, back = {};
	struct cudaArrayMemoryRequirements need;
	struct cudaArraySparseProperties sparse;
	cudaMipmappedArray_t levels;
	cudaArray_t a, b, plane;
	cudaSurfaceObject_t surface;
	int host[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[8] = {};

	CHECK(cudaMallocArray(&a, &desc, 4, 2, cudaArraySurfaceLoadStore));
	CHECK(cudaMallocArray(&b, &desc, 4, 2));
	CHECK(cudaGetChannelDesc(&got, a));
	ASSERT(got.x == 32 && got.f == cudaChannelFormatKindSigned);
	CHECK(cudaMemcpyToArray(a, 0, 0, host, 32, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyToArrayAsync(a, 0, 0, host, 32, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyArrayToArray(b, 0, 1, a, 0, 1, 16, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpyFromArray(out, b, 0, 1, 16, cudaMemcpyDeviceToHost));
	ASSERT(memcmp(out, host + 4, 16) == 0);
	CHECK(cudaMemcpy2DToArrayAsync(a, 0, 1, host, 16, 16, 1, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 1, 16, 1, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy2DFromArrayAsync(out, 16, b, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
	CHECK(cudaDeviceSynchronize());
	ASSERT(out[3] == 3 && out[7] == 7);
	CHECK(cudaMemcpyFromArrayAsync(out, a, 0, 0, 32, cudaMemcpyDeviceToHost));
	CHECK(cudaDeviceSynchronize());
	ASSERT(out[7] == 3);
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	CHECK(cudaCreateSurfaceObject(&surface, &r));
	CHECK(cudaGetSurfaceObjectResourceDesc(&back, surface));
	ASSERT(back.resType == cudaResourceTypeArray && back.res.array.array == a);
	CHECK(cudaDestroySurfaceObject(surface));
	WANT(cudaArrayGetMemoryRequirements(&need, a, 0), cudaErrorInvalidValue);
	WANT(cudaArrayGetSparseProperties(&sparse, a), cudaErrorInvalidValue);
	CHECK(cudaMallocMipmappedArray(&levels, &desc, make_cudaExtent(4, 2, 0), 2));
	WANT(cudaMipmappedArrayGetMemoryRequirements(&need, levels, 0), cudaErrorInvalidValue);
	WANT(cudaMipmappedArrayGetSparseProperties(&sparse, levels), cudaErrorInvalidValue);
	CHECK(cudaFreeMipmappedArray(levels));
	WANT(cudaArrayGetPlane(&plane, a, 0), cudaErrorInvalidValue);
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
}

static void pools()
{
	struct cudaMemPoolProps props = {};
	struct cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
	enum cudaMemAccessFlags flags;
	cudaMemPool_t pool, was, got;
	unsigned long long threshold = 1 << 20, back = 0;
	void *p;

	props.allocType = cudaMemAllocationTypePinned;
	props.location = access.location;
	CHECK(cudaDeviceGetDefaultMemPool(&was, 0));
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
	ASSERT(back == threshold);
	CHECK(cudaMemPoolSetAccess(pool, &access, 1));
	CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
	ASSERT(flags == cudaMemAccessFlagsProtReadWrite);
	CHECK(cudaDeviceSetMemPool(0, pool));
	CHECK(cudaDeviceGetMemPool(&got, 0));
	ASSERT(got == pool);
	CHECK(cudaMallocFromPoolAsync(&p, 1000, pool, nullptr));
	CHECK(cudaFreeAsync(p, nullptr));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaDeviceSetMemPool(0, was));
	CHECK(cudaMemPoolDestroy(pool));
}

static void libraries()
{
	cudaLibrary_t library, file;
	cudaKernel_t kernel, listed;
	char path[] = "/tmp/devices-XXXXXX";
	int fd = mkstemp(path), v = 0;
	unsigned int count = 0;
	size_t size = 0;
	void *p;

	CHECK(cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
	CHECK(cudaLibraryGetKernelCount(&count, library));
	ASSERT(count == 1);
	CHECK(cudaLibraryEnumerateKernels(&listed, 1, library));
	CHECK(cudaLibraryGetKernel(&kernel, library, "nothing"));
	ASSERT(kernel == listed);
	CHECK(cudaLibraryGetGlobal(&p, &size, library, "word"));
	CHECK(cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost));
	ASSERT(size == 4 && v == 7);
	WANT(cudaLibraryGetManaged(&p, &size, library, "word"), cudaErrorSymbolNotFound);
	WANT(cudaLibraryGetUnifiedFunction(&p, library, "nothing"), cudaErrorSymbolNotFound);
	CHECK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 0));
	CHECK(cudaLibraryUnload(library));
	ASSERT(fd >= 0 && write(fd, ptx, sizeof ptx) == (ssize_t)sizeof ptx);
	CHECK(cudaLibraryLoadFromFile(&file, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
	CHECK(cudaLibraryUnload(file));
	close(fd);
	unlink(path);
}

// Unsupported calls return an error, and the context continues to work.
static void refused()
{
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t handle;
	cudaMemPoolPtrExportData data = {};
	cudaExternalMemoryHandleDesc theirs = {};
	cudaExternalMemoryBufferDesc part = {};
	cudaExternalMemory_t external = nullptr;
	cudaMemPool_t pool, imported;
	cudaEvent_t event;
	void *p, *q;
	int fd = -1;

	CHECK(cudaMalloc(&p, 1000));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CHECK(cudaIpcGetMemHandle(&memory, p));
	WANT(cudaIpcOpenMemHandle(&q, memory, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized); /* a handle of this process */
	WANT(cudaIpcOpenMemHandle(&q, memory, 0), cudaErrorInvalidValue);
	WANT(cudaIpcGetEventHandle(&handle, event), cudaErrorInvalidResourceHandle);
	CHECK(cudaEventDestroy(event));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	CHECK(cudaIpcGetEventHandle(&handle, event));
	WANT(cudaIpcOpenEventHandle(&event, handle), cudaErrorDeviceUninitialized); /* a handle of this process */
	WANT(cudaIpcCloseMemHandle(p), cudaErrorInvalidValue);
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	WANT(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0), cudaErrorInvalidValue);
	WANT(cudaMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)-1, cudaMemHandleTypePosixFileDescriptor, 0), cudaErrorInvalidValue);
	WANT(cudaMemPoolExportPointer(&data, p), cudaErrorInvalidValue);
	WANT(cudaMemPoolImportPointer(&p, pool, &data), cudaErrorInvalidValue);
	theirs.type = cudaExternalMemoryHandleTypeOpaqueFd; // memory of another process, which does not exist here
	theirs.handle.fd = -1;
	theirs.size = part.size = 1 << 20;
	WANT(cudaImportExternalMemory(&external, &theirs), cudaErrorInvalidResourceHandle);
	WANT(cudaExternalMemoryGetMappedBuffer(&q, external, &part), cudaErrorInvalidResourceHandle);
	WANT(cudaDestroyExternalMemory(external), cudaErrorInvalidResourceHandle);
	CHECK(cudaFree(p));
}

int main()
{
	void (*all[])() = {devices, threads_of_old, kernels, streams, host_and_managed_memory, copies, arrays, pools, libraries, refused};

	for (auto f : all)
		f();
	CHECK(cudaThreadExit());
	puts("devices: OK");
}
