/* Tests of libraries: when they are sent to the worker, and when they are unloaded. The vGPU's
 * free memory shows how many are loaded, because each library here has a variable of BIG
 * bytes. */
#include <stdatomic.h>
#include <stdbool.h>

#include "api.h"

#define BIG (4u << 20)
#define KERNELS 300
#define THREADS 8

/* Returns how many modules were loaded since before bytes were free. */
static size_t loaded_since(size_t before)
{
	size_t now = free_bytes();

	return now >= before ? 0 : (before - now) / BIG;
}

/* Returns PTX of n kernels, k0 and so on, each of which stores its number. The caller frees
 * it. */
static char *library_text(int n)
{
	size_t room = 512 + (size_t)n * 256, at;
	char *p = malloc(room);

	EXPECT(p != NULL);
	at = (size_t)snprintf(p, room, "// a library\n/* of\nkernels */ .version 6.0\n.target sm_50\n.address_size 64\n"
				       ".visible .global .align 4 .b8 big[%u];\n.visible .global .align 4 .u32 answer = 42;\n", BIG);
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(p + at, room - at, ".visible .entry k%d(.param .u64 to)\n{\n.reg .u64 %%a;\n.reg .u32 %%v;\nld.param.u64 %%a, [to];\n"
							  "mov.u32 %%v, %3d;\nst.global.u32 [%%a], %%v;\nret;\n}\n", i, i);
	EXPECT(at < room);
	return p;
}

static CUlibrary library_of(const char *text)
{
	CUlibrary l;

	CHECK(cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
	return l;
}

/* Returns the number that the kernel stores. */
static unsigned int result_of(CUkernel k)
{
	unsigned int got = 0xdead;
	CUdeviceptr p;
	void *params[] = {&p};

	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuLaunchKernel((CUfunction)(void *)k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	CHECK(cuMemFree(p));
	return got;
}

static size_t start(CUcontext *c)
{
	CHECK(cuInit(0));
	CHECK(cuCtxCreate(c, 0, 0));
	alone();
	return free_bytes();
}

/* A library is loaded at its first use, and only once, whatever the number of its kernels. */
static void lazy(void)
{
	char *text = library_text(100), name[8];
	unsigned int count, value;
	CUmoduleLoadingMode mode;
	size_t before, bytes;
	CUkernel k, again;
	CUdeviceptr p;
	CUcontext c;
	CUlibrary l;
	CUmodule m;

	before = start(&c);
	CHECK(cuModuleGetLoadingMode(&mode));
	EXPECT(mode == CU_MODULE_LAZY_LOADING);
	l = library_of(text);
	free(text); /* the library has a copy */
	EXPECT(loaded_since(before) == 0);
	CHECK(cuLibraryGetKernel(&k, l, "k57"));
	EXPECT(loaded_since(before) == 1);
	EXPECT(result_of(k) == 57);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "k%d", i);
		CHECK(cuLibraryGetKernel(&k, l, name));
	}
	EXPECT(result_of(k) == 99);
	CHECK(cuLibraryGetKernel(&again, l, "k99"));
	EXPECT(again == k);
	GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&again, l, "k100"));
	CHECK(cuLibraryGetModule(&m, l));
	CHECK(cuLibraryGetKernelCount(&count, l));
	EXPECT(count == 100);
	CHECK(cuLibraryGetGlobal(&p, &bytes, l, "answer"));
	CHECK(cuMemcpyDtoH(&value, p, 4));
	EXPECT(bytes == 4 && value == 42 && loaded_since(before) == 1);
	CHECK(cuLibraryUnload(l));
	EXPECT(loaded_since(before) == 0);
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&again, l, "k99"));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction((CUfunction *)(void *)&again, k));
}

/* Each of these calls is the first use of a library. */
static void first_uses(void)
{
	char *text = library_text(2);
	unsigned int count;
	CUkernel kernels[3] = {0};
	size_t before, bytes;
	CUdeviceptr p;
	CUcontext c;
	CUmodule m;

	before = start(&c);
	for (int use = 0; use < 5; use++) {
		CUlibrary l = library_of(text);

		EXPECT(loaded_since(before) == 0);
		switch (use) {
		case 0: CHECK(cuLibraryGetModule(&m, l)); break;
		case 1: CHECK(cuLibraryGetGlobal(&p, &bytes, l, "big")); break;
		case 2: CHECK(cuLibraryGetKernelCount(&count, l)); break;
		case 3: CHECK(cuLibraryEnumerateKernels(kernels, 3, l)); break;
		default: GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&p, &bytes, l, "none")); break;
		}
		EXPECT(loaded_since(before) == 1);
		CHECK(cuLibraryUnload(l));
	}
	free(text);
}

