/* Kernels that the device cannot run. They are in their module, as on a card that
 * compiles a kernel when it is first used; that use is the error. */
#include <stdio.h>
#include <stdlib.h>

#include "state.h"

/* A program that tries a kernel again and again is told so often. */
#define MOST_LINES 16u

static void say(const struct function_info *f)
{
	static _Atomic unsigned int lines;
	const char *v = getenv("BASALT_VERBOSE");

	if (v && *v && atomic_fetch_add(&lines, 1) < MOST_LINES)
		fprintf(stderr, "basalt: kernel %s cannot run on this device: %s\n", f->name, f->refused);
}

int function_usable(const struct function *f)
{
	if (!f->info.refused)
		return 0;
	say(&f->info);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
