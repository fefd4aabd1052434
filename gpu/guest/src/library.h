/* Data and functions that library.c and kernel.c share. */
#ifndef BASALT_LIBRARY_H
#define BASALT_LIBRARY_H

#include "state.h"

struct kernel {
	struct object o;
	uint64_t library;
	char *name;
};

/* A library's module in one context. */
struct loaded {
	uint64_t context; /* 0: the entry is free */
	bool loading;     /* a thread is loading it, without holding the lock */
	CUmodule module;
};

struct library {
	struct object o;
	const void *image;
	void *copy; /* the image, if this library has allocated it, else NULL */
	size_t size;
	CUjit_option keys[2]; /* the options that change the code, for every load */
	void *values[2];
	unsigned int options;

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t loads; /* signaled when a load has ended */
	struct managed_variables managed;

	bool gone;            /* it was unloaded, and is not loaded again */
	struct loaded *loaded;
	size_t count;
	bool read; /* about has what the worker has read in the image, and does not change any more */
	struct module_info about;
	struct kernel **kernels; /* references */
	size_t kernel_count;
};

/* Finds the library's module in the current context. The first call loads it. */
int library_module(struct library *l, CUmodule *out);
/* Removes the handles of the kernels, because the library was unloaded. */
void kernels_remove(struct library *l);

#endif
