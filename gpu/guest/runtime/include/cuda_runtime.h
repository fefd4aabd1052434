/* The CUDA runtime API of Basalt's libcudart for C++: types, functions, templates and, in CUDA
 * sources, the functions of device code. */
#ifndef BASALT_CUDA_RUNTIME_H
#define BASALT_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "vector_functions.h"

#ifdef __cplusplus

#ifdef __CUDA__
#include "basalt_device.h"
#include "basalt_device_math.h"
#include "basalt_texture.h"

/* CUDA sources use these without including them. They come after the device's functions, so
 * that the names in std work on both sides. */
#include <math.h>
#include <time.h>

/* The function that clang calls for <<<>>>. */
extern "C" unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = 0);

/* min and max for both sides, as CUDA sources expect them. */
#define BASALT_MINMAX(t) \
	static __inline__ __host__ __device__ t min(t a, t b) { return b < a ? b : a; } \
	static __inline__ __host__ __device__ t max(t a, t b) { return a < b ? b : a; }
BASALT_MINMAX(int)
BASALT_MINMAX(unsigned int)
BASALT_MINMAX(long)
BASALT_MINMAX(unsigned long)
BASALT_MINMAX(long long)
BASALT_MINMAX(unsigned long long)
BASALT_MINMAX(float)
BASALT_MINMAX(double)
#endif

/* Overloads with default values and types, which the C functions do not have. */
static inline cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset = 0)
{
	return cudaMemcpyToSymbol(symbol, src, count, offset, cudaMemcpyHostToDevice);
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *src, size_t count, size_t offset = 0,
					     enum cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
	return cudaMemcpyToSymbol((const void *)&symbol, src, count, offset, kind);
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *src, size_t count, size_t offset = 0,
						  enum cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = 0)
{
	return cudaMemcpyToSymbolAsync((const void *)&symbol, src, count, offset, kind, stream);
}
template <class T>
static inline cudaError_t cudaMemcpyFromSymbol(void *dst, const T &symbol, size_t count, size_t offset = 0,
					       enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
	return cudaMemcpyFromSymbol(dst, (const void *)&symbol, count, offset, kind);
}
template <class T>
static inline cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t count, size_t offset = 0,
						    enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = 0)
{
	return cudaMemcpyFromSymbolAsync(dst, (const void *)&symbol, count, offset, kind, stream);
}
template <class T> static inline cudaError_t cudaGetSymbolAddress(void **p, const T &symbol)
{
	return cudaGetSymbolAddress(p, (const void *)&symbol);
}
template <class T> static inline cudaError_t cudaGetSymbolSize(size_t *size, const T &symbol)
{
	return cudaGetSymbolSize(size, (const void *)&symbol);
}
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t size) { return cudaMalloc((void **)(void *)p, size); }
template <class T> static inline cudaError_t cudaMallocHost(T **p, size_t size, unsigned int flags = 0)
{
	return cudaHostAlloc((void **)(void *)p, size, flags);
}
template <class T> static inline cudaError_t cudaHostAlloc(T **p, size_t size, unsigned int flags)
{
	return cudaHostAlloc((void **)(void *)p, size, flags);
}
template <class T> static inline cudaError_t cudaHostGetDevicePointer(T **p, void *host, unsigned int flags)
{
	return cudaHostGetDevicePointer((void **)(void *)p, host, flags);
}
template <class T> static inline cudaError_t cudaMallocManaged(T **p, size_t size, unsigned int flags = cudaMemAttachGlobal)
{
	return cudaMallocManaged((void **)(void *)p, size, flags);
}
template <class T> static inline cudaError_t cudaMallocPitch(T **p, size_t *pitch, size_t width, size_t height)
{
	return cudaMallocPitch((void **)(void *)p, pitch, width, height);
}
template <class T> static inline cudaError_t cudaMallocAsync(T **p, size_t size, cudaStream_t stream)
{
	return cudaMallocAsync((void **)(void *)p, size, stream);
}
template <class T>
static inline cudaError_t cudaLaunchKernel(T *f, dim3 grid, dim3 block, void **args, size_t shared = 0, cudaStream_t stream = 0)
{
	return cudaLaunchKernel((const void *)f, grid, block, args, shared, stream);
}
template <class T>
static inline cudaError_t cudaLaunchCooperativeKernel(T *f, dim3 grid, dim3 block, void **args, size_t shared = 0, cudaStream_t stream = 0)
{
	return cudaLaunchCooperativeKernel((const void *)f, grid, block, args, shared, stream);
}
template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*f)(P...), A &&...args)
{
	return [&](P... exact) {
		void *list[] = {(void *)&exact..., nullptr};
		return cudaLaunchKernelExC(config, (const void *)f, list);
	}(args...);
}
template <class T> static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, T *f)
{
	return cudaFuncGetAttributes(a, (const void *)f);
}
template <class T> static inline cudaError_t cudaFuncSetAttribute(T *f, enum cudaFuncAttribute a, int value)
{
	return cudaFuncSetAttribute((const void *)f, a, value);
}
template <class T> static inline cudaError_t cudaFuncSetCacheConfig(T *f, enum cudaFuncCache c)
{
	return cudaFuncSetCacheConfig((const void *)f, c);
}
template <class T>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T f, int block_size, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)f, block_size, shared);
}

