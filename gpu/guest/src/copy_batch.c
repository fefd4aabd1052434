/* Copies with attributes, and batches of them. A batch is checked as a whole; then each copy
 * is enqueued as if the program had requested it alone. */
#include "batch.h"
#include "log.h"

#define NO_COPY SIZE_MAX /* the error does not belong to one copy */

int copy_3d(const CUDA_MEMCPY3D *c, CUstream h, bool wait);

static bool attributes_valid(int order, unsigned int flags)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
	       !(flags & ~(unsigned int)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
}

/* Reports whether n bytes from address on can be copied: they are in one allocation, or in
 * the program's own memory. */
static bool reachable(CUdeviceptr address, size_t n)
{
	struct range r;

	if (n == 0 || device_range(address, n))
		return true;
	return address && !in_window(address, n) && !range_find(SPACE_DEVICE, address, &r);
}

/* Reports whether a source may still be read after the copy's call has returned. The
 * program's own memory has been staged by then. */
static bool read_later(CUdeviceptr src)
{
	struct range r;

	return range_find(SPACE_DEVICE, src, &r) || range_find(SPACE_HOST, src, &r);
}

/* Ends a call. With all_read it waits until all sources have been read. */
static int finish(CUstream h, bool all_read)
{
	return all_read ? stream_wait(h) : 0;
}

/* A batch of copies of bytes: the arguments of cuMemcpyBatchAsync. */
struct batch {
	const CUdeviceptr *dst, *src;
	const size_t *size;
	size_t count;
	const CUmemcpyAttributes *attributes;
	const size_t *from; /* attributes[i] apply to the copies from from[i] on */
	size_t lists;
};

