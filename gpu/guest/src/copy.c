/* Copies. The data of small copies is part of the command. Others go through the arena in
 * several concurrent pieces. Pinned memory is copied in place. */
#include <string.h>

#include "capture.h"

#define PIECE (1u << 20)
#define WINDOW 4 /* maximum number of concurrent pieces of a copy to the host */
/* As in CUDA, a copy up to this size to the device may return before it is done. */
#define NO_WAIT_UP_TO (64u << 10)

/* Reports whether n bytes from p on contain device addresses, so that they cannot be memory
 * of the program. */
static bool is_device_address(const void *p, size_t n)
{
	return in_window((uintptr_t)p, n) && !host_range((uintptr_t)p, n);
}

/* Reports whether a synchronous call has to wait for its work on n bytes from address on. */
static bool must_wait(uint64_t address, uint64_t n)
{
	return host_range(address, n) || range_synced(address);
}

int settle(CUstream h, uint64_t address, uint64_t n, int err)
{
	return err || !must_wait(address, n) ? err : stream_wait(h);
}

/* Finds the region, and the offset in it, of host memory that has its own region. */
static bool pinned(const void *p, size_t n, uint32_t *region, uint64_t *off)
{
	struct range r;
	uint64_t a = (uintptr_t)p;

	if (!range_find(SPACE_HOST, a, &r) || !r.region.base || n > r.size - (a - r.address))
		return false;
	*region = r.region.number;
	*off = a - r.address;
	return true;
}

int stream_wait(CUstream h)
{
	struct bslt_stream_synchronize a;
	uint64_t context, at;

	SESSION(s);
	if (capturing())
		TRY(capture_refuse(h));
	TRY(stream_resolve(h, &a.stream, &context));
	at = work_count(s);
	TRY(call(s, BSLT_OP_STREAM_SYNCHRONIZE, &a, sizeof a).result);
	stream_drained(s, a.stream, at);
	return 0;
}

/* Enqueues a command in a stream, and waits for its completion if wait is set. */
static int enqueue(struct session *s, uint64_t stream, uint16_t op, uint16_t flags, const void *args, uint32_t args_len, const void *inl,
		   uint32_t inl_len, bool wait)
{
	uint32_t slot = BSLT_NO_SLOT;
	int err;

	if (wait)
		TRY(slot_take(s, &slot));
	if ((err = stream_put(s, stream, op, flags, slot, args, args_len, inl, inl_len)) != 0) {
		if (wait)
			slot_give(s, slot);
		return err;
	}
	return wait ? slot_wait(s, slot).result : 0;
}

/* Copies without the arena: the data is part of the commands. */
static int enqueue_inline(struct session *s, uint64_t stream, uint64_t dst, const char *src, size_t n, bool wait)
{
	for (size_t at = 0; at < n; at += BSLT_MAX_INLINE) {
		struct bslt_copy_htod_inline i = {stream, dst + at};
		size_t left = n - at, len = left < BSLT_MAX_INLINE ? left : BSLT_MAX_INLINE;

		TRY(enqueue(s, stream, BSLT_OP_COPY_HTOD_INLINE, 0, &i, sizeof i, src + at, (uint32_t)len, wait && len == left));
	}
	return 0;
}

int copy_stage(struct session *s, uint64_t stream, uint64_t dst, const void *src, size_t n, bool wait, size_t *staged)
{
	struct bslt_copy_htod a = {.stream = stream, .dst = dst};
	size_t want = n < PIECE ? n : PIECE;
	struct piece p;
	int err;

	TRY(stream_enter(s, stream, arena_units(s, want)));
	if ((err = arena_take(s, want, &p)) == RES_NOT_READY) {
		*staged = want;
		return enqueue_inline(s, stream, dst, src, want, wait && want == n);
	}
	TRY(err);
	memcpy(p.bytes, src, p.len);
	a.src_off = p.off;
	*staged = a.src_len = p.len;
	/* The worker frees the chunks. If the session has ended, they are not needed. */
	return enqueue(s, stream, BSLT_OP_COPY_HTOD, BSLT_FLAG_RELEASE_CHUNKS, &a, sizeof a, NULL, 0, wait && p.len == n);
}