/* Returns the block size with which most threads of a multiprocessor can be active. */
template <class T>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T f, size_t shared = 0, int limit = 0)
{
	struct cudaFuncAttributes a;
	int device, units, best = 0;
	cudaError_t err;

	if ((err = cudaFuncGetAttributes(&a, (const void *)f)) != 0 || (err = cudaGetDevice(&device)) != 0 ||
	    (err = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device)) != 0)
		return err;
	if (limit <= 0 || limit > a.maxThreadsPerBlock)
		limit = a.maxThreadsPerBlock;
	for (int size = (limit + 31) / 32 * 32; size > 0; size -= 32) {
		int threads = size < limit ? size : limit, blocks;

		if ((err = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)f, threads, shared)) != 0)
			return err;
		if (blocks * threads > best) {
			best = blocks * threads;
			*block = threads;
			*grid = blocks * units;
		}
	}
	return cudaSuccess;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags) { return cudaEventCreateWithFlags(event, flags); }

template <class T> struct basalt_channel;
#define BASALT_CHANNEL(t, x, y, z, w, kind) \
	template <> struct basalt_channel<t> { \
		static cudaChannelFormatDesc desc() { return {x, y, z, w, kind}; } \
	};
BASALT_CHANNEL(char, 8, 0, 0, 0, cudaChannelFormatKindSigned)
BASALT_CHANNEL(unsigned char, 8, 0, 0, 0, cudaChannelFormatKindUnsigned)
BASALT_CHANNEL(short, 16, 0, 0, 0, cudaChannelFormatKindSigned)
BASALT_CHANNEL(unsigned short, 16, 0, 0, 0, cudaChannelFormatKindUnsigned)
BASALT_CHANNEL(int, 32, 0, 0, 0, cudaChannelFormatKindSigned)
BASALT_CHANNEL(unsigned int, 32, 0, 0, 0, cudaChannelFormatKindUnsigned)
BASALT_CHANNEL(float, 32, 0, 0, 0, cudaChannelFormatKindFloat)
BASALT_CHANNEL(float2, 32, 32, 0, 0, cudaChannelFormatKindFloat)
BASALT_CHANNEL(float4, 32, 32, 32, 32, cudaChannelFormatKindFloat)
BASALT_CHANNEL(int2, 32, 32, 0, 0, cudaChannelFormatKindSigned)
BASALT_CHANNEL(int4, 32, 32, 32, 32, cudaChannelFormatKindSigned)
BASALT_CHANNEL(uchar4, 8, 8, 8, 8, cudaChannelFormatKindUnsigned)
template <class T> static inline cudaChannelFormatDesc cudaCreateChannelDesc() { return basalt_channel<T>::desc(); }

#endif

#ifdef __cplusplus
static inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return cudaExtent{w, h, d}; }
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return cudaPos{x, y, z}; }
static inline cudaPitchedPtr make_cudaPitchedPtr(void *p, size_t pitch, size_t xsize, size_t ysize)
{
	return cudaPitchedPtr{p, pitch, xsize, ysize};
}
#endif

#endif