/* Checks a batch. On an error, *at becomes the index of the invalid copy, or NO_COPY. */
static int batch_check(const struct batch *b, size_t *at)
{
	*at = NO_COPY;
	if (!b->dst || !b->src || !b->size || !b->attributes || !batch_covers(b->from, b->lists, b->count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < b->lists; k++) {
		*at = b->from[k];
		if (!attributes_valid(b->attributes[k].srcAccessOrder, b->attributes[k].flags))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (*at = 0; *at < b->count; ++*at)
		if (!reachable(b->dst[*at], b->size[*at]) || !reachable(b->src[*at], b->size[*at]))
			return CUDA_ERROR_INVALID_VALUE;
	*at = NO_COPY;
	return 0;
}

static int batch_put(const struct batch *b, CUstream h, size_t *at)
{
	bool all_read = false;

	for (size_t i = 0, k = 0; i < b->count; i++) {
		if (k + 1 < b->lists && b->from[k + 1] == i)
			k++;
		*at = i;
		TRY(copy_any(h, b->dst[i], b->src[i], b->size[i], false));
		if (b->attributes[k].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)
			all_read |= read_later(b->src[i]);
	}
	*at = NO_COPY;
	return finish(h, all_read);
}

/* Reports to the program and its log which copy was invalid. */
static int report(const char *api, int err, size_t at, size_t *failed)
{
	if (err && at != NO_COPY)
		log_message(CU_LOG_LEVEL_ERROR, api, "copy %zu of the batch: error %d", at, err);
	if (err && failed)
		*failed = at;
	return err;
}

/* Returns an error if the stream is capturing, because graphs have no nodes for batches, or if
 * it cannot accept work. */
static int may_put(CUstream h)
{
	if (capturing())
		TRY(capture_refuse(h));
	return batch_stream(h);
}

static int copy_batch(const struct batch *b, CUstream h, size_t *failed)
{
	size_t at = NO_COPY;
	int err;

	SESSION(s);
	(void)s;
	if ((err = batch_check(b, &at)) == 0 && (err = may_put(h)) == 0)
		err = batch_put(b, h, &at);
	return report("cuMemcpyBatchAsync", err, at, failed);
}

CUDA_API CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
				     size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	return copy_batch(&(struct batch){dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, hStream, failIdx);
}

CUDA_API CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
					size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	return copy_batch(&(struct batch){dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, hStream, NULL);
}

CUDA_API CUresult cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr, CUstream hStream)
{
	SESSION(s);
	(void)s;
	if (!attr || !attributes_valid(attr->srcAccessOrder, attr->flags) || !reachable(dst, size) || !reachable(src, size))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(copy_any(hStream, dst, src, size, false));
	return finish(hStream, attr->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && read_later(src));
}

/* Returns the size of an element of an operand that is an array, or 0 if it is not one. */
static size_t element_bytes(const CUmemcpy3DOperand *o)
{
	struct array *a = object_get(o->op.array.array, KIND_ARRAY);
	size_t n = a ? a->desc.NumChannels * channel_bytes(a->desc.Format) : 0;

	object_put(a);
	return n;
}

/* Computes the bytes from the first to the last byte of a box in memory. Returns false if the
 * number overflows. */
static bool span(const CUDA_MEMCPY3D *c, size_t pitch, size_t rows, size_t *bytes)
{
	size_t slices;

	return !__builtin_mul_overflow(c->Depth - 1, rows, &slices) && !__builtin_add_overflow(slices, c->Height - 1, &slices) &&
	       !__builtin_mul_overflow(slices, pitch, bytes) && !__builtin_add_overflow(*bytes, c->WidthInBytes, bytes);
}

/* One side of a copy, with the fields of CUDA_MEMCPY3D. */
struct operand {
	unsigned int type;
	CUdeviceptr address;
	void *array;
	size_t x, y, z, pitch, rows;
};

static int operand_of(const CUmemcpy3DOperand *o, const CUDA_MEMCPY3D_BATCH_OP *op, const CUDA_MEMCPY3D *c, size_t element, struct operand *out)
{
	size_t row = o->op.ptr.rowLength, rows = o->op.ptr.layerHeight, bytes;

	if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		*out = (struct operand){.type = CU_MEMORYTYPE_ARRAY, .array = o->op.array.array, .y = o->op.array.offset.y, .z = o->op.array.offset.z};
		return __builtin_mul_overflow(o->op.array.offset.x, element, &out->x) ? CUDA_ERROR_INVALID_VALUE : 0;
	}
	if ((row && row < op->extent.width) || (rows && rows < op->extent.height))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct operand){.type = CU_MEMORYTYPE_UNIFIED, .address = o->op.ptr.ptr, .rows = rows ? rows : op->extent.height};
	if (__builtin_mul_overflow(row ? row : op->extent.width, element, &out->pitch) || !span(c, out->pitch, out->rows, &bytes) ||
	    !reachable(out->address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

static int element_of(const CUDA_MEMCPY3D_BATCH_OP *op, size_t *element)
{
	size_t found[2] = {0};
	const CUmemcpy3DOperand *sides[2] = {&op->src, &op->dst};

	for (int i = 0; i < 2; i++) {
		if (sides[i]->type == CU_MEMCPY_OPERAND_TYPE_ARRAY && !(found[i] = element_bytes(sides[i])))
			return CUDA_ERROR_INVALID_HANDLE;
		if (sides[i]->type != CU_MEMCPY_OPERAND_TYPE_ARRAY && sides[i]->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (found[0] && found[1] && found[0] != found[1])
		return CUDA_ERROR_INVALID_VALUE;
	*element = found[0] ? found[0] : found[1] ? found[1] : 1;
	return 0;
}

/* Converts a copy of a batch to a single copy. */
static int box_of(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *c)
{
	struct operand src, dst;
	size_t element;

	if (!op->extent.width || !op->extent.height || !op->extent.depth || !attributes_valid(op->srcAccessOrder, op->flags))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(element_of(op, &element));
	*c = (CUDA_MEMCPY3D){.Height = op->extent.height, .Depth = op->extent.depth};
	if (__builtin_mul_overflow(op->extent.width, element, &c->WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(operand_of(&op->src, op, c, element, &src));
	TRY(operand_of(&op->dst, op, c, element, &dst));
	c->srcMemoryType = src.type, c->srcDevice = src.address, c->srcArray = src.array, c->srcPitch = src.pitch, c->srcHeight = src.rows;
	c->srcXInBytes = src.x, c->srcY = src.y, c->srcZ = src.z;
	c->dstMemoryType = dst.type, c->dstDevice = dst.address, c->dstArray = dst.array, c->dstPitch = dst.pitch, c->dstHeight = dst.rows;
	c->dstXInBytes = dst.x, c->dstY = dst.y, c->dstZ = dst.z;
	return 0;
}

/* Reports whether the call has to wait until the source has been read. */
static bool box_read_later(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	return op->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
	       (op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY || read_later(op->src.op.ptr.ptr));
}

static int boxes_put(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t n, CUstream h, size_t *at)
{
	bool all_read = false;
	CUDA_MEMCPY3D c;

	for (*at = 0; *at < n; ++*at)
		TRY(box_of(&ops[*at], &c));
	for (*at = 0; *at < n; ++*at) {
		TRY(box_of(&ops[*at], &c));
		TRY(copy_3d(&c, h, false));
		all_read |= box_read_later(&ops[*at]);
	}
	*at = NO_COPY;
	return finish(h, all_read);
}

static int copy_boxes(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t n, unsigned long long flags, CUstream h, size_t *failed)
{
	size_t at = NO_COPY;
	int err = CUDA_ERROR_INVALID_VALUE;

	SESSION(s);
	(void)s;
	if (ops && n && !flags && (err = may_put(h)) == 0)
		err = boxes_put(ops, n, h, &at);
	return report("cuMemcpy3DBatchAsync", err, at, failed);
}

CUDA_API CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
				       CUstream hStream)
{
	return copy_boxes(opList, numOps, flags, hStream, failIdx);
}

CUDA_API CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
	return copy_boxes(opList, numOps, flags, hStream, NULL);
}

CUDA_API CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream hStream)
{
	CUDA_MEMCPY3D c;

	SESSION(s);
	(void)s;
	if (!op || flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(box_of(op, &c));
	TRY(copy_3d(&c, hStream, false));
	return finish(hStream, box_read_later(op));
}
