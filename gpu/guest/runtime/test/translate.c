/* Tests the driver calls that the runtime makes for functions that no vGPU supports yet.
 * fakedriver.c records them. */
#include <dlfcn.h>
#include <string.h>

#include "cuda_runtime_api.h"

#include "check.h"

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
			    void *block, void *grid, int *warp);
void __cudaUnregisterFatBinary(void **handle);

static const char *(*fake_log)(void);
static char host_side;

static void want(const char *text, int line)
{
	const char *got = fake_log();

	if (strcmp(got, text) != 0) {
		fprintf(stderr, "translate.c:%d: the driver saw\n%swant\n%s", line, got, text);
		exit(1);
	}
}
#define SAW(text) want(text, __LINE__)
#define AT(n) ((void *)(size_t)(n))

static void arrays(void)
{
	struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat);
	struct cudaMemcpy3DParms copy = {0};
	cudaArray_t array;

	CHECK(cudaMallocArray(&array, &desc, 10, 6, cudaArraySurfaceLoadStore));
	SAW("array 10x6x0 format 32 channels 2 flags 2\n");
	CHECK(cudaMemcpy2DToArray(array, 16, 2, AT(4096), 100, 32, 3, cudaMemcpyHostToDevice));
	SAW("copy from 0,0,0 type 1 host 4096 device 0 array 0 context 0 pitch 100 height 3"
	    " to 16,2,0 type 3 host 0 device 0 array 400 context 0 pitch 0 height 0 size 32x3x1\n");
	copy.srcArray = array;
	copy.srcPos.x = 3;
	copy.dstPtr = (struct cudaPitchedPtr){AT(8192), 512, 64, 6};
	copy.dstPos.x = 4;
	copy.extent = (struct cudaExtent){2, 5, 1};
	copy.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3D(&copy));
	SAW("copy from 24,0,0 type 3 host 0 device 0 array 400 context 0 pitch 0 height 0"
	    " to 4,0,0 type 2 host 0 device 8192 array 0 context 0 pitch 512 height 6 size 16x5x1\n");
	// Rows of 80 bytes: the rest of one row, one whole row, and the beginning of the third.
	CHECK(cudaMemcpyToArray(array, 40, 0, AT(4096), 40 + 80 + 8, cudaMemcpyHostToDevice));
	SAW("copy from 0,0,0 type 1 host 4096 device 0 array 0 context 0 pitch 40 height 1"
	    " to 40,0,0 type 3 host 0 device 0 array 400 context 0 pitch 0 height 0 size 40x1x1\n"
	    "copy from 0,0,0 type 1 host 4136 device 0 array 0 context 0 pitch 80 height 1"
	    " to 0,1,0 type 3 host 0 device 0 array 400 context 0 pitch 0 height 0 size 80x1x1\n"
	    "copy from 0,0,0 type 1 host 4216 device 0 array 0 context 0 pitch 8 height 1"
	    " to 0,2,0 type 3 host 0 device 0 array 400 context 0 pitch 0 height 0 size 8x1x1\n");
	desc.y = 16;
	WANT(cudaMallocArray(&array, &desc, 10, 6, 0), cudaErrorInvalidChannelDescriptor);
	CHECK(cudaFreeArray(array));
	SAW("destroy 400\n");
}

static void textures(void)
{
	struct cudaResourceDesc r = {.resType = cudaResourceTypeLinear};
	struct cudaTextureDesc t = {.addressMode = {cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder},
				    .filterMode = cudaFilterModeLinear, .readMode = cudaReadModeNormalizedFloat, .normalizedCoords = 1,
				    .borderColor = {0, 0, 0, 0.5f}};
	cudaTextureObject_t object;

	r.res.linear.devPtr = AT(65536);
	r.res.linear.desc = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
	r.res.linear.sizeInBytes = 1000;
	CHECK(cudaCreateTextureObject(&object, &r, &t, NULL));
	SAW("linear 65536 format 1 channels 4 size 1000 modes 1 2 3 filter 1 flags 2 border 0.5 view 0\n");
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D.desc = cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindSigned);
	r.res.pitch2D.width = 5, r.res.pitch2D.height = 7, r.res.pitch2D.pitchInBytes = 512;
	t.readMode = cudaReadModeElementType;
	CHECK(cudaCreateTextureObject(&object, &r, &t, NULL));
	SAW("pitch 65536 5x7 pitch 512 modes 1 2 3 filter 1 flags 3 border 0.5 view 0\n");
	ASSERT(object == 500);
}

