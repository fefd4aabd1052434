/* Tests of images of several objects, and of the compiler's log. */
#include "api.h"
#include "basalt_abi.h"

#define BAD_PTX ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\nfrobnicate.u32 %r1 %r2;\nret;\n}\n"

/* The log of a library and of a linker is in the buffers of the call for which the program
 * expects it. */
static void jit_logs(void)
{
	char log[2000] = "", file[] = "/tmp/basalt-guest-XXXXXX";
	CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS};
	void *values[] = {log, (void *)sizeof log, (void *)32}, *cubin;
	CUlinkState link;
	CUlibrary lib;
	CUkernel k;
	size_t size;
	int fd;

	(void)demo_start("poke");
	GIVES(CUDA_ERROR_INVALID_PTX, cuLibraryLoadData(&lib, BAD_PTX, keys, values, 3, NULL, NULL, 0));
	EXPECT(strstr(log, "frobnicate") != NULL && (size_t)values[1] == strlen(log) + 1);
	values[1] = (void *)sizeof log;
	CHECK(cuLibraryLoadData(&lib, kernels_ptx, keys, values, 3, NULL, NULL, 0));
	EXPECT(values[1] == NULL); /* the log is empty */
	CHECK(cuLibraryUnload(lib));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 1, NULL, NULL, 0));

	values[1] = (void *)sizeof log;
	log[0] = 'x';
	CHECK(cuLinkCreate(2, keys, values, &link));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuLinkAddData(link, 5, BAD_PTX, strlen(BAD_PTX), "nvvm", 0, NULL, NULL));
	EXPECT(log[0] == 0); /* pycuda reads it after an error */
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, BAD_PTX, strlen(BAD_PTX), "bad.ptx", 0, NULL, NULL));
	GIVES(CUDA_ERROR_INVALID_PTX, cuLinkComplete(link, &cubin, &size));
	EXPECT(strstr(log, "frobnicate") != NULL);
	CHECK(cuLinkDestroy(link));

	EXPECT((fd = mkstemp(file)) >= 0);
	EXPECT(write(fd, kernels_ptx, strlen(kernels_ptx)) == (ssize_t)strlen(kernels_ptx));
	close(fd);
	CUresult loaded = cuLibraryLoadFromFile(&lib, file, NULL, NULL, 0, NULL, NULL, 0);
	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	CUresult added = cuLinkAddFile(link, CU_JIT_INPUT_PTX, file, 0, NULL, NULL);
	unlink(file);
	CHECK(loaded);
	CHECK(added);
	CHECK(cuLibraryGetKernel(&k, lib, "poke"));
	CHECK(cuLinkComplete(link, &cubin, &size));
	GIVES(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile(link, CU_JIT_INPUT_PTX, file, 0, NULL, NULL));
}

#define PTX_HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
#define CALLER_PTX PTX_HEAD ".extern .func (.param .u32 r) seven;\n.visible .entry k(.param .u64 to)\n{\n" \
	".reg .u64 %a;\n.reg .u32 %v;\n.param .u32 r;\nld.param.u64 %a, [to];\ncall (r), seven;\n" \
	"ld.param.u32 %v, [r];\nst.global.u32 [%a], %v;\nret;\n}\n"
#define SEVEN_PTX PTX_HEAD ".visible .func (.param .u32 r) seven\n{\n.reg .u32 %v;\nmov.u32 %v, 7;\nst.param.u32 [r], %v;\nret;\n}\n"

/* Several objects are linked to one module. Objects that cannot be linked give an error in
 * cuLinkComplete. */
