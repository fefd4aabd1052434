/* Tests of managed variables of libraries and modules. */
#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* A module whose variables host and device share. */
static const char managed_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .u32 answer = 42;\n"
	".visible .global .attribute(.managed) .align 4 .u32 both = 7;\n.visible .global .attribute(.managed) .align 8 .u64 list[3] = {1, both, 3};\n"
	".visible .entry bump(.param .u64 out)\n{\n.reg .u32 %v;\n.reg .u64 %p;\nld.global.u32 %v, [both];\nadd.u32 %v, %v, 1;\n"
	"st.global.u32 [both], %v;\nld.param.u64 %p, [out];\nst.global.u32 [%p], %v;\nret;\n}\n";

static unsigned int bump(CUfunction f)
{
	unsigned int got;
	CUdeviceptr p;
	void *params[] = {&p};

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	CHECK(cuMemFree(p));
	return got;
}

/* A library's managed variables are shared by all contexts, are initialized once, and are freed
 * with the library. */
static void library_managed(void)
{
	volatile unsigned int *both;
	volatile uint64_t *list;
	CUdeviceptr p, again, variable;
	size_t bytes, before;
	CUcontext a, b;
	CUlibrary l;
	CUkernel k;
	bool managed = false;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&a, 0, 0));
	alone();
	before = free_bytes();
	CHECK(cuLibraryLoadData(&l, managed_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuCtxPopCurrent(&a));
	GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&p, &bytes, l, "both")); /* it is not loaded in any context yet */
	CHECK(cuCtxPushCurrent(a));
	CHECK(cuLibraryGetManaged(&p, &bytes, l, "both"));
	EXPECT(bytes == 4);
	both = (volatile unsigned int *)(uintptr_t)p;
	EXPECT(*both == 7);
	CHECK(cuLibraryGetManaged(&variable, &bytes, l, "list"));
	list = (volatile uint64_t *)(uintptr_t)variable;
	EXPECT(bytes == 24 && list[0] == 1 && list[1] == p && list[2] == 3);
	CHECK(cuPointerGetAttribute(&managed, 8, p)); /* IS_MANAGED */
	EXPECT(managed);
	CHECK(cuLibraryGetKernel(&k, l, "bump"));
	EXPECT(bump((CUfunction)(void *)k) == 8 && *both == 8);
	*both = 100;
	EXPECT(bump((CUfunction)(void *)k) == 101);
	CHECK(cuCtxCreate(&b, 0, 0));
	EXPECT(bump((CUfunction)(void *)k) == 102 && *both == 102); /* now loaded in this context, and not initialized again */
	CHECK(cuLibraryGetManaged(&again, NULL, l, "both"));
	EXPECT(again == p);
	CHECK(cuLibraryGetGlobal(&again, &bytes, l, "answer")); /* an ordinary variable of the device */
	GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&again, &bytes, l, "answer"));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p)); /* the program has not allocated it */
	CHECK(cuCtxDestroy(b));
	EXPECT(*both == 102);
	CHECK(cuCtxPopCurrent(&a));
	CHECK(cuLibraryGetManaged(&again, &bytes, l, "both")); /* the current context is a */
	EXPECT(again == p);
	CHECK(cuCtxPushCurrent(a));
	CHECK(cuLibraryUnload(l));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&managed, 8, p));
	EXPECT(free_bytes() == before);
}

/* A module has its own managed variables, until it is unloaded or its context is destroyed. */
static void module_managed(void)
{
	enum { MANY = 1500 }; /* more than there are regions */
	CUdeviceptr p, q;
	CUmodule m, n;
	CUfunction f;
	CUcontext c;
	size_t bytes;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, 0, 0));
	CHECK(cuModuleLoadData(&m, managed_ptx));
	CHECK(cuModuleLoadData(&n, managed_ptx));
	CHECK(cuModuleGetGlobal(&p, &bytes, m, "both"));
	CHECK(cuModuleGetGlobal(&q, &bytes, n, "both"));
	EXPECT(p != q);
	CHECK(cuModuleGetFunction(&f, m, "bump"));
	EXPECT(bump(f) == 8 && *(unsigned int *)(uintptr_t)p == 8 && *(unsigned int *)(uintptr_t)q == 7);
	CHECK(cuMemcpyHtoD(p, &(unsigned int){50}, 4)); /* as cudaMemcpyToSymbol */
	EXPECT(bump(f) == 51);
	CHECK(cuModuleUnload(n));
	EXPECT(bump(f) == 52);
	for (int i = 0; i < MANY; i++) {
		CHECK(cuModuleLoadData(&n, managed_ptx));
		CHECK(cuModuleUnload(n));
	}
	for (int i = 0; i < MANY / 100; i++) {
		CHECK(cuCtxCreate(&c, 0, 0));
		for (int k = 0; k < 100; k++)
			CHECK(cuModuleLoadData(&n, managed_ptx));
		CHECK(cuCtxDestroy(c));
	}
	EXPECT(*(unsigned int *)(uintptr_t)p == 52);
}

const struct test managed_tests[] = {
	{"library_managed", library_managed}, {"module_managed", module_managed}, {NULL, NULL},
};
