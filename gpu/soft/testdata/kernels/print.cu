// Kernels that print, and one that asserts.
#include "basalt.h"

extern "C" __device__ int printf(const char *, ...);
extern "C" __attribute__((noreturn)) __device__ void __assertfail(const char *what, const char *file, unsigned line, const char *function,
								  unsigned long size);

// Every size of argument, promoted as C does, and strings of every space.
KERNEL print(s32 *returned, const char *global)
{
	char local[8] = {'l', 'o', 'c', 'a', 'l', 0};
	__shared__ char shared[8];
	signed char c = -3;
	u16 h = 65535;
	float f = 1.5f;

	shared[0] = 's', shared[1] = 0;
	returned[0] = printf("none\n");
	returned[1] = printf("%d %hhd %hu %c %lld %5.2f|%s|%s|%s|%s|%p\n", GID - 7, c, h, 'A' + bidx, -1234567890123456789ll, f, "constant",
			     global, shared, local, (void *)0x1234);
	returned[2] = printf((const char *)0);
	returned[3] = printf("%*.*f\n", 9, 3, 2.0 / 3);
}

// One line a thread, of those whose number is even.
KERNEL lines(u32 times)
{
	for (u32 i = 0; i < times; i++)
		if (tidx % 2 == 0)
			printf("block %d thread %d round %d\n", (s32)bidx, (s32)tidx, (s32)i);
}

// A format and arguments that a hostile program may give.
KERNEL raw(const char *format, const char *text) { printf(format, text); }

KERNEL check(const u32 *values)
{
	if (values[GID] > 2)
		__assertfail("values[i] <= 2", "check.cu", 42, "void check(const u32 *)", 1);
}
