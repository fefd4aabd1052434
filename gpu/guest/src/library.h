/* What library.c and kernel.c share. */
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
	bool loading;     /* by a thread that does not hold the lock */
	CUmodule module;
};

struct library {
	struct object o;
	const void *image;
	void *copy; /* image, when it is ours */
	size_t size;
	CUjit_option keys[2]; /* those that change the code, for every load */
	void *values[2];
	unsigned int options;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t loads; /* a load has ended */
	struct managed_variables managed;

	bool gone;            /* unloaded: nothing is loaded any more */
	struct loaded *loaded;
	size_t count;
	bool read; /* about is what the worker has read in the image; it stays as it is */
	struct module_info about;
	struct kernel **kernels; /* a reference each */
	size_t kernel_count;
};

/* The library's module in the current context, into which it is loaded the first
 * time that anybody asks. */
int library_module(struct library *l, CUmodule *out);
/* Forgets the kernels' handles; the library is gone. */
void kernels_remove(struct library *l);

#endif
