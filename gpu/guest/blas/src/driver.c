#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kernel.h"

struct driver driver;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ready; /* cuInit has succeeded in this process */

/* Resets the state in a child of fork, which can initialize the driver itself. */
static void after_fork(void)
{
	pthread_mutex_init(&opening, NULL);
	atomic_store(&ready, false);
	kernels_after_fork();
}

/* Functions are found by their exact symbols: the macro of a name stands for its current
 * version. */
#define STRING(name) #name
#define SYMBOL(name) STRING(name)

static CUresult find(void)
{
	static void *library;

	if (library)
		return CUDA_SUCCESS;
	if (!(library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)))
		return CUDA_ERROR_NO_DEVICE;
#define F(name) \
	if (!(*(void **)&driver.name = dlsym(library, SYMBOL(name)))) { \
		dlclose(library); \
		library = NULL; \
		return CUDA_ERROR_NOT_SUPPORTED; \
	}
	BLAS_DRIVER_FUNCTIONS(F)
#undef F
	pthread_atfork(NULL, NULL, after_fork);
	return CUDA_SUCCESS;
}

CUresult driver_open(void)
{
	CUresult err = CUDA_SUCCESS;

	if (atomic_load_explicit(&ready, memory_order_acquire))
		return err;
	pthread_mutex_lock(&opening);
	if (!atomic_load(&ready)) {
		if ((err = find()) == CUDA_SUCCESS)
			err = driver.cuInit(0);
		if (err == CUDA_SUCCESS)
			atomic_store_explicit(&ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&opening);
	return err;
}
