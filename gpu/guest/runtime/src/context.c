/* The context of a call: the one that the program has made current through the driver API, or
 * else the primary context of the thread's device. */
#include <pthread.h>
#include <stdatomic.h>

#include "driver_calls.h"
#include "runtime.h"

_Thread_local struct thread thread;

static struct {
	atomic_uint generation;  /* counts resets */
	atomic_int sticky;       /* the error of a kernel's fault, which every call returns */
	atomic_uint retained_at; /* one more than the generation in which the primary context was retained */
} devices[MAX_DEVICES];
static pthread_mutex_t retaining = PTHREAD_MUTEX_INITIALIZER;

static bool is_sticky(cudaError_t err)
{
	switch (err) {
	case cudaErrorECCUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure: return true;
	default: return false;
	}
}

/* Returns the thread's device as an index. The program's own contexts count as contexts of it. */
static int device_index(void)
{
	return thread.device >= 0 && thread.device < MAX_DEVICES ? thread.device : 0;
}

cudaError_t sticky_error(void)
{
	return (cudaError_t)atomic_load(&devices[device_index()].sticky);
}

cudaError_t finish(cudaError_t err)
{
	if (err == cudaSuccess)
		return err;
	thread.last = err;
	if (is_sticky(err) && thread.context)
		atomic_store(&devices[device_index()].sticky, (int)err);
	return err;
}

cudaError_t bind_device(int device)
{
	unsigned int generation;
	void *context;
	cudaError_t err;

	if (device < 0 || device >= MAX_DEVICES)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&retaining);
	generation = atomic_load(&devices[device].generation);
	err = from_driver(call_cuDevicePrimaryCtxRetain(&context, device));
	if (!err && atomic_load(&devices[device].retained_at) == generation + 1)
		(void)call_cuDevicePrimaryCtxRelease_v2(device); /* the process needs only one reference */
	else if (!err)
		atomic_store(&devices[device].retained_at, generation + 1);
	if (!err)
		err = from_driver(call_cuCtxSetCurrent(context));
	pthread_mutex_unlock(&retaining);
	if (err)
		return err;
	thread.device = device;
	thread.context = context;
	thread.made_at = generation;
	return cudaSuccess;
}

cudaError_t current_context(void **context)
{
	*context = NULL;
	return from_driver(call_cuCtxGetCurrent(context));
}

int current_device(void)
{
	int device;

	return call_cuCtxGetDevice(&device) == 0 ? device : thread.device;
}

cudaError_t enter(void)
{
	cudaError_t err = driver_open();
	void *context = NULL;

	if (err || (err = sticky_error()) != 0)
		return err;
	if (call_cuCtxGetCurrent(&context) == 0 && context &&
	    (context != thread.context || thread.made_at == atomic_load(&devices[device_index()].generation)))
		return cudaSuccess;
	return bind_device(thread.device);
}

cudaError_t reset_device(int device)
{
	void *context = NULL;
	int active = 0;
	unsigned int flags;
	cudaError_t err;

	if (device < 0 || device >= MAX_DEVICES)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&retaining);
	err = from_driver(call_cuDevicePrimaryCtxGetState(device, &flags, &active));
	if (!err && active && call_cuDevicePrimaryCtxRetain(&context, device) == 0) { /* only to find out which context it is */
		(void)call_cuDevicePrimaryCtxRelease_v2(device);
		registry_forget_context(context);
	}
	if (!err)
		err = from_driver(call_cuDevicePrimaryCtxReset_v2(device));
	atomic_fetch_add(&devices[device].generation, 1);
	atomic_store(&devices[device].sticky, 0);
	pthread_mutex_unlock(&retaining);
	if (context && context == thread.context) {
		(void)call_cuCtxSetCurrent(NULL);
		thread.context = NULL;
	}
	return err;
}

/* Resets the state in a child of fork, which does not have the parent's contexts. */
void context_after_fork(void)
{
	pthread_mutex_init(&retaining, NULL);
	thread.context = NULL;
	for (int i = 0; i < MAX_DEVICES; i++) {
		atomic_store(&devices[i].sticky, 0);
		atomic_fetch_add(&devices[i].generation, 1);
	}
}