/* A library that is not used is not sent to the worker: even its errors are not reported. */
static void unused(void)
{
	static const char bad_body[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\nfrobnicate.u32 %r1 %r2;\nret;\n}\n";
	static const unsigned char bad_elf[128] = {0177, 'E', 'L', 'F', 2, 1, 1}, host_elf[128] = {0177, 'E', 'L', 'F', 2, 1, 1, [18] = 62, [58] = 64, [60] = 1, [40] = 64};
	static const unsigned char no_fatbin[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16};
	static const struct {
		const void *image;
		const char *why;
	} bad_headers[] = {
		{"", "nothing"}, {"hello", "no directive"}, {"// .version 6.0\n", "a comment"}, {"/* .version", "half a comment"}, {".versio", "half a directive"},
		{bad_elf, "ELF of no machine"}, {host_elf, "ELF of the host"}, {no_fatbin, "fatbin of nothing"},
	};
	CUcontext c;
	size_t before = start(&c);
	CUlibrary l;
	CUkernel k;

	CHECK(cuCtxPopCurrent(&c)); /* a library needs no context */
	for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
		CUresult r = cuLibraryLoadData(&l, bad_headers[i].image, NULL, NULL, 0, NULL, NULL, 0);

		if (r != CUDA_ERROR_INVALID_IMAGE)
			fprintf(stderr, "cuLibraryLoadData of an image with %s gives %d, want an error for it\n", bad_headers[i].why, r);
		EXPECT(r == CUDA_ERROR_INVALID_IMAGE);
	}
	l = library_of(bad_body);
	CHECK(cuCtxPushCurrent(c));
	EXPECT(loaded_since(before) == 0);
	for (int i = 0; i < 2; i++)
		GIVES(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernel(&k, l, "k"));
	CHECK(cuLibraryUnload(l));
	CHECK(cuLibraryUnload(library_of(bad_body)));
	EXPECT(free_bytes() == before);
}

