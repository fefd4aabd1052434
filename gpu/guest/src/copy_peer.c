/* Copies between contexts. There is one device, so a copy within one context is an ordinary
 * copy. The work of one context cannot access the memory of another, so a copy between two
 * contexts goes through the program's memory, and is done when the call returns. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"

/* Maximum bytes of one part of a copy between two contexts. */
#define THROUGH_LIMIT (8u << 20)

int copy_3d(const CUDA_MEMCPY3D *c, CUstream h, bool wait);

_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D), "a context stands where the other has a reserved member");

/* Finds the context of a side; it is 0 for host memory, which belongs to none. */
static int side_context(unsigned int type, CUcontext h, uint64_t *context)
{
	struct context *c;

	*context = 0;
	if (type == CU_MEMORYTYPE_HOST)
		return 0;
	if (!(c = context_get(h)))
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = c->o.id;
	object_put(c);
	return 0;
}

/* Creates a stream in a context that does not wait for other work there. */
static int stream_in(uint64_t context, CUstream *h)
{
	int err;

	TRY(current_push(context));
	err = cuStreamCreateWithPriority(h, CU_STREAM_NON_BLOCKING, 0);
	current_leave(context);
	return err;
}

static int copy_now(const CUDA_MEMCPY3D *c, CUstream h)
{
	TRY(copy_3d(c, h, false));
	return stream_wait(h);
}

/* Makes one part of a copy: out of one context, and into the other. */
static int copy_through(const CUDA_MEMCPY3D *part, CUstream from, CUstream to, void *bytes)
{
	CUDA_MEMCPY3D out = *part, in = *part;

	out.dstMemoryType = in.srcMemoryType = CU_MEMORYTYPE_HOST;
	out.dstHost = bytes;
	in.srcHost = bytes;
	out.dstXInBytes = out.dstY = out.dstZ = in.srcXInBytes = in.srcY = in.srcZ = 0;
	out.dstPitch = in.srcPitch = part->WidthInBytes;
	out.dstHeight = in.srcHeight = part->Height;
	TRY(copy_now(&out, from));
	return copy_now(&in, to);
}

/* Makes a copy in parts of whole rows, as many as fit, or in parts of one row. */
static int in_parts(const CUDA_MEMCPY3D *c, CUstream from, CUstream to, void *bytes, size_t width, size_t rows)
{
	CUDA_MEMCPY3D part = *c;

	part.Depth = 1;
	for (size_t z = 0; z < c->Depth; z++) {
		for (size_t y = 0; y < c->Height; y += rows) {
			for (size_t x = 0; x < c->WidthInBytes; x += width) {
				part.srcZ = c->srcZ + z, part.dstZ = c->dstZ + z;
				part.srcY = c->srcY + y, part.dstY = c->dstY + y;
				part.srcXInBytes = c->srcXInBytes + x, part.dstXInBytes = c->dstXInBytes + x;
				part.WidthInBytes = c->WidthInBytes - x < width ? c->WidthInBytes - x : width;
				part.Height = c->Height - y < rows ? c->Height - y : rows;
				TRY(copy_through(&part, from, to, bytes));
			}
		}
	}
	return 0;
}

static int between(CUDA_MEMCPY3D c, uint64_t src, uint64_t dst)
{
	size_t width = c.WidthInBytes < THROUGH_LIMIT ? c.WidthInBytes : THROUGH_LIMIT, rows = width ? THROUGH_LIMIT / width : 1;
	CUstream from, to;
	void *bytes;
	int err;

	if (!c.WidthInBytes || !c.Height || !c.Depth)
		return 0;
	rows = rows < c.Height ? rows : c.Height;
	c.srcPitch = c.srcPitch ? c.srcPitch : c.WidthInBytes, c.dstPitch = c.dstPitch ? c.dstPitch : c.WidthInBytes;
	c.srcHeight = c.srcHeight ? c.srcHeight : c.Height, c.dstHeight = c.dstHeight ? c.dstHeight : c.Height;
	if (!(bytes = malloc(width * rows)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = stream_in(src, &from)) == 0) {
		if ((err = stream_in(dst, &to)) == 0) {
			err = in_parts(&c, from, to, bytes, width, rows);
			(void)cuStreamDestroy_v2(to);
		}
		(void)cuStreamDestroy_v2(from);
	}
	free(bytes);
	return err;
}

/* Copies between two contexts, in the order of h. With wait, the copy is also ordered with all
 * work of both contexts. */
static int copy_peer(const CUDA_MEMCPY3D *c, uint64_t src, uint64_t dst, CUstream h, bool wait)
{
	uint64_t stream, context;

	if (capturing() && wait)
		TRY(capture_refuse(h));
	TRY(stream_resolve(h, &stream, &context));
	src = src ? src : dst ? dst : context;
	dst = dst ? dst : src;
	if (wait) {
		TRY(cuCtxSynchronize_v2(handle_of(src)));
		if (dst != src)
			TRY(cuCtxSynchronize_v2(handle_of(dst)));
	}
	if (src == dst && src == context) {
		TRY(copy_3d(c, h, false));
		return wait ? stream_wait(h) : 0;
	}
	if (capturing())
		TRY(capture_refuse(h));
	TRY(stream_wait(h));
	return between(*c, src, dst);
}

static int copy_bytes(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t n, CUstream h, bool wait)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = src, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = dst,
			   .WidthInBytes = n, .Height = 1, .Depth = 1};
	uint64_t from, to;

	SESSION(s);
	(void)s;
	TRY(side_context(c.srcMemoryType, src_context, &from));
	TRY(side_context(c.dstMemoryType, dst_context, &to));
	return copy_peer(&c, from, to, h, wait);
}

static int copy_box(const CUDA_MEMCPY3D_PEER *p, CUstream h, bool wait)
{
	CUDA_MEMCPY3D c;
	uint64_t from, to;

	SESSION(s);
	(void)s;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&c, p, sizeof c);
	c.reserved0 = c.reserved1 = NULL;
	TRY(side_context(c.srcMemoryType, p->srcContext, &from));
	TRY(side_context(c.dstMemoryType, p->dstContext, &to));
	return copy_peer(&c, from, to, h, wait);
}

CUDA_API CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount)
{
	return copy_bytes(dstDevice, dstContext, srcDevice, srcContext, ByteCount, NULL, true);
}

CUDA_API CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount)
{
	return copy_bytes(dstDevice, dstContext, srcDevice, srcContext, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
				    CUstream hStream)
{
	return copy_bytes(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, false);
}

CUDA_API CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy_box(pCopy, NULL, true);
}

CUDA_API CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy_box(pCopy, CU_STREAM_PER_THREAD, true);
}

CUDA_API CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return copy_box(pCopy, hStream, false);
}