static void graphs(void)
{
	cudaGraph_t graph = AT(50);
	cudaGraphNode_t node, after = AT(51);
	cudaGraphExec_t exec;
	int argument = 42;
	void *args[] = {&argument};
	struct cudaKernelNodeParams k = {&host_side, {2, 3, 4}, {5, 6, 7}, 8, args, NULL};
	struct cudaMemsetParams set = {AT(4096), 256, 7, 4, 10, 2};

	CHECK(cudaGraphAddKernelNode(&node, graph, &after, 1, &k));
	SAW("load image\nfunction 200 kernel_name\n"
	    "kernel node 50 after 1 (51): 300 grid 2,3,4 block 5,6,7 shared 8 argument 42 extra 0 kernel 0\n");
	CHECK(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, AT(8192), AT(4096), 100, cudaMemcpyHostToDevice));
	SAW("node 50 after 0 in 100: copy from 0,0,0 type 1 host 4096 device 0 array 0 context 0 pitch 100 height 1"
	    " to 0,0,0 type 2 host 0 device 8192 array 0 context 0 pitch 100 height 1 size 100x1x1\n");
	CHECK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set));
	SAW("set node 50 after 0 in 100: 4096 pitch 256 value 7 of 4, 10x2\n");
	CHECK(cudaGraphInstantiate(&exec, graph, 1));
	SAW("instantiate 50 1\n");
	CHECK(cudaGraphLaunch(exec, NULL));
	SAW("launch graph 700 in 0\n");
	CHECK(cudaGraphLaunch_ptsz(exec, NULL));
	SAW("launch graph 700 in 2\n");
	WANT(cudaGraphUpload(exec, NULL), cudaErrorNotSupported); // the fake driver does not have the function
	SAW("");
}

static void memory(void)
{
	struct cudaMemPoolProps props = {cudaMemAllocationTypePinned, cudaMemHandleTypePosixFileDescriptor,
					 {cudaMemLocationTypeDevice, 1}, NULL, 4096, 0, {0}};
	struct cudaMemcpy3DPeerParms peer = {.srcPtr = {AT(4096), 64, 64, 2}, .srcDevice = 1, .dstPtr = {AT(8192), 64, 64, 2},
					     .extent = {64, 2, 1}};
	cudaIpcMemHandle_t handle = {"shared"};
	cudaMemPool_t pool;
	void *p;

	CHECK(cudaMemPoolCreate(&pool, &props));
	SAW("pool 1 1 on 1:1 most 4096\n");
	CHECK(cudaMallocFromPoolAsync(&p, 99, pool, AT(9)));
	SAW("from pool 800: 99 in 9\n");
	ASSERT(p == AT(12345));
	CHECK(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess));
	SAW("open handle shared flags 1\n");
	CHECK(cudaMemPrefetchAsync_v2(AT(4096), 10, (struct cudaMemLocation){cudaMemLocationTypeHostNuma, 3}, 0, AT(9)));
	SAW("prefetch 4096 10 to 3:3 flags 0 in 9\n");
	CHECK(cudaMemcpyPeer(AT(1), 1, AT(2), 0, 3));
	SAW("peer 1 in 101 from 2 in 100, 3\n");
	CHECK(cudaMemcpy3DPeer(&peer));
	SAW("peer copy from 0,0,0 type 2 host 0 device 4096 array 0 context 101 pitch 64 height 2"
	    " to 0,0,0 type 2 host 0 device 8192 array 0 context 100 pitch 64 height 2 size 64x2x1\n");
}

static void launches(void)
{
	int argument = 11;
	void *args[] = {&argument};
	cudaLaunchAttribute attribute = {cudaLaunchAttributePriority, {0}, {{0}}};
	cudaLaunchConfig_t c = {{1, 2, 3}, {4, 5, 6}, 100, NULL, &attribute, 1};

	CHECK(cudaLaunchKernelExC(&c, &host_side, args));
	SAW("launch 300 1,2,3 4,5,6 shared 100 in 0, 1 attributes, first 8, argument 11, extra 0\n");
	CHECK(cudaLaunchKernelExC_ptsz(&c, &host_side, args));
	SAW("launch 300 1,2,3 4,5,6 shared 100 in 2, 1 attributes, first 8, argument 11, extra 0\n");
	c.attrs = NULL;
	WANT(cudaLaunchKernelExC(&c, &host_side, args), cudaErrorInvalidValue);
	// The program is loaded again on the other device.
	c.numAttrs = 0;
	CHECK(cudaSetDevice(1));
	CHECK(cudaLaunchKernelExC(&c, &host_side, args));
	SAW("load image\nfunction 200 kernel_name\n"
	    "launch 300 1,2,3 4,5,6 shared 100 in 0, 0 attributes, first -1, argument 11, extra 0\n");
	CHECK(cudaSetDevice(0));
	CHECK(cudaLaunchKernelExC(&c, &host_side, args));
	SAW("launch 300 1,2,3 4,5,6 shared 100 in 0, 0 attributes, first -1, argument 11, extra 0\n");
}

int main(void)
{
	static const char image[] = "image";
	struct {
		unsigned int magic, version;
		const void *data, *more;
	} wrapper = {0x466243b1, 1, image, NULL};
	void **fatbin = __cudaRegisterFatBinary(&wrapper), *driver = dlopen("libcuda.so.1", RTLD_NOW);

	ASSERT(fatbin && driver);
	*(void **)&fake_log = dlsym(driver, "fake_log");
	ASSERT(fake_log);
	__cudaRegisterFunction(fatbin, &host_side, NULL, "kernel_name", -1, NULL, NULL, NULL, NULL, NULL);
	arrays();
	textures();
	graphs();
	memory();
	launches();
	__cudaUnregisterFatBinary(fatbin);
	SAW("unload 200\nunload 200\n");
	__cudaUnregisterFatBinary(fatbin);
	SAW("");
	WANT(cudaLaunchKernel(&host_side, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
	puts("translate: OK");
	return 0;
}
