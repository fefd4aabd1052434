/* Copies from and to arrays. The worker copies between arrays and device memory. Copies
 * with the program's memory go through temporary device memory. */
#include <string.h>

#include "capture.h"

/* Maximum size of the temporary memory, if one row fits into it. */
#define THROUGH_LIMIT (8u << 20)

/* Reports whether a box is inside an array. The worker checks that too, but its error would
 * be returned by a later call. */
static bool box_inside(const struct array *o, const uint64_t at[3], const uint64_t size[3])
{
	const uint64_t most[3] = {o->desc.Width * o->desc.NumChannels * channel_bytes(o->desc.Format), o->desc.Height ? o->desc.Height : 1,
				  o->desc.Depth ? o->desc.Depth : 1};

	for (int i = 0; i < 3; i++)
		if (at[i] > most[i] || size[i] > most[i] - at[i])
			return false;
	return true;
}

/* Finds the array of a side of a copy. Returns an error if it is not in the stream's context,
 * or if the box is not inside it. */
static int array_side(const void *h, uint64_t context, const uint64_t at[3], const uint64_t size[3], uint64_t *wire, uint32_t *level)
{
	struct array *o = object_get(h, KIND_ARRAY);
	int err = 0;

	if (!o)
		return CUDA_ERROR_INVALID_HANDLE;
	if (o->o.context != context)
		err = CUDA_ERROR_INVALID_CONTEXT;
	else if (!box_inside(o, at, size))
		err = CUDA_ERROR_INVALID_VALUE;
	*wire = o->wire;
	*level = o->level;
	object_put(o);
	return err;
}

static int enqueue(CUstream h, struct bslt_array_copy *a)
{
	uint64_t context;

	SESSION(s);
	TRY(stream_resolve(h, &a->stream, &context));
	return stream_put(s, a->stream, BSLT_OP_ARRAY_COPY, 0, BSLT_NO_SLOT, a, sizeof *a, NULL, 0);
}

/* A side of a copy that is in memory: its address and pitch, and the rows of a slice. */
struct flat {
	struct side side;
	size_t rows;
	bool to_array; /* the memory is the source */
};

static int flat_side(const CUDA_MEMCPY3D *c, bool dst, struct flat *f)
{
	size_t pitch = dst ? c->dstPitch : c->srcPitch, rows = dst ? c->dstHeight : c->srcHeight;

	pitch = pitch ? pitch : c->WidthInBytes;
	f->rows = rows && c->Depth > 1 ? rows : c->Height;
	f->to_array = !dst;
	if (dst)
		return copy_side(&f->side, c->dstMemoryType, c->dstHost, c->dstDevice,
				 (c->dstZ * f->rows + c->dstY) * pitch + c->dstXInBytes, pitch);
	return copy_side(&f->side, c->srcMemoryType, c->srcHost, c->srcDevice, (c->srcZ * f->rows + c->srcY) * pitch + c->srcXInBytes,
			 pitch);
}

static int with_device(CUstream h, struct bslt_array_copy *a, const struct flat *f)
{
	uint64_t span = ((a->size[2] - 1) * f->rows + a->size[1] - 1) * f->side.pitch + a->size[0];

	if (a->size[0] > f->side.pitch || !device_range(f->side.address, span))
		return CUDA_ERROR_INVALID_VALUE;
	a->pitch = f->side.pitch;
	a->rows = f->rows;
	*(f->to_array ? &a->src : &a->dst) = f->side.address;
	return enqueue(h, a);
}

/* Makes one part of a copy with the program's memory. The part fits into tmp. */
static int copy_through(CUstream h, struct bslt_array_copy *a, const struct flat *f, CUdeviceptr tmp, bool wait)
{
	size_t slice = a->size[0] * a->size[1];

	a->pitch = a->size[0];
	a->rows = a->size[1];
	*(f->to_array ? &a->src : &a->dst) = tmp;
	if (!f->to_array)
		TRY(enqueue(h, a));
	for (uint64_t z = 0; z < a->size[2]; z++) {
		struct side here = {tmp + z * slice, a->size[0], false};
		struct side there = f->side;

		there.address += z * f->rows * there.pitch;
		TRY(copy_rows(h, f->to_array ? here : there, f->to_array ? there : here, a->size[0], a->size[1], wait));
	}
	return f->to_array ? enqueue(h, a) : 0;
}

/* Makes a copy at once, or slice by slice in parts of as many rows as fit into tmp. */
static int in_parts(CUstream h, const struct bslt_array_copy *whole, const struct flat *f, CUdeviceptr tmp, uint64_t rows, bool wait)
{
	struct bslt_array_copy a = *whole;
	struct flat part = *f;

	if (rows == whole->size[1] * whole->size[2])
		return copy_through(h, &a, f, tmp, wait);
	for (uint64_t z = 0; z < whole->size[2]; z++) {
		for (uint64_t y = 0; y < whole->size[1]; y += rows) {
			a = *whole;
			a.size[1] = whole->size[1] - y < rows ? whole->size[1] - y : rows;
			a.size[2] = 1;
			(f->to_array ? a.dst_at : a.src_at)[1] += y;
			(f->to_array ? a.dst_at : a.src_at)[2] += z;
			part.side.address = f->side.address + (z * f->rows + y) * f->side.pitch;
			TRY(copy_through(h, &a, &part, tmp, wait));
		}
	}
	return 0;
}

