/* Copies in graphs: the conversion of their descriptions to the form in which they are
 * performed, and the copies that this process performs because the worker cannot access the
 * program's memory. */
#include <string.h>

#include "graph.h"

#define PIECE (1u << 20)

struct end {
	uint64_t address, pitch, slice;
	bool host;
	uint32_t region; /* host: the worker's region that contains it */
};

/* Computes the bytes that a box spans, into *n. Returns false if they exceed 64 bits. */
static bool span(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice, uint64_t *n)
{
	uint64_t rows, layers;

	return !__builtin_mul_overflow(height - 1, pitch, &rows) && !__builtin_mul_overflow(depth - 1, slice, &layers) &&
	       !__builtin_add_overflow(rows, layers, n) && !__builtin_add_overflow(*n, width, n);
}

static int end_of(unsigned int type, const void *host, CUdeviceptr dev, struct end *e)
{
	struct range r;

	switch (type) {
	case CU_MEMORYTYPE_HOST:
		e->address = (uintptr_t)host;
		e->host = true;
		break;
	case CU_MEMORYTYPE_DEVICE:
		e->address = dev;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		e->address = dev;
		e->host = !range_find(SPACE_DEVICE, dev, &r);
		break;
	case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return e->address ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* Moves the end to its first byte, and finds the memory that contains it. */
static int resolve_end(struct end *e, const struct lowered *l, uint64_t x, uint64_t y, uint64_t z)
{
	uint64_t rows, layers, n;
	struct range r;

	if (l->height > 1 && e->pitch < l->width)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(y, e->pitch, &rows) || __builtin_mul_overflow(z, e->slice, &layers) ||
	    __builtin_add_overflow(e->address, rows, &e->address) || __builtin_add_overflow(e->address, layers, &e->address) ||
	    __builtin_add_overflow(e->address, x, &e->address) || !span(l->width, l->height, l->depth, e->pitch, e->slice, &n) ||
	    n > UINT64_MAX - e->address)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e->host)
		return device_range(e->address, n) ? 0 : CUDA_ERROR_INVALID_VALUE;
	if (in_window(e->address, n) && !host_range(e->address, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (range_find(SPACE_HOST, e->address, &r) && r.region.base && n <= r.size - (e->address - r.address))
		e->region = r.region.number;
	return 0;
}

static uint64_t offset(const struct end *e)
{
	struct range r;

	return range_find(SPACE_HOST, e->address, &r) ? e->address - r.address : 0;
}

/* Reports whether a copy has too many rows for a graph. Rows without gaps count as one. */
static bool too_many_rows(const struct lowered *l, const struct end *a, const struct end *b)
{
	bool packed = l->height == 1 || (a->pitch == l->width && b->pitch == l->width);
	uint64_t rows;

	if (packed && a->slice == l->width * l->height && b->slice == a->slice)
		return false;
	return __builtin_mul_overflow(packed ? 1 : l->height, l->depth, &rows) || rows > BSLT_MAX_GRAPH_ROWS;
}

int copy_lower(const CUDA_MEMCPY3D *c, struct lowered *out)
{
	struct end src = {.pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes},
		   dst = {.pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes};

	*out = (struct lowered){.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
	if (!out->width || !out->height || !out->depth)
		return CUDA_ERROR_INVALID_VALUE;
	src.slice = src.pitch * (c->srcHeight ? c->srcHeight : c->Height);
	dst.slice = dst.pitch * (c->dstHeight ? c->dstHeight : c->Height);
	TRY(end_of(c->srcMemoryType, c->srcHost, c->srcDevice, &src));
	TRY(end_of(c->dstMemoryType, c->dstHost, c->dstDevice, &dst));
	TRY(resolve_end(&src, out, c->srcXInBytes, c->srcY, c->srcZ));
	TRY(resolve_end(&dst, out, c->dstXInBytes, c->dstY, c->dstZ));
	if (too_many_rows(out, &src, &dst))
		return CUDA_ERROR_NOT_SUPPORTED;
	out->what = src.host ? BSLT_GRAPH_COPY_HTOD : dst.host ? BSLT_GRAPH_COPY_DTOH : BSLT_GRAPH_COPY_DTOD;
	out->host_to_host = src.host && dst.host;
	out->region = src.host ? src.region : dst.region;
	out->guest = out->host_to_host || ((src.host || dst.host) && !out->region);
	out->dst = dst.host && !out->guest ? offset(&dst) : dst.address;
	out->src = src.host && !out->guest ? offset(&src) : src.address;
	out->dst_pitch = dst.pitch, out->dst_slice = dst.slice;
	out->src_pitch = src.pitch, out->src_slice = src.slice;
	return 0;
}

static int row_to_device(struct session *s, uint64_t stream, uint64_t dst, const char *src, uint64_t n)
{
	while (n) {
		size_t staged;

		TRY(copy_stage(s, stream, dst, src, n, false, &staged));
		src += staged;
		dst += staged;
		n -= staged;
	}
	return 0;
}

static int row_from_device(struct session *s, uint64_t stream, char *dst, uint64_t src, uint64_t n)
{
	struct bslt_copy_dtoh a = {.stream = stream, .src = src};

	while (n) {
		struct piece p;
		int err;

		TRY(piece_get_some(s, n < PIECE ? n : PIECE, &p));
		a.dst_off = p.off;
		a.dst_len = p.len;
		a.dst_region = p.number;
		if ((err = call(s, BSLT_OP_COPY_DTOH, &a, sizeof a).result) == 0)
			memcpy(dst, p.bytes, p.len);
		piece_put(s, &p);
		if (err)
			return err;
		dst += p.len;
		a.src += p.len;
		n -= p.len;
	}
	return 0;
}

int copy_perform(struct session *s, uint64_t stream, const struct lowered *l)
{
	for (uint64_t z = 0; z < l->depth; z++) {
		for (uint64_t y = 0; y < l->height; y++) {
			uint64_t dst = l->dst + z * l->dst_slice + y * l->dst_pitch, src = l->src + z * l->src_slice + y * l->src_pitch;

			if (l->host_to_host)
				memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, l->width);
			else if (l->what == BSLT_GRAPH_COPY_HTOD)
				TRY(row_to_device(s, stream, dst, (const char *)(uintptr_t)src, l->width));
			else
				TRY(row_from_device(s, stream, (char *)(uintptr_t)dst, src, l->width));
		}
	}
	return 0;
}
