/* cudaprobe is a small CUDA driver API program for the small test guest. It opens
 * libcuda.so.1 at run time, so it is built without it.
 *
 *	cudaprobe add    vector addition of a million floats, checked
 *	cudaprobe loop   additions until an error, which is printed
 *	cudaprobe pinned the same data through pinned memory, allocated and freed often
 *	cudaprobe mapped kernels add in pinned and managed memory, without copies
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t dptr;
#define FUNCTIONS(F) \
	F(cuInit, (unsigned)) F(cuDeviceGet, (int *, int)) F(cuDeviceGetName, (char *, int, int)) \
	F(cuDeviceTotalMem_v2, (size_t *, int)) F(cuCtxCreate_v2, (void **, unsigned, int)) \
	F(cuModuleLoadData, (void **, const void *)) F(cuModuleGetFunction, (void **, void *, const char *)) \
	F(cuMemAlloc_v2, (dptr *, size_t)) F(cuMemcpyHtoD_v2, (dptr, const void *, size_t)) \
	F(cuMemcpyDtoH_v2, (void *, dptr, size_t)) F(cuCtxSynchronize, (void)) F(cuMemHostAlloc, (void **, size_t, unsigned)) \
	F(cuMemFreeHost, (void *)) F(cuMemHostGetDevicePointer_v2, (dptr *, void *, unsigned)) \
	F(cuMemAllocManaged, (dptr *, size_t, unsigned)) F(cuMemFree_v2, (dptr)) \
	F(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
#define DECLARE(name, args) static int(*name) args;
FUNCTIONS(DECLARE)

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)\n"
	"{\n .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<8>;\n"
	" ld.param.u64 %d1, [pa]; ld.param.u64 %d2, [pb]; ld.param.u64 %d3, [pc]; ld.param.u32 %r1, [pn];\n"
	" mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	" setp.ge.u32 %p, %r5, %r1; @%p bra done;\n"
	" mul.wide.u32 %d4, %r5, 4; add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4; add.s64 %d7, %d3, %d4;\n"
	" ld.global.f32 %f1, [%d5]; ld.global.f32 %f2, [%d6]; add.f32 %f3, %f1, %f2; st.global.f32 [%d7], %f3;\n"
	"done: ret;\n}\n";

#define CHECK(call) do { int r_ = (call); if (r_) { printf("cudaprobe: error %d from %s\n", r_, #call); return r_; } } while (0)

static unsigned n = 1 << 20;
static float *a, *b, *c;
static dptr da, db, dc;
static void *kernel;

static int setup(void)
{
	void *ctx, *mod, *lib = dlopen("libcuda.so.1", RTLD_NOW);
	char name[128];
	size_t total;
	int dev;

	if (!lib) {
		printf("cudaprobe: %s\n", dlerror());
		return 1;
	}
#define FIND(f, args) if (!(*(void **)&f = dlsym(lib, #f))) { printf("cudaprobe: no %s\n", #f); return 1; }
	FUNCTIONS(FIND)
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&dev, 0));
	CHECK(cuDeviceGetName(name, sizeof name, dev));
	CHECK(cuDeviceTotalMem_v2(&total, dev));
	printf("cudaprobe: %s, %zu MiB\n", name, total >> 20);
	CHECK(cuCtxCreate_v2(&ctx, 0, dev));
	CHECK(cuModuleLoadData(&mod, ptx));
	CHECK(cuModuleGetFunction(&kernel, mod, "add"));
	CHECK(cuMemAlloc_v2(&da, 4 * n));
	CHECK(cuMemAlloc_v2(&db, 4 * n));
	CHECK(cuMemAlloc_v2(&dc, 4 * n));
	return 0;
}

static int add(void)
{
	void *params[] = {&da, &db, &dc, &n};

	for (unsigned i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = 2.0f * (float)i + 1.0f;
		c[i] = 0;
	}
	CHECK(cuMemcpyHtoD_v2(da, a, 4 * n));
	CHECK(cuMemcpyHtoD_v2(db, b, 4 * n));
	CHECK(cuLaunchKernel(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH_v2(c, dc, 4 * n));
	for (unsigned i = 0; i < n; i++)
		if (c[i] != a[i] + b[i]) {
			printf("cudaprobe: WRONG at %u: %f + %f = %f\n", i, a[i], b[i], c[i]);
			return 1;
		}
	return 0;
}

/* Additions in host memory: two pinned vectors, and a managed one for the sums. */
static int mapped(void)
{
	dptr pa, pb, pc;
	float *sum;
	void *params[] = {&pa, &pb, &pc, &n};

	CHECK(cuMemHostAlloc((void **)&a, 4 * n, 2));
	CHECK(cuMemHostAlloc((void **)&b, 4 * n, 2));
	CHECK(cuMemAllocManaged(&pc, 4 * n, 1));
	CHECK(cuMemHostGetDevicePointer_v2(&pa, a, 0));
	CHECK(cuMemHostGetDevicePointer_v2(&pb, b, 0));
	sum = (float *)(uintptr_t)pc;
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < n; i++) {
			a[i] = (float)(i * (unsigned)round);
			b[i] = 1.0f;
		}
		CHECK(cuLaunchKernel(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
		CHECK(cuCtxSynchronize());
		for (unsigned i = 0; i < n; i++)
			if (sum[i] != a[i] + 1.0f) {
				printf("cudaprobe: WRONG at %u: %f + 1 = %f\n", i, a[i], sum[i]);
				return 1;
			}
	}
	CHECK(cuMemFreeHost(a));
	CHECK(cuMemFreeHost(b));
	CHECK(cuMemFree_v2(pc));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "add";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "add"))
		n = 1 << 14;
	a = malloc(4 * n);
	b = malloc(4 * n);
	c = malloc(4 * n);
	if (setup())
		return 1;
	if (!strcmp(what, "pinned")) {
		for (int i = 0; i < 20; i++) {
			CHECK(cuMemHostAlloc((void **)&a, 4 * n, 0));
			CHECK(cuMemHostAlloc((void **)&c, 4 * n, 0));
			if (add())
				return 1;
			CHECK(cuMemFreeHost(a));
			CHECK(cuMemFreeHost(c));
		}
	} else if (!strcmp(what, "mapped")) {
		for (int i = 0; i < 5; i++)
			if (mapped())
				return 1;
	} else if (!strcmp(what, "loop")) {
		printf("cudaprobe: looping\n");
		while (add() == 0)
			usleep(10000);
		return 0;
	} else if (add()) {
		return 1;
	}
	printf("cudaprobe: %s ok\n", what);
	return 0;
}
