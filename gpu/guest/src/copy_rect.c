/* Copies of rectangles and boxes, row by row. copy_array.c makes those with arrays. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"

/* Rows on the device are read at once if the bytes including the gaps do not exceed this. */
#define GATHER_LIMIT (64u << 20)

struct rect {
	struct side dst, src;
	size_t width, height;
};

int copy_side(struct side *out, unsigned int type, const void *host, CUdeviceptr dev, uint64_t offset, size_t pitch)
{
	struct range r;

	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*out = (struct side){(uintptr_t)host, pitch, true};
		break;
	case CU_MEMORYTYPE_DEVICE:
		*out = (struct side){dev, pitch, false};
		break;
	case CU_MEMORYTYPE_UNIFIED:
		*out = (struct side){dev, pitch, !range_find(SPACE_DEVICE, dev, &r)};
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (out->address == 0)
		return CUDA_ERROR_INVALID_VALUE;
	out->address += offset;
	return 0;
}

static int copy_any_on_device(CUstream h, uint64_t dst, uint64_t src, size_t n, bool wait)
{
	int err = copy_on_device(h, dst, src, n);

	return wait ? settle(h, range_synced(src) ? src : dst, n, err) : err;
}

static int copy_row(CUstream h, const struct side *dst, const struct side *src, size_t n, bool wait)
{
	if (!dst->host && !src->host)
		return copy_any_on_device(h, dst->address, src->address, n, wait);
	if (!dst->host)
		return copy_to_device(h, dst->address, (const void *)(uintptr_t)src->address, n, wait);
	if (!src->host)
		return copy_from_device(h, (void *)(uintptr_t)dst->address, src->address, n, wait);
	return copy_any(h, dst->address, src->address, n, wait);
}

/* Copies rows from the device to the host: reads all at once, and then copies the rows from
 * the buffer. */
static int gather(CUstream h, const struct rect *r)
{
	size_t span = r->src.pitch * (r->height - 1) + r->width;
	char *b = malloc(span);
	int err;

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = copy_from_device(h, b, r->src.address, span, true)) == 0)
		for (size_t y = 0; y < r->height; y++)
			memcpy((char *)(uintptr_t)r->dst.address + y * r->dst.pitch, b + y * r->src.pitch, r->width);
	free(b);
	return err;
}

static int copy_rect(CUstream h, struct rect r, bool wait)
{
	if (r.width == 0 || r.height == 0)
		return 0;
	if (r.height == 1)
		return copy_row(h, &r.dst, &r.src, r.width, wait);
	if (r.dst.pitch < r.width || r.src.pitch < r.width)
		return CUDA_ERROR_INVALID_VALUE;
	if (r.dst.pitch == r.width && r.src.pitch == r.width)
		return copy_row(h, &r.dst, &r.src, r.width * r.height, wait);
	if (r.dst.host && !r.src.host && r.src.pitch <= 4 * r.width && r.src.pitch * r.height <= GATHER_LIMIT)
		return gather(h, &r);
	for (size_t y = 0; y < r.height; y++) {
		TRY(copy_row(h, &r.dst, &r.src, r.width, wait && y == r.height - 1));
		r.dst.address += r.dst.pitch;
		r.src.address += r.src.pitch;
	}
	return 0;
}

int copy_rows(CUstream h, struct side dst, struct side src, size_t width, size_t height, bool wait)
{
	return copy_rect(h, (struct rect){dst, src, width, height}, wait);
}

static bool has_array(unsigned int dst, unsigned int src)
{
	return dst == CU_MEMORYTYPE_ARRAY || src == CU_MEMORYTYPE_ARRAY;
}

static CUDA_MEMCPY3D as_box(const CUDA_MEMCPY2D *c)
{
	return (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcMemoryType = c->srcMemoryType, .srcHost = c->srcHost,
			       .srcDevice = c->srcDevice, .srcArray = c->srcArray, .srcPitch = c->srcPitch,
			       .dstXInBytes = c->dstXInBytes, .dstY = c->dstY, .dstMemoryType = c->dstMemoryType, .dstHost = c->dstHost,
			       .dstDevice = c->dstDevice, .dstArray = c->dstArray, .dstPitch = c->dstPitch,
			       .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = 1};
}

int copy_2d(const CUDA_MEMCPY2D *c, CUstream h, bool wait)
{
	struct rect r;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing() && !wait) {
		CUDA_MEMCPY3D box = as_box(c);
		bool done = false;

		TRY(capture_copy(h, &box, &done));
		if (done)
			return 0;
	}
	if (has_array(c->dstMemoryType, c->srcMemoryType)) {
		CUDA_MEMCPY3D box = as_box(c);

		return copy_array(&box, h, wait);
	}
	r.width = c->WidthInBytes;
	r.height = c->Height;
	size_t sp = c->srcPitch ? c->srcPitch : c->WidthInBytes, dp = c->dstPitch ? c->dstPitch : c->WidthInBytes;

	TRY(copy_side(&r.src, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcY * sp + c->srcXInBytes, sp));
	TRY(copy_side(&r.dst, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstY * dp + c->dstXInBytes, dp));
	return copy_rect(h, r, wait);
}

int copy_3d(const CUDA_MEMCPY3D *c, CUstream h, bool wait)
{
	struct rect r;
	uint64_t stream, context;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing() && !wait) {
		bool done = false;

		TRY(capture_copy(h, c, &done));
		if (done)
			return 0;
	}
	if (has_array(c->dstMemoryType, c->srcMemoryType))
		return copy_array(c, h, wait);
	TRY(stream_resolve(h, &stream, &context)); /* errors are returned even if there is nothing to copy */
	size_t sp = c->srcPitch ? c->srcPitch : c->WidthInBytes, dp = c->dstPitch ? c->dstPitch : c->WidthInBytes;
	size_t ss = sp * (c->srcHeight ? c->srcHeight : c->Height), ds = dp * (c->dstHeight ? c->dstHeight : c->Height);

	for (size_t z = 0; z < c->Depth; z++) {
		r.width = c->WidthInBytes;
		r.height = c->Height;
		TRY(copy_side(&r.src, c->srcMemoryType, c->srcHost, c->srcDevice, (c->srcZ + z) * ss + c->srcY * sp + c->srcXInBytes, sp));
		TRY(copy_side(&r.dst, c->dstMemoryType, c->dstHost, c->dstDevice, (c->dstZ + z) * ds + c->dstY * dp + c->dstXInBytes, dp));
		TRY(copy_rect(h, r, wait && z == c->Depth - 1));
	}
	return 0;
}

CUDA_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUDA_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUDA_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy_2d(pCopy, hStream, false);
}

CUDA_API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return copy_3d(pCopy, NULL, true);
}

CUDA_API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy_3d(pCopy, hStream, false);
}