static void link_objects(void)
{
	char log[2000] = "";
	CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof log}, *image;
	CUlinkState link;
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	size_t size;
	unsigned int got;
	void *params[] = {&p};

	(void)demo_start("poke");
	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(link, &image, &size));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, CALLER_PTX, sizeof CALLER_PTX, "caller", 0, NULL, NULL));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, SEVEN_PTX, sizeof SEVEN_PTX, NULL, 0, NULL, NULL));
	CHECK(cuLinkComplete(link, &image, &size));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(link, CU_JIT_INPUT_PTX, SEVEN_PTX, sizeof SEVEN_PTX, NULL, 0, NULL, NULL));
	CHECK(cuModuleLoadData(&m, image));
	CHECK(cuLinkDestroy(link));
	CHECK(cuModuleGetFunction(&f, m, "k"));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 7);

	/* The program's options apply to a single object too. */
	CUjit_option registers = CU_JIT_MAX_REGISTERS;
	void *few = (void *)2;
	int used = 0; /* attribute 4, NUM_REGS */

	CHECK(cuLinkCreate(1, &registers, &few, &link));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels_ptx, strlen(kernels_ptx), "k.ptx", 0, NULL, NULL));
	CHECK(cuLinkComplete(link, &image, &size));
	CHECK(cuModuleLoadData(&m, image));
	CHECK(cuLinkDestroy(link));
	CHECK(cuModuleGetFunction(&f, m, "vecadd"));
	CHECK(cuFuncGetAttribute(&used, 4, f));
	EXPECT(used == 2);

	CHECK(cuLinkCreate(2, keys, values, &link));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, SEVEN_PTX, sizeof SEVEN_PTX, "one", 0, NULL, NULL));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, SEVEN_PTX, sizeof SEVEN_PTX, "two", 0, NULL, NULL));
	GIVES(CUDA_ERROR_INVALID_PTX, cuLinkComplete(link, &image, &size));
	EXPECT(strstr(log, "two: line 4: function seven is already defined in one") != NULL);
	CHECK(cuLinkDestroy(link));

	CHECK(cuLinkCreate(2, keys, values, &link));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, SEVEN_PTX, sizeof SEVEN_PTX, "one", 0, NULL, NULL));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_LIBRARY, "!<arch>\nhalf a head", 19, "lib.a", 0, NULL, NULL));
	values[1] = (void *)sizeof log;
	GIVES(CUDA_ERROR_INVALID_IMAGE, cuLinkComplete(link, &image, &size));
	EXPECT(strstr(log, "lib.a: ") != NULL && strstr(log, "archive") != NULL);
	CHECK(cuLinkDestroy(link));

	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	for (unsigned int i = 0; i < BSLT_MAX_LINK_OBJECTS; i++)
		CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, "x", 2, NULL, 0, NULL, NULL));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuLinkAddData(link, CU_JIT_INPUT_PTX, "x", 2, NULL, 0, NULL, NULL));
	CHECK(cuLinkDestroy(link));
}

/* Creates a fatbin of one image. Kind 1 is PTX, 2 is machine code. */
static void *fatbin_of(int kind, const char *image)
{
	size_t n = strlen(image) + 1;
	uint32_t *b = calloc(1, 80 + n);

	EXPECT(b != NULL);
	b[0] = 0xba55ed50, b[1] = 16 << 16 | 1;
	b[2] = (uint32_t)(64 + n);
	b[4] = (uint32_t)kind, b[5] = 64;
	b[6] = (uint32_t)n;
	b[11] = 61; /* as in sm_61 */
	memcpy(b + 20, image, n);
	return b;
}

/* The data that nvcc -rdc=true stores in a program: the linked machine code, and the objects,
 * which are linked again if the device cannot run the machine code. */
static void linked_wrapper(void)
{
	void *parts[] = {fatbin_of(1, CALLER_PTX), fatbin_of(1, SEVEN_PTX), NULL}, *linked[] = {fatbin_of(2, "\177ELF"), NULL};
	struct {
		uint32_t magic, version;
		void *data, **parts;
	} w = {0x466243b1, 2, NULL, parts};
	unsigned int got = 0;
	CUlibrary lib;
	CUdeviceptr p;
	CUfunction f;
	CUmodule m;
	CUkernel k;
	void *params[] = {&p};

	(void)demo_start("poke");
	CHECK(cuMemAlloc(&p, 4));
	for (int i = 0; i < 2; i++) {
		w.data = linked[i];
		CHECK(cuMemsetD32(p, 0, 1));
		CHECK(cuModuleLoadData(&m, &w));
		CHECK(cuModuleGetFunction(&f, m, "k"));
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		CHECK(cuMemcpyDtoH(&got, p, 4));
		EXPECT(got == 7);
		CHECK(cuMemsetD32(p, 0, 1));
		CHECK(cuLibraryLoadData(&lib, &w, NULL, NULL, 0, NULL, NULL, 0));
		CHECK(cuLibraryGetKernel(&k, lib, "k"));
		CHECK(cuLaunchKernel((CUfunction)(void *)k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		CHECK(cuMemcpyDtoH(&got, p, 4));
		EXPECT(got == 7);
		CHECK(cuLibraryUnload(lib));
	}
	*(uint32_t *)parts[1] = 0; /* not a fatbin */
	GIVES(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, &w));
	GIVES(CUDA_ERROR_INVALID_IMAGE, cuLibraryLoadData(&lib, &w, NULL, NULL, 0, NULL, NULL, 0));
	for (int i = 0; i < 2; i++)
		free(parts[i]);
	free(linked[0]);
}

static void bad_ptx(void)
{
	char log[2000] = "", info[100];
	CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
			       CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof log, info, (void *)sizeof info};
	CUmodule m;

	(void)demo_start("poke");
	GIVES(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&m, BAD_PTX, 4, keys, values));
	EXPECT(strstr(log, "frobnicate") != NULL);
	EXPECT((size_t)values[1] == strlen(log) + 1);
}

const struct test link_tests[] = {
	{"jit_logs", jit_logs}, {"bad_ptx", bad_ptx}, {"link_objects", link_objects}, {"linked_wrapper", linked_wrapper}, {NULL, NULL},
};
