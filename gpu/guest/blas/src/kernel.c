#include "kernel.h"

#include <pthread.h>
#include <string.h>

/* The PTX of ptx/, which is linked into the library as ptx_NAME. */
#define M(name) extern const char ptx_##name[];
BLAS_KERNELS(M, NOTHING)
#undef M

enum module {
#define M(name) M_##name,
	BLAS_KERNELS(M, NOTHING)
#undef M
	MODULES
};

static const char *const images[] = {
#define M(name) ptx_##name,
	BLAS_KERNELS(M, NOTHING)
#undef M
};

/* The modules, each followed by its kernels. */
static const struct row {
	const char *kernel; /* NULL: the row is a module */
} rows[] = {
#define M(name) {NULL},
#define K(name) {#name},
	BLAS_KERNELS(M, K)
#undef M
#undef K
};

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below, except for reading found */
static CUlibrary libraries[MODULES];
static CUkernel found[KERNELS];

void kernels_after_fork(void)
{
	pthread_mutex_init(&loading, NULL);
	memset(libraries, 0, sizeof libraries);
	memset(found, 0, sizeof found);
}

/* Returns the kernel's name, and the number of its module. */
static const char *name_of(enum kernel k, int *module)
{
	int kernels = -1;

	*module = -1;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!rows[i].kernel)
			++*module;
		else if (++kernels == (int)k)
			return rows[i].kernel;
	}
	return NULL;
}

static CUresult find(enum kernel k, CUkernel *kernel)
{
	int module;
	const char *name;
	CUresult err = CUDA_SUCCESS;

	if ((*kernel = __atomic_load_n(&found[k], __ATOMIC_ACQUIRE)))
		return err;
	name = name_of(k, &module);
	pthread_mutex_lock(&loading);
	if (!libraries[module])
		err = driver.cuLibraryLoadData(&libraries[module], images[module], NULL, NULL, 0, NULL, NULL, 0);
	if (err == CUDA_SUCCESS)
		err = driver.cuLibraryGetKernel(kernel, libraries[module], name);
	if (err == CUDA_SUCCESS)
		__atomic_store_n(&found[k], *kernel, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&loading);
	return err;
}

CUresult kernel_launch(enum kernel k, struct grid blocks, struct grid threads, CUstream stream, const void *args)
{
	CUkernel kernel;
	void *params[] = {(void *)args};
	CUresult err = find(k, &kernel);

	if (err != CUDA_SUCCESS)
		return err;
	return driver.cuLaunchKernel((CUfunction)kernel, blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z, 0, stream, params, NULL);
}