/* A preserved image is not copied, and not read before the first use. */
static void preserved(void)
{
	CUlibraryOption options[] = {CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE, CU_LIBRARY_BINARY_IS_PRESERVED}, unknown = 9;
	void *yes[] = {NULL, (void *)1}, *no[] = {NULL, NULL};
	char *text = library_text(1), *number = strstr(text, "  0;"), file[] = "/tmp/basalt-guest-XXXXXX";
	CUlibrary kept, copied, denied, from_file;
	CUcontext c;
	CUkernel k;
	int fd;

	(void)start(&c);
	EXPECT(number != NULL);
	CHECK(cuLibraryLoadData(&kept, text, NULL, NULL, 0, options, yes, 2));
	CHECK(cuLibraryLoadData(&copied, text, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryLoadData(&denied, text, NULL, NULL, 0, options, no, 2));
	EXPECT((fd = mkstemp(file)) >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(cuLibraryLoadFromFile(&from_file, file, NULL, NULL, 0, options, no, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadFromFile(&from_file, file, NULL, NULL, 0, options, yes, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&kept, text, NULL, NULL, 0, &unknown, yes, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&kept, text, NULL, NULL, 0, NULL, yes, 1));
	EXPECT(ftruncate(fd, 0) == 0 && close(fd) == 0 && unlink(file) == 0);
	memcpy(number, " 77", 3);
	CHECK(cuLibraryGetKernel(&k, kept, "k0"));
	EXPECT(result_of(k) == 77);
	memset(text, 'x', strlen(text)); /* the image was sent */
	EXPECT(result_of(k) == 77);
	CHECK(cuLibraryGetKernel(&k, copied, "k0"));
	EXPECT(result_of(k) == 0);
	CHECK(cuLibraryGetKernel(&k, denied, "k0"));
	EXPECT(result_of(k) == 0);
	CHECK(cuLibraryGetKernel(&k, from_file, "k0"));
	EXPECT(result_of(k) == 0);
	CHECK(cuLibraryUnload(kept));
	free(text);
}

/* Each context gets its own module at the first use. The kernel's handle is the same. */
static void contexts(void)
{
	char *text = library_text(2);
	CUcontext a, b, later;
	CUkernel k, same;
	size_t before;
	CUlibrary l;
	CUmodule in_a, in_b;

	(void)start(&a);
	CHECK(cuCtxCreate(&b, 0, 0));
	before = free_bytes();
	l = library_of(text);
	free(text);
	CHECK(cuLibraryGetKernel(&k, l, "k1")); /* the current context is b */
	EXPECT(loaded_since(before) == 1 && result_of(k) == 1);
	CHECK(cuLibraryGetModule(&in_b, l));
	CHECK(cuCtxSetCurrent(a));
	EXPECT(loaded_since(before) == 1);
	EXPECT(result_of(k) == 1); /* the launch is the first use in this context */
	EXPECT(loaded_since(before) == 2);
	CHECK(cuLibraryGetKernel(&same, l, "k1"));
	CHECK(cuLibraryGetModule(&in_a, l));
	EXPECT(same == k && in_a != in_b);
	CHECK(cuCtxDestroy(b));
	EXPECT(loaded_since(before) == 1 && result_of(k) == 1);
	for (int i = 0; i < 20; i++) { /* the places of destroyed contexts are used again */
		CHECK(cuCtxCreate(&later, 0, 0));
		EXPECT(loaded_since(before) == 1);
		EXPECT(result_of(k) == 1 && loaded_since(before) == 2);
		CHECK(cuCtxDestroy(later));
	}
	CHECK(cuCtxSetCurrent(a));
	CHECK(cuLibraryUnload(l));
	EXPECT(loaded_since(before) == 0);
}

/* Running work ends normally after the unload, and no new work can begin. */
static void unload_in_use(void)
{
	unsigned int rounds = 1u << 14, zero = 0, got = 0;
	CUdeviceptr p;
	CUcontext c;
	CUlibrary l;
	CUkernel k;
	CUstream s;
	void *params[] = {&p, &rounds};

	(void)start(&c);
	l = library_of(kernels_ptx);
	CHECK(cuLibraryGetKernel(&k, l, "count"));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&p, 4));
	CHECK(cuMemcpyHtoD(p, &zero, 4));
	CHECK(cuCtxSynchronize()); /* the stream does not wait for the copy by itself */
	for (int i = 0; i < 4; i++)
		CHECK(cuLaunchKernel((CUfunction)(void *)k, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
	CHECK(cuLibraryUnload(l));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel((CUfunction)(void *)k, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpyDtoH(&got, p, 4));
	EXPECT(got == 4 * 32 * rounds);
}

static struct {
	pthread_barrier_t barrier;
	CUcontext contexts[2];
	CUlibrary library;
	_Atomic unsigned int unexpected;
} shared;

static void *ask(void *p)
{
	size_t i = (size_t)p;
	CUkernel k;

	CHECK(cuCtxSetCurrent(shared.contexts[i % 2]));
	pthread_barrier_wait(&shared.barrier);
	CHECK(cuLibraryGetKernel(&k, shared.library, "k7"));
	EXPECT(result_of(k) == 7);
	return k;
}

/* Threads use a library at the same time: it is loaded once in each context, and has one kernel
 * handle. */
static void threads_ask(void)
{
	char *text = library_text(100);
	pthread_t threads[THREADS];
	void *kernels[THREADS];
	size_t before;

	(void)start(&shared.contexts[0]);
	CHECK(cuCtxCreate(&shared.contexts[1], 0, 0));
	before = free_bytes();
	pthread_barrier_init(&shared.barrier, NULL, THREADS);
	for (int round = 0; round < 10; round++) {
		shared.library = library_of(text);
		for (size_t i = 0; i < THREADS; i++)
			EXPECT(pthread_create(&threads[i], NULL, ask, (void *)i) == 0);
		for (size_t i = 0; i < THREADS; i++)
			EXPECT(pthread_join(threads[i], &kernels[i]) == 0 && kernels[i] == kernels[0]);
		EXPECT(loaded_since(before) == 2);
		CHECK(cuLibraryUnload(shared.library));
		EXPECT(loaded_since(before) == 0);
	}
	free(text);
}

static void *ask_until_gone(void *p)
{
	size_t i = (size_t)p;
	CUresult r = 0;
	CUkernel k;

	CHECK(cuCtxSetCurrent(shared.contexts[i % 2]));
	pthread_barrier_wait(&shared.barrier);
	while (r == 0)
		r = cuLibraryGetKernel(&k, shared.library, "k7");
	if (r != CUDA_ERROR_INVALID_HANDLE)
		atomic_fetch_add(&shared.unexpected, 1);
	return NULL;
}

/* Unloads while other threads load: they get an error, and nothing stays loaded. */
static void unload_races(void)
{
	char *text = library_text(20);
	pthread_t threads[THREADS];
	CUresult unloaded;
	size_t before;

	(void)start(&shared.contexts[0]);
	CHECK(cuCtxCreate(&shared.contexts[1], 0, 0));
	before = free_bytes();
	pthread_barrier_init(&shared.barrier, NULL, THREADS + 1);
	for (int round = 0; round < 30; round++) {
		shared.library = library_of(text);
		for (size_t i = 0; i < THREADS; i++)
			EXPECT(pthread_create(&threads[i], NULL, ask_until_gone, (void *)i) == 0);
		pthread_barrier_wait(&shared.barrier);
		for (int i = 0; i < round; i++) /* sometimes during the load, sometimes after it */
			usleep(100);
		unloaded = cuLibraryUnload(shared.library);
		for (size_t i = 0; i < THREADS; i++)
			EXPECT(pthread_join(threads[i], NULL) == 0);
		CHECK(unloaded);
		EXPECT(atomic_load(&shared.unexpected) == 0 && loaded_since(before) == 0);
	}
	free(text);
}

/* With CUDA_MODULE_LOADING=EAGER a library is loaded before its first use, into existing and
 * into later contexts. Errors are returned by the call that creates the library. */
static void eager(void)
{
	static const char bad_body[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\nfrobnicate.u32 %r1 %r2;\nret;\n}\n";
	char *text = library_text(3);
	CUmoduleLoadingMode mode;
	CUcontext a, b, c;
	size_t before;
	CUlibrary l;
	CUkernel k;

	EXPECT(setenv("CUDA_MODULE_LOADING", "EAGER", 1) == 0);
	(void)start(&a);
	CHECK(cuCtxCreate(&b, 0, 0));
	CHECK(cuModuleGetLoadingMode(&mode));
	EXPECT(mode == CU_MODULE_EAGER_LOADING);
	before = free_bytes();
	l = library_of(text);
	EXPECT(loaded_since(before) == 2);
	CHECK(cuCtxCreate(&c, 0, 0));
	EXPECT(loaded_since(before) == 3);
	CHECK(cuLibraryGetKernel(&k, l, "k2"));
	EXPECT(result_of(k) == 2 && loaded_since(before) == 3);
	l = NULL;
	GIVES(CUDA_ERROR_INVALID_PTX, cuLibraryLoadData(&l, bad_body, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(l == NULL && loaded_since(before) == 3);
	CHECK(cuCtxDestroy(c));
	EXPECT(loaded_since(before) == 2);
	free(text);
}

/* Lists all kernels of a library, more than an earlier version had room for. */
static void enumerates(void)
{
	char *text = library_text(KERNELS);
	static CUkernel all[KERNELS + 1];
	const char *name;
	unsigned int number;
	CUcontext c;
	CUlibrary l;
	CUkernel k;

	(void)start(&c);
	l = library_of(text);
	free(text);
	CHECK(cuLibraryEnumerateKernels(all, 2, l));
	EXPECT(all[0] && all[1] && !all[2]);
	CHECK(cuLibraryEnumerateKernels(all, KERNELS + 1, l));
	EXPECT(!all[KERNELS]);
	for (int i = 0; i < KERNELS; i++) {
		CHECK(cuKernelGetName(&name, all[i]));
		CHECK(cuLibraryGetKernel(&k, l, name));
		EXPECT(k == all[i] && sscanf(name, "k%u", &number) == 1);
		if (i % 50 == 0)
			EXPECT(result_of(k) == number);
	}
	CHECK(cuKernelSetCacheConfig(all[0], 1, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuKernelSetCacheConfig(all[0], 1, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryEnumerateKernels(NULL, 1, l));
	CHECK(cuLibraryUnload(l));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLibraryEnumerateKernels(all, 1, l));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelSetCacheConfig(all[0], 1, 0));
}

/* The names in an image can be queried without a context. */
static void names_without_context(void)
{
	static const char bad_body[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u32 a, .param .u64 b)\n{\nfrobnicate.u32 %r1 %r2;\nret;\n}\n";
	static const unsigned char head[80] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, [16] = 1, [20] = 64};
	char *text = library_text(100), *fatbin = malloc(sizeof head + strlen(text));
	uint64_t size = strlen(text), all = size + 64;
	CUkernel k, same, list[101] = {0};
	unsigned int count = 0;
	size_t before, offset, bytes;
	const char *name;
	CUlibrary l, bad;
	CUfunction f;
	CUcontext c;

	memcpy(fatbin, head, sizeof head);
	memcpy(fatbin + 8, &all, 8);
	memcpy(fatbin + 24, &size, 8);
	memcpy(fatbin + 80, text, size);
	before = start(&c);
	CHECK(cuCtxPopCurrent(&c));
	for (int packed = 0; packed < 2; packed++) {
		l = library_of(packed ? fatbin : text);
		GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&k, l, "k100"));
		CHECK(cuLibraryGetKernel(&k, l, "k57"));
		CHECK(cuLibraryGetKernelCount(&count, l));
		EXPECT(count == 100);
		CHECK(cuLibraryEnumerateKernels(list, 101, l));
		EXPECT(list[57] == k && list[99] && !list[100]);
		CHECK(cuKernelGetName(&name, k));
		EXPECT(strcmp(name, "k57") == 0);
		CHECK(cuKernelGetParamInfo(k, 0, &offset, &bytes));
		EXPECT(offset == 0 && bytes == 8);
		GIVES(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(k, 1, &offset, &bytes));
		GIVES(CUDA_ERROR_INVALID_CONTEXT, cuKernelGetFunction(&f, k));
		CHECK(cuCtxPushCurrent(c));
		EXPECT(loaded_since(before) == 0);
		CHECK(cuLibraryGetKernel(&same, l, "k57"));
		EXPECT(same == k && result_of(k) == 57 && loaded_since(before) == 1);
		CHECK(cuLibraryUnload(l));
		CHECK(cuCtxPopCurrent(&c));
		GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, k));
	}
	bad = library_of(bad_body); /* the error is returned when it is used */
	CHECK(cuLibraryGetKernel(&k, bad, "k"));
	CHECK(cuKernelGetParamInfo(k, 1, &offset, &bytes));
	EXPECT(offset == 8 && bytes == 8);
	CHECK(cuCtxPushCurrent(c));
	GIVES(CUDA_ERROR_INVALID_PTX, cuKernelGetFunction(&f, k));
	GIVES(CUDA_ERROR_INVALID_PTX, cuLaunchKernel((CUfunction)(void *)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	free(text);
	free(fatbin);
}

/* Names that do not exist, and functions that the host can call, which are not supported. */
static void nothing_shared(void)
{
	char *text = library_text(1);
	CUdeviceptr p = 77;
	size_t bytes;
	void *function;
	CUcontext c;
	CUlibrary l;

	(void)start(&c);
	l = library_of(text);
	for (int current = 1; current >= 0; current--) {
		GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&p, &bytes, l, "answer"));
		GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&p, NULL, l, "none"));
		GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetUnifiedFunction(&function, l, "k0"));
		if (current)
			CHECK(cuCtxPopCurrent(&c));
	}
	EXPECT(p == 77);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(NULL, NULL, l, "answer"));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(&p, &bytes, l, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(NULL, l, "k0"));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(&function, l, NULL));
	CHECK(cuLibraryUnload(l));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetManaged(&p, &bytes, l, "answer"));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetUnifiedFunction(&function, l, "k0"));
	free(text);
}

const struct test library_tests[] = {
	{"library_lazy", lazy}, {"library_first_uses", first_uses}, {"library_unused", unused}, {"library_preserved", preserved},
	{"library_contexts", contexts}, {"library_unload_in_use", unload_in_use}, {"library_threads", threads_ask},
	{"library_unload_races", unload_races}, {"library_eager", eager}, {"library_enumerates", enumerates}, {"library_nothing_shared", nothing_shared},
	{"library_names_without_context", names_without_context}, {NULL, NULL},
};