static int with_host(CUstream h, const struct bslt_array_copy *a, const struct flat *f, uint64_t context, bool wait)
{
	uint64_t rows = a->size[1] * a->size[2];
	CUdeviceptr tmp;
	int err, freed;

	SESSION(s);
	if (a->size[0] > f->side.pitch)
		return CUDA_ERROR_INVALID_VALUE;
	if (rows > 1 && rows > THROUGH_LIMIT / a->size[0]) {
		rows = a->size[0] < THROUGH_LIMIT ? THROUGH_LIMIT / a->size[0] : 1;
		rows = rows < a->size[1] ? rows : a->size[1];
	}
	TRY(device_allocate(s, context, 0, a->size[0] * rows, &tmp));
	err = in_parts(h, a, f, tmp, rows, wait);
	freed = cuMemFreeAsync(tmp, h);
	return err ? err : freed;
}

int copy_array(const CUDA_MEMCPY3D *c, CUstream h, bool wait)
{
	bool dst = c->dstMemoryType == CU_MEMORYTYPE_ARRAY, src = c->srcMemoryType == CU_MEMORYTYPE_ARRAY;
	struct bslt_array_copy a = {.size = {c->WidthInBytes, c->Height, c->Depth}, .arrays = (dst ? 1u : 0) | (src ? 2u : 0)};
	const uint64_t to[3] = {c->dstXInBytes, c->dstY, c->dstZ}, from[3] = {c->srcXInBytes, c->srcY, c->srcZ};
	uint64_t context;
	struct flat f;

	TRY(stream_resolve(h, &a.stream, &context));
	if (dst) {
		memcpy(a.dst_at, to, sizeof to);
		TRY(array_side(c->dstArray, context, to, a.size, &a.dst, &a.dst_level));
	}
	if (src) {
		memcpy(a.src_at, from, sizeof from);
		TRY(array_side(c->srcArray, context, from, a.size, &a.src, &a.src_level));
	}
	if (a.size[0] == 0 || a.size[1] == 0 || a.size[2] == 0)
		return 0;
	if (dst && src)
		return enqueue(h, &a);
	TRY(flat_side(c, src, &f));
	return f.side.host ? with_host(h, &a, &f, context, wait) : with_device(h, &a, &f);
}

/* Copies n bytes of one row; c has the source and the destination. */
static int copy_bytes(CUDA_MEMCPY3D c, size_t n, CUstream h, bool wait)
{
	c.WidthInBytes = n;
	c.Height = c.Depth = 1;
	if (capturing())
		TRY(capture_refuse(h));
	return copy_array(&c, h, wait);
}

static int to_array(CUarray dst, size_t at, unsigned int type, const void *host, CUdeviceptr dev, size_t n, CUstream h, bool wait)
{
	CUDA_MEMCPY3D c = {.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = dst, .dstXInBytes = at,
			   .srcMemoryType = type, .srcHost = host, .srcDevice = dev};

	return copy_bytes(c, n, h, wait);
}

static int from_array(unsigned int type, void *host, CUdeviceptr dev, CUarray src, size_t at, size_t n, CUstream h, bool wait)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = src, .srcXInBytes = at,
			   .dstMemoryType = type, .dstHost = host, .dstDevice = dev};

	return copy_bytes(c, n, h, wait);
}

static int between(CUarray dst, size_t to, CUarray src, size_t from, size_t n, CUstream h)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = src, .srcXInBytes = from,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = dst, .dstXInBytes = to};

	return copy_bytes(c, n, h, true);
}

CUDA_API CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return between(dstArray, dstOffset, srcArray, srcOffset, ByteCount, NULL);
}

CUDA_API CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return from_array(CU_MEMORYTYPE_DEVICE, NULL, dstDevice, srcArray, srcOffset, ByteCount, NULL, true);
}

CUDA_API CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
	return to_array(dstArray, dstOffset, CU_MEMORYTYPE_DEVICE, NULL, srcDevice, ByteCount, NULL, true);
}

CUDA_API CUresult cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return from_array(CU_MEMORYTYPE_HOST, dstHost, 0, srcArray, srcOffset, ByteCount, NULL, true);
}

CUDA_API CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
	return to_array(dstArray, dstOffset, CU_MEMORYTYPE_HOST, srcHost, 0, ByteCount, NULL, true);
}

CUDA_API CUresult cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
	return from_array(CU_MEMORYTYPE_HOST, dstHost, 0, srcArray, srcOffset, ByteCount, hStream, false);
}

CUDA_API CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return to_array(dstArray, dstOffset, CU_MEMORYTYPE_HOST, srcHost, 0, ByteCount, hStream, false);
}

CUDA_API CUresult cuMemcpyAtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return between(dstArray, dstOffset, srcArray, srcOffset, ByteCount, CU_STREAM_PER_THREAD);
}

CUDA_API CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return from_array(CU_MEMORYTYPE_DEVICE, NULL, dstDevice, srcArray, srcOffset, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpyDtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
	return to_array(dstArray, dstOffset, CU_MEMORYTYPE_DEVICE, NULL, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpyAtoH_v2_ptds(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return from_array(CU_MEMORYTYPE_HOST, dstHost, 0, srcArray, srcOffset, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpyHtoA_v2_ptds(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
	return to_array(dstArray, dstOffset, CU_MEMORYTYPE_HOST, srcHost, 0, ByteCount, CU_STREAM_PER_THREAD, true);
}
