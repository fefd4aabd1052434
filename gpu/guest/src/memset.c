#include "capture.h"

static int captured(CUstream h, CUdeviceptr dst, size_t pitch, uint32_t value, uint32_t width, size_t columns, size_t rows, bool *done)
{
	CUDA_MEMSET_NODE_PARAMS m = {dst, pitch, value, width, columns, rows};

	return capture_memset(h, &m, done);
}


int memset_device(CUstream h, CUdeviceptr dst, uint32_t value, uint32_t width, uint64_t count)
{
	struct bslt_memset a = {.dst = dst, .count = count, .value = value, .width = width};
	uint64_t context;

	SESSION(s);
	if (capturing() && count) {
		bool done = false;

		TRY(captured(h, dst, count * width, value, width, count, 1, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(h, &a.stream, &context));
	if (count == 0)
		return 0;
	if (dst % width || count > UINT64_MAX / width || !device_range(dst, count * width))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_put(s, a.stream, BSLT_OP_MEMSET, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

int memset_rect(CUstream h, CUdeviceptr dst, size_t pitch, uint32_t value, uint32_t width, size_t columns, size_t rows)
{
	if (columns == 0 || rows == 0)
		return 0;
	if (rows > 1 && (columns > SIZE_MAX / width || pitch < columns * width))
		return CUDA_ERROR_INVALID_VALUE;
	if (pitch == columns * width)
		return memset_device(h, dst, value, width, (uint64_t)columns * rows);
	if (capturing()) {
		bool done = false;

		TRY(captured(h, dst, pitch, value, width, columns, rows, &done));
		if (done)
			return 0;
	}
	for (size_t y = 0; y < rows; y++)
		TRY(memset_device(h, dst + y * pitch, value, width, columns));
	return 0;
}

CUDA_API CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return settle(NULL, dstDevice, 1, memset_device(NULL, dstDevice, uc, 1, N));
}

CUDA_API CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return settle(NULL, dstDevice, 1, memset_device(NULL, dstDevice, us, 2, N));
}

CUDA_API CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return settle(NULL, dstDevice, 1, memset_device(NULL, dstDevice, ui, 4, N));
}

CUDA_API CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return memset_device(hStream, dstDevice, uc, 1, N);
}

CUDA_API CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return memset_device(hStream, dstDevice, us, 2, N);
}

CUDA_API CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return memset_device(hStream, dstDevice, ui, 4, N);
}

CUDA_API CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
	return settle(NULL, dstDevice, 1, memset_rect(NULL, dstDevice, dstPitch, uc, 1, Width, Height));
}

CUDA_API CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
	return settle(NULL, dstDevice, 1, memset_rect(NULL, dstDevice, dstPitch, us, 2, Width, Height));
}

CUDA_API CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
	return settle(NULL, dstDevice, 1, memset_rect(NULL, dstDevice, dstPitch, ui, 4, Width, Height));
}

CUDA_API CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
				    CUstream hStream)
{
	return memset_rect(hStream, dstDevice, dstPitch, uc, 1, Width, Height);
}

CUDA_API CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
				     size_t Height, CUstream hStream)
{
	return memset_rect(hStream, dstDevice, dstPitch, us, 2, Width, Height);
}

CUDA_API CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
				     CUstream hStream)
{
	return memset_rect(hStream, dstDevice, dstPitch, ui, 4, Width, Height);
}
