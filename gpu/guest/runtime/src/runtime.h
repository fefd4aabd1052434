/* Declarations that the files of the runtime library share. Lock order: contexts (context.c),
 * then the registry of host symbols, then a fatbin's own lock. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "driver.h"

#define MAX_DEVICES 64

/* The state of a thread. */
struct thread {
	int device;
	cudaError_t last;
	void *context;        /* the context that the runtime has made current */
	unsigned int made_at; /* generation of the device's context at that time */
	int capture_mode;     /* used if the driver does not support stream capture */
};
extern _Thread_local struct thread thread;

/* Initializes the driver and makes a context current, as most calls of the API need it. */
cudaError_t enter(void);
/* Stores the error for cudaGetLastError, and returns it. */
cudaError_t finish(cudaError_t err);
/* Makes the primary context of a device current in this thread. */
cudaError_t bind_device(int device);
cudaError_t current_context(void **context);
int current_device(void);
/* Resets the device's primary context. Other threads detect that by its generation. */
cudaError_t reset_device(int device);
cudaError_t sticky_error(void);

/* Returns the stream of a call in its per-thread form. */
static inline cudaStream_t own_stream(cudaStream_t s)
{
	return s ? s : cudaStreamPerThread;
}

static inline CUdeviceptr device_address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* registry.c: the symbols that the program's code has registered. */
struct symbol;
cudaError_t symbol_function(const void *host, void **function);
cudaError_t symbol_kernel(const void *host, void **kernel);
/* Returns the host function of a driver's function, or NULL if the program has not registered
 * it. */
const void *function_symbol(const void *function);
const char *symbol_name(const void *host);
cudaError_t symbol_variable(const void *host, CUdeviceptr *address, size_t *size);
/* Finds the driver's reference of a variable of the program, in the current context. *normalized
 * reports whether integers are read as numbers from 0 to 1. */
cudaError_t symbol_reference(const void *host, bool surface, bool *normalized, void **reference);
bool symbol_is_reference(const void *host, bool surface);
void registry_forget_context(void *context);
void registry_after_fork(void);
void context_after_fork(void);
void *registry_add_fatbin(const void *wrapper);
void registry_add_function(void *fatbin, const void *host, const char *name);
void registry_add_variable(void *fatbin, const void *host, const char *name, size_t size, void **managed);
void registry_add_reference(void *fatbin, const void *host, const char *name, bool surface, bool normalized);
void registry_load_managed(void *fatbin);
void registry_remove_fatbin(void *fatbin);

/* array.c */
cudaError_t array_element_size(cudaArray_const_t array, size_t *bytes);
int driver_format(const struct cudaChannelFormatDesc *d, unsigned int *channels);
struct cudaChannelFormatDesc channel_desc(int format, unsigned int channels);

/* copy.c and copy_box.c */
cudaError_t check_kind(enum cudaMemcpyKind kind);
cudaError_t copy_plain(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, bool per_thread);
cudaError_t copy_async(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t driver_box(const struct cudaMemcpy3DParms *p, struct driver_box *b);
cudaError_t runtime_box(const struct driver_box *b, struct cudaMemcpy3DParms *p);

/* graph.c */
cudaError_t kernel_params(const struct cudaKernelNodeParams *p, struct driver_kernel *d);

#endif
