#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

extern const char *const driver_names[];
extern driver_function driver_found[];

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(void *) library;
static atomic_bool ready; /* cuInit has succeeded in this process */

/* Resets the state in a child of fork, which can initialize the driver itself. */
static void after_fork(void)
{
	pthread_mutex_init(&opening, NULL);
	atomic_store(&ready, false);
	registry_after_fork();
	context_after_fork();
}

static void *open_library(void)
{
	void *l = atomic_load(&library);

	if (l || !(l = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)))
		return l;
	atomic_store(&library, l);
	pthread_atfork(NULL, NULL, after_fork);
	return l;
}

void *driver_symbol(const char *name)
{
	void *l = atomic_load(&library);

	return l ? dlsym(l, name) : NULL;
}

/* Returns a function of the driver. Several threads may look up the same symbol at the same
 * time. */
driver_function driver_find(int index)
{
	driver_function f = __atomic_load_n(&driver_found[index], __ATOMIC_RELAXED);

	if (!f) {
		*(void **)&f = driver_symbol(driver_names[index]);
		__atomic_store_n(&driver_found[index], f, __ATOMIC_RELAXED);
	}
	return f;
}

cudaError_t driver_open(void)
{
	cudaError_t err = cudaSuccess;

	if (atomic_load_explicit(&ready, memory_order_acquire))
		return cudaSuccess;
	pthread_mutex_lock(&opening);
	if (!atomic_load(&ready)) {
		if (!open_library())
			err = cudaErrorInsufficientDriver;
		else if ((err = from_driver(call_cuInit(0))) == cudaSuccess)
			atomic_store_explicit(&ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&opening);
	return err;
}

cudaError_t own_cudaDriverGetVersion(int *driverVersion)
{
	bool there;

	if (!driverVersion)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&opening);
	there = open_library() != NULL;
	pthread_mutex_unlock(&opening);
	if (there)
		return from_driver(call_cuDriverGetVersion(driverVersion));
	*driverVersion = 0; /* as documented, a missing driver is not an error here */
	return cudaSuccess;
}
