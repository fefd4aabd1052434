/* The forms of the API for per-thread default streams: a null stream stands for the calling
 * thread's own. */
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
	return settle(CU_STREAM_PER_THREAD, range_synced(src) ? src : dst, n, copy_on_device(CU_STREAM_PER_THREAD, dst, src, n));
}

CUDA_API CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return copy_any(CU_STREAM_PER_THREAD, dst, src, n, true);
}

CUDA_API CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *c)
{
	return copy_2d(c, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *c)
{
	return copy_2d(c, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *c)
{
	return copy_3d(c, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char v, size_t n)
{
	return settle(CU_STREAM_PER_THREAD, dst, 1, memset_device(CU_STREAM_PER_THREAD, dst, v, 1, n));
}

CUDA_API CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short v, size_t n)
{
	return settle(CU_STREAM_PER_THREAD, dst, 1, memset_device(CU_STREAM_PER_THREAD, dst, v, 2, n));
}

CUDA_API CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned int v, size_t n)
{
	return settle(CU_STREAM_PER_THREAD, dst, 1, memset_device(CU_STREAM_PER_THREAD, dst, v, 4, n));
}

CUDA_API CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned char v, size_t w, size_t rows)
{
	return settle(CU_STREAM_PER_THREAD, dst, 1, memset_rect(CU_STREAM_PER_THREAD, dst, pitch, v, 1, w, rows));
}

CUDA_API CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned short v, size_t w, size_t rows)
{
	return settle(CU_STREAM_PER_THREAD, dst, 1, memset_rect(CU_STREAM_PER_THREAD, dst, pitch, v, 2, w, rows));
}

CUDA_API CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned int v, size_t w, size_t rows)
{
	return settle(CU_STREAM_PER_THREAD, dst, 1, memset_rect(CU_STREAM_PER_THREAD, dst, pitch, v, 4, w, rows));
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
