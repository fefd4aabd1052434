/* What the generated functions (stubs_gen.c) call. */
#ifndef BASALT_STUBS_H
#define BASALT_STUBS_H

#include "state.h"

/* The stream that a form for per-thread default streams means. */
static inline CUstream per_thread(CUstream h)
{
	return h ? h : CU_STREAM_PER_THREAD;
}

/* What a function that no vGPU can serve returns. */
static inline int refuse(int error)
{
	SESSION(s);
	(void)s;
	return error;
}

#endif