int copy_to_device(CUstream h, CUdeviceptr dst, const void *src, size_t n, bool wait)
{
	struct bslt_copy_htod a = {.dst = dst};
	uint64_t context;
	uint32_t region;
	uint64_t off, at;

	SESSION(s);
	if (capturing()) {
		bool done = false;

		TRY(capture_copy_bytes(h, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST, (uintptr_t)src, n, wait, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(h, &a.stream, &context));
	if (n == 0)
		return 0;
	if (!src || is_device_address(src, n) || !device_range(dst, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (n <= BSLT_MAX_INLINE) {
		struct bslt_copy_htod_inline i = {a.stream, dst};

		return enqueue(s, a.stream, BSLT_OP_COPY_HTOD_INLINE, 0, &i, sizeof i, src, (uint32_t)n, wait && must_wait(dst, n));
	}
	if (pinned(src, n, &region, &off)) {
		a.src_off = off;
		a.src_len = n;
		a.src_region = region;
		return enqueue(s, a.stream, BSLT_OP_COPY_HTOD, 0, &a, sizeof a, NULL, 0, wait);
	}
	/* As in CUDA, earlier work of the stream is done when the call returns, but the copy
	 * itself may not be: its bytes are in the arena. */
	wait = wait && ((n > NO_WAIT_UP_TO && !stream_quiet(s, a.stream)) || must_wait(dst, n));
	at = work_count(s);
	while (n) {
		size_t staged;

		TRY(copy_stage(s, a.stream, a.dst, src, n, wait, &staged));
		src = (const char *)src + staged;
		a.dst += staged;
		n -= staged;
	}
	if (wait)
		stream_drained(s, a.stream, at);
	return 0;
}

struct flight {
	struct piece p;
	uint32_t slot;
	char *dst;
};

/* Waits for one piece and copies it out of the arena. */
static int finish_piece(struct session *s, struct flight *f)
{
	int err = slot_wait(s, f->slot).result;

	if (err == 0)
		memcpy(f->dst, f->p.bytes, f->p.len);
	piece_put(s, &f->p);
	return err;
}

int copy_from_device(CUstream h, void *dst, CUdeviceptr src, size_t n, bool wait)
{
	struct bslt_copy_dtoh a = {.src = src};
	struct flight f[WINDOW];
	unsigned int first = 0, flying = 0;
	uint64_t context, off, at;
	size_t want;
	uint32_t region;
	char *to = dst;
	int err = 0;

	SESSION(s);
	if (capturing()) {
		bool done = false;

		TRY(capture_copy_bytes(h, CU_MEMORYTYPE_HOST, (uintptr_t)dst, CU_MEMORYTYPE_DEVICE, src, n, wait, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(h, &a.stream, &context));
	if (n == 0)
		return 0;
	if (!dst || is_device_address(dst, n) || !device_range(src, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (pinned(dst, n, &region, &off)) {
		a.dst_off = off;
		a.dst_len = n;
		a.dst_region = region;
		return enqueue(s, a.stream, BSLT_OP_COPY_DTOH, 0, &a, sizeof a, NULL, 0, wait);
	}
	/* Uses several pieces, so that the worker fills one while this thread empties another. */
	want = page_up(n / WINDOW);
	want = want < s->chunk_size ? s->chunk_size : want > PIECE ? PIECE : want;
	at = work_count(s);
	while ((n && !err) || flying) {
		struct flight *next = &f[(first + flying) % WINDOW];

		/* A thread that holds chunks must not wait for more: two of them could deadlock. */
		if (n && !err && flying < WINDOW &&
		    (flying ? arena_try(s, n < want ? n : want, &next->p) : (err = piece_get_some(s, n < want ? n : want, &next->p)) == 0)) {
			next->dst = to;
			a.dst_off = next->p.off;
			a.dst_len = next->p.len;
			a.dst_region = next->p.number;
			if ((err = slot_take(s, &next->slot)) == 0 &&
			    (err = stream_put(s, a.stream, BSLT_OP_COPY_DTOH, 0, next->slot, &a, sizeof a, NULL, 0)) == 0) {
				flying++;
				to += next->p.len;
				a.src += next->p.len;
				n -= next->p.len;
			} else {
				piece_put(s, &next->p);
			}
			continue;
		}
		if (flying) {
			int e = finish_piece(s, &f[first]);

			err = err ? err : e;
			first = (first + 1) % WINDOW;
			flying--;
		}
	}
	if (err == 0)
		stream_drained(s, a.stream, at);
	return err;
}

int copy_on_device(CUstream h, CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	struct bslt_copy_dtod a = {.dst = dst, .src = src, .size = n};
	uint64_t context;

	SESSION(s);
	if (capturing()) {
		bool done = false;

		TRY(capture_copy_bytes(h, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, n, false, &done));
		if (done)
			return 0;
	}
	TRY(stream_resolve(h, &a.stream, &context));
	if (n == 0)
		return 0;
	if (!device_range(dst, n) || !device_range(src, n))
		return CUDA_ERROR_INVALID_VALUE;
	return enqueue(s, a.stream, BSLT_OP_COPY_DTOD, 0, &a, sizeof a, NULL, 0, false);
}

static bool on_device(uint64_t address)
{
	struct range r;

	return range_find(SPACE_DEVICE, address, &r);
}

int copy_any(CUstream h, uint64_t dst, uint64_t src, size_t n, bool wait)
{
	bool to = on_device(dst), from = on_device(src);

	if ((to && from) || (host_range(dst, n) && host_range(src, n))) {
		int err = copy_on_device(h, dst, src, n);

		return wait ? settle(h, range_synced(src) ? src : dst, n, err) : err;
	}
	if (to)
		return copy_to_device(h, dst, (const void *)(uintptr_t)src, n, wait);
	if (from)
		return copy_from_device(h, (void *)(uintptr_t)dst, src, n, wait);
	if (n && (!dst || !src || is_device_address((void *)(uintptr_t)dst, n) || is_device_address((void *)(uintptr_t)src, n)))
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing()) {
		bool done = false;

		TRY(capture_copy_bytes(h, CU_MEMORYTYPE_HOST, dst, CU_MEMORYTYPE_HOST, src, n, wait, &done));
		if (done)
			return 0;
	}
	TRY(stream_wait(h)); /* from host to host, in the order of the stream */
	memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, n);
	return 0;
}

CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return output_after(NULL, copy_to_device(NULL, dstDevice, srcHost, ByteCount, true));
}

CUDA_API CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return output_after(NULL, copy_from_device(NULL, dstHost, srcDevice, ByteCount, true));
}

CUDA_API CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return settle(NULL, range_synced(srcDevice) ? srcDevice : dstDevice, ByteCount, copy_on_device(NULL, dstDevice, srcDevice, ByteCount));
}

CUDA_API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return output_after(NULL, copy_any(NULL, dst, src, ByteCount, true));
}

CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_to_device(hStream, dstDevice, srcHost, ByteCount, false);
}

CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_from_device(hStream, dstHost, srcDevice, ByteCount, false);
}

CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_on_device(hStream, dstDevice, srcDevice, ByteCount);
}

CUDA_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy_any(hStream, dst, src, ByteCount, false);
}
