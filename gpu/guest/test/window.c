/* Tests of the address window: the program's own memory and device memory never have the same
 * address, wherever the program has mapped memory. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "api.h"

#define TIB (1ull << 40)
#define SOME (1u << 20)

/* The possible bases of the window, as in src/window.c. The last window is smaller. */
static const uint64_t bases[] = {
	0x400000000000, 0x300000000000, 0x680000000000, 0x200000000000,
	0x700000000000, 0x740000000000, 0x100000000000, 0x2000000000,
};
#define BASES (sizeof bases / sizeof bases[0])

/* Maps memory of the program from the page of an address on. Returns NULL if that is not
 * possible. */
static void *own(uint64_t address, size_t n)
{
	void *p = mmap((void *)(uintptr_t)(address & ~4095ull), n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Reports whether an address is in one of the possible windows. */
static bool in_a_window(CUdeviceptr p)
{
	for (size_t i = 0; i < BASES; i++)
		if (p >= bases[i] && p - bases[i] < TIB)
			return true;
	return false;
}

/* Copies between memory of the program and of the device in both directions, which depend on
 * the addresses, and compares. */
static void works(unsigned char *host)
{
	static unsigned char back[SOME];
	unsigned int type = 0;
	CUdeviceptr p;

	CHECK(cuMemAlloc(&p, SOME));
	EXPECT(in_a_window(p));
	for (size_t i = 0; i < SOME; i++)
		host[i] = (unsigned char)(i * 31 + 7);
	CHECK(cuMemsetD8(p, 0xee, SOME));
	CHECK(cuMemcpy(p, (CUdeviceptr)(uintptr_t)host, SOME));
	CHECK(cuMemcpyDtoH(back, p, SOME));
	EXPECT(memcmp(host, back, SOME) == 0);
	memset(host, 0, SOME);
	CHECK(cuMemcpy((CUdeviceptr)(uintptr_t)host, p, SOME));
	EXPECT(memcmp(host, back, SOME) == 0);
	CHECK(cuPointerGetAttribute(&type, 2 /* memory type */, p + 5));
	EXPECT(type == CU_MEMORYTYPE_DEVICE);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)host));
	CHECK(cuMemFree(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy((CUdeviceptr)(uintptr_t)host, p, 1)); /* the memory was freed */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, host, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister((void *)(uintptr_t)p, 4096, 0));
}

/* The program has memory at the addresses at which the soft GPU's device memory formerly began,
 * mapped before cuInit and after it. */
static void window_collision(void)
{
	const uint64_t formerly = 0x7f0000000000;
	void *early = own(formerly, 16u << 20), *late;
	CUdeviceptr p;

	if (!early) /* the dynamic loader uses these addresses */
		early = malloc(16u << 20);
	(void)demo_start("poke");
	works(early);
	/* The program cannot map memory at the first device addresses. */
	CHECK(cuMemAlloc(&p, SOME));
	late = own(p, SOME);
	EXPECT(late == NULL && errno == EEXIST);
	CHECK(cuMemFree(p));
	EXPECT(own(p, SOME) == NULL && errno == EEXIST);
	works(malloc(SOME));
}

/* The program has memory in the window that would be chosen first. */
static void window_taken(void)
{
	unsigned char *mine = own(bases[0] + TIB / 2, SOME);
	size_t open = 0;
	CUdeviceptr p;

	EXPECT(mine != NULL);
	(void)demo_start("poke");
	CHECK(cuMemAlloc(&p, SOME));
	EXPECT(p - bases[0] >= TIB && in_a_window(p));
	works(mine);
	/* The program can use the windows that were not chosen. */
	for (size_t i = 1; i < BASES; i++)
		open += own(bases[i], SOME) != NULL;
	EXPECT(open == BASES - 2);
	CHECK(cuMemFree(p));
}

/* The program has memory in all windows. */
static void window_all_taken(void)
{
	void *mine[BASES];

	for (size_t i = 0; i < BASES; i++)
		mine[i] = own(bases[i] + (1u << 30), 4096);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuInit(0));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuInit(0));
	if (mine[2])
		munmap(mine[2], 4096); /* later one of them is free */
	(void)demo_start("poke");
	works(malloc(SOME));
}

static void limit_addresses(uint64_t n)
{
	EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){n, n}) == 0);
}

/* RLIMIT_AS limits the addresses of the process. */
static void window_limited(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		limit_addresses(1u << 30);
		GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuInit(0));
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	limit_addresses(8ull << 30);
	(void)demo_start("poke");
	works(malloc(SOME));
	EXPECT(malloc(4ull << 30) != NULL); /* most addresses are left to the program */
}

/* A child does not inherit its parent's window, and can reserve the same one itself. */
static void window_forks(void)
{
	CUdeviceptr p, q;
	int status;
	pid_t child;

	(void)demo_start("poke");
	CHECK(cuMemAlloc(&p, SOME));
	if ((child = fork()) == 0) {
		void *mine = own(p, SOME);

		EXPECT(mine != NULL);
		memset(mine, 1, SOME);
		munmap(mine, SOME);
		(void)demo_start("poke");
		CHECK(cuMemAlloc(&q, SOME));
		EXPECT(p - q < TIB || q - p < TIB);
		works(malloc(SOME));
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	EXPECT(own(p, SOME) == NULL && errno == EEXIST);
	works(malloc(SOME));
}

const struct test window_tests[] = {
	{"window_collision", window_collision}, {"window_taken", window_taken}, {"window_all_taken", window_all_taken},
	{"window_limited", window_limited}, {"window_forks", window_forks},
	{NULL, NULL},
};
