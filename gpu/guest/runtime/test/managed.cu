// A managed variable, registered as by nvcc's programs, because clang does not support managed
// variables. The host's pointer is set at the first use, and both sides share the memory.
#include "check.h"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .global .attribute(.managed) .align 4 .u32 shared = 5;\n"
			  ".visible .entry twice()\n{\n.reg .u32 %v;\nld.global.u32 %v, [shared];\nadd.u32 %v, %v, %v;\n"
			  "st.global.u32 [shared], %v;\nret;\n}\n";
static struct {
	int magic, version;
	const void *data, *unused;
} wrapper = {0x466243b1, 1, ptx, nullptr};
static unsigned int *shared; // the pointer that the program's code uses
static void twice() {}

extern "C" {
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
			    void *block, void *grid, int *warp);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size, int constant,
			      int global);
char __cudaInitModule(void **handle);
}

int main()
{
	void **fatbin = __cudaRegisterFatBinary(&wrapper);
	char kernel[] = "twice", name[] = "shared";

	__cudaRegisterFunction(fatbin, (const char *)twice, kernel, kernel, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
	__cudaRegisterManagedVar(fatbin, (void **)&shared, name, name, 0, 4, 0, 0);
	__cudaInitModule(fatbin); // nvcc calls it before the host's first use
	ASSERT(shared && *shared == 5);
	for (unsigned int i = 1; i < 4; i++) {
		CHECK(cudaLaunchKernel((const void *)twice, dim3(1), dim3(1), nullptr, 0, nullptr));
		CHECK(cudaDeviceSynchronize());
		ASSERT(*(volatile unsigned int *)shared == 5u << i);
	}
	*(volatile unsigned int *)shared = 21;
	CHECK(cudaLaunchKernel((const void *)twice, dim3(1), dim3(1), nullptr, 0, nullptr));
	CHECK(cudaDeviceSynchronize());
	ASSERT(*(volatile unsigned int *)shared == 42);
	puts("managed: OK");
	return 0;
}
