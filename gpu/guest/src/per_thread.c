/* The forms of the API for per-thread default streams: a null stream means the
 * calling thread's own. */
#include "state.h"

int copy_2d(const CUDA_MEMCPY2D *c, CUstream h, bool wait);
int copy_3d(const CUDA_MEMCPY3D *c, CUstream h, bool wait);
int memset_rect(CUstream h, CUdeviceptr dst, size_t pitch, uint32_t value, uint32_t width, size_t columns, size_t rows);

#define PT(h) ((h) ? (h) : CU_STREAM_PER_THREAD)

CUDA_API CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t n)
{
	return copy_to_device(CU_STREAM_PER_THREAD, dst, src, n, true);
}

CUDA_API CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t n)
{
	return copy_from_device(CU_STREAM_PER_THREAD, dst, src, n, true);
}

CUDA_API CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return copy_on_device(CU_STREAM_PER_THREAD, dst, src, n);
}

CUDA_API CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return copy_any(CU_STREAM_PER_THREAD, dst, src, n, true);
}

CUDA_API CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t n, CUstream h)
{
	return copy_to_device(PT(h), dst, src, n, false);
}

CUDA_API CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t n, CUstream h)
{
	return copy_from_device(PT(h), dst, src, n, false);
}

CUDA_API CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream h)
{
	return copy_on_device(PT(h), dst, src, n);
}

CUDA_API CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream h)
{
	return copy_any(PT(h), dst, src, n, false);
}

CUDA_API CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *c)
{
	return copy_2d(c, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *c)
{
	return copy_2d(c, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *c, CUstream h)
{
	return copy_2d(c, PT(h), false);
}

CUDA_API CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *c)
{
	return copy_3d(c, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *c, CUstream h)
{
	return copy_3d(c, PT(h), false);
}

CUDA_API CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char v, size_t n)
{
	return memset_device(CU_STREAM_PER_THREAD, dst, v, 1, n);
}

CUDA_API CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short v, size_t n)
{
	return memset_device(CU_STREAM_PER_THREAD, dst, v, 2, n);
}

CUDA_API CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned int v, size_t n)
{
	return memset_device(CU_STREAM_PER_THREAD, dst, v, 4, n);
}

CUDA_API CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char v, size_t n, CUstream h)
{
	return memset_device(PT(h), dst, v, 1, n);
}

CUDA_API CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short v, size_t n, CUstream h)
{
	return memset_device(PT(h), dst, v, 2, n);
}

CUDA_API CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned int v, size_t n, CUstream h)
{
	return memset_device(PT(h), dst, v, 4, n);
}

CUDA_API CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned char v, size_t w, size_t rows)
{
	return memset_rect(CU_STREAM_PER_THREAD, dst, pitch, v, 1, w, rows);
}

CUDA_API CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned short v, size_t w, size_t rows)
{
	return memset_rect(CU_STREAM_PER_THREAD, dst, pitch, v, 2, w, rows);
}

CUDA_API CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned int v, size_t w, size_t rows)
{
	return memset_rect(CU_STREAM_PER_THREAD, dst, pitch, v, 4, w, rows);
}

CUDA_API CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned char v, size_t w, size_t rows, CUstream h)
{
	return memset_rect(PT(h), dst, pitch, v, 1, w, rows);
}

CUDA_API CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned short v, size_t w, size_t rows, CUstream h)
{
	return memset_rect(PT(h), dst, pitch, v, 2, w, rows);
}

CUDA_API CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned int v, size_t w, size_t rows, CUstream h)
{
	return memset_rect(PT(h), dst, pitch, v, 4, w, rows);
}

CUDA_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t n, CUstream h)
{
	return cuMemAllocAsync(dptr, n, PT(h));
}

CUDA_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t n, CUmemoryPool pool, CUstream h)
{
	return cuMemAllocFromPoolAsync(dptr, n, pool, PT(h));
}

CUDA_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream h)
{
	return cuMemFreeAsync(dptr, PT(h));
}

CUDA_API CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				      unsigned int by, unsigned int bz, unsigned int shared, CUstream h, void **params,
				      void **extra)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, PT(h), params, extra);
}

CUDA_API CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
						 unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
						 CUstream h, void **params)
{
	return cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, PT(h), params);
}

CUDA_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	CUlaunchConfig c;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	c = *config;
	c.hStream = PT(c.hStream);
	return cuLaunchKernelEx(&c, f, params, extra);
}

CUDA_API CUresult cuStreamSynchronize_ptsz(CUstream h)
{
	return cuStreamSynchronize(PT(h));
}

CUDA_API CUresult cuStreamQuery_ptsz(CUstream h)
{
	return cuStreamQuery(PT(h));
}

CUDA_API CUresult cuStreamWaitEvent_ptsz(CUstream h, CUevent e, unsigned int flags)
{
	return cuStreamWaitEvent(PT(h), e, flags);
}

CUDA_API CUresult cuStreamGetFlags_ptsz(CUstream h, unsigned int *flags)
{
	return cuStreamGetFlags(PT(h), flags);
}

CUDA_API CUresult cuStreamGetPriority_ptsz(CUstream h, int *priority)
{
	return cuStreamGetPriority(PT(h), priority);
}

CUDA_API CUresult cuStreamGetCtx_ptsz(CUstream h, CUcontext *pctx)
{
	return cuStreamGetCtx(PT(h), pctx);
}

CUDA_API CUresult cuStreamGetId_ptsz(CUstream h, unsigned long long *id)
{
	return cuStreamGetId(PT(h), id);
}

CUDA_API CUresult cuStreamIsCapturing_ptsz(CUstream h, int *status)
{
	return cuStreamIsCapturing(PT(h), status);
}

CUDA_API CUresult cuEventRecord_ptsz(CUevent e, CUstream h)
{
	return cuEventRecord(e, PT(h));
}

CUDA_API CUresult cuEventRecordWithFlags_ptsz(CUevent e, CUstream h, unsigned int flags)
{
	return cuEventRecordWithFlags(e, PT(h), flags);
}

CUDA_API CUresult cuLaunchHostFunc_ptsz(CUstream h, CUhostFn fn, void *data)
{
	return cuLaunchHostFunc(PT(h), fn, data);
}

CUDA_API CUresult cuStreamAddCallback_ptsz(CUstream h, CUstreamCallback callback, void *data, unsigned int flags)
{
	return cuStreamAddCallback(PT(h), callback, data, flags);
}
