/* The functions that compilers call in programs: registration before main, and the configuration
 * of a launch, which is passed from <<<>>> to the stub of the kernel. */
#include "driver_types.h"
#include "launch.h"
#include "runtime.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void **__cudaRegisterFatBinary(void *wrapper);
EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
EXPORT void __cudaUnregisterFatBinary(void **handle);
EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *tid,
				   uint3 *bid, dim3 *block, dim3 *grid, int *warp);
EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size, int constant,
			      int global);
EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size,
				     int constant, int global);
EXPORT void __cudaRegisterTexture(void **handle, const void *host, const void **device, const char *name, int dim, int norm,
				  int ext);
EXPORT void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name, int dim, int ext);
EXPORT char __cudaInitModule(void **handle);
EXPORT unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
				      cudaStream_t stream);
EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
					   cudaStream_t stream);

void **__cudaRegisterFatBinary(void *wrapper)
{
	return registry_add_fatbin(wrapper);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	registry_remove_fatbin(handle);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *tid, uint3 *bid,
			    dim3 *block, dim3 *grid, int *warp)
{
	(void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
	registry_add_function(handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size, int constant, int global)
{
	(void)device, (void)ext, (void)constant, (void)global;
	registry_add_variable(handle, host, name, size, NULL);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size, int constant,
			      int global)
{
	(void)device, (void)ext, (void)constant, (void)global;
	registry_add_variable(handle, host, name, size, host);
}

/* Texture and surface references, which CUDA 12 has removed. norm: integers are read as numbers
 * from 0 to 1. */
void __cudaRegisterTexture(void **handle, const void *host, const void **device, const char *name, int dim, int norm, int ext)
{
	(void)device, (void)dim, (void)ext;
	registry_add_reference(handle, host, name, false, norm);
}

void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name, int dim, int ext)
{
	(void)device, (void)dim, (void)ext;
	registry_add_reference(handle, host, name, true, false);
}

char __cudaInitModule(void **handle)
{
	registry_load_managed(handle);
	return 1;
}

/* The arguments of a launch may contain launches, so configurations nest. */
#define NESTED 16
static _Thread_local struct {
	dim3 grid, block;
	size_t shared;
	void *stream;
} pushed[NESTED];
static _Thread_local unsigned int depth;

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	if (depth == NESTED)
		return (unsigned int)finish(cudaErrorLaunchMaxDepthExceeded);
	pushed[depth].grid = grid;
	pushed[depth].block = block;
	pushed[depth].shared = shared;
	pushed[depth++].stream = stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (depth == 0)
		return finish(cudaErrorMissingConfiguration);
	depth--;
	*grid = pushed[depth].grid;
	*block = pushed[depth].block;
	*shared = pushed[depth].shared;
	*(void **)stream = pushed[depth].stream;
	return cudaSuccess;
}

/* A program's stub launches the handle that it gets here, so the host's address can be used. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	if (!kernel || !symbol_name(host))
		return finish(kernel ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidValue);
	*kernel = (cudaKernel_t)(uintptr_t)host;
	return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	cudaError_t err = enter();

	return finish(err ? err : launch(kernel, grid, block, args, shared, stream, false));
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	return __cudaLaunchKernel(kernel, grid, block, args, shared, own_stream(stream));
}
