/* Copies of contiguous bytes to or from consecutive rows of an array. */
#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

/* Computes the next piece: the rest of a row, or all whole rows. */
static void next_piece(size_t row, size_t x, size_t left, size_t *width, size_t *rows)
{
	*rows = 1;
	*width = left < row - x ? left : row - x;
	if (x == 0 && left >= row) {
		*width = row;
		*rows = left / row;
	}
}

static cudaError_t row_bytes(cudaArray_const_t array, size_t x, size_t *row)
{
	struct cudaChannelFormatDesc desc;
	struct cudaExtent extent;
	size_t element;
	unsigned int flags;
	cudaError_t err = array_element_size(array, &element);

	if (!err)
		err = own_cudaArrayGetInfo(&desc, &extent, &flags, (cudaArray_t)array);
	if (!err && __builtin_mul_overflow(extent.width, element, row))
		err = cudaErrorInvalidValue;
	return !err && x >= *row ? cudaErrorInvalidValue : err;
}

struct run {
	cudaStream_t stream;
	bool async, per_thread;
};

static cudaError_t write_run(cudaArray_t dst, size_t x, size_t y, const char *src, size_t left, enum cudaMemcpyKind kind,
			     struct run how)
{
	size_t row, width, rows;
	cudaError_t err = row_bytes(dst, x, &row);

	for (; !err && left; left -= width * rows, src += width * rows, y += rows, x = 0) {
		next_piece(row, x, left, &width, &rows);
		err = how.async ? own_cudaMemcpy2DToArrayAsync(dst, x, y, src, width, width, rows, kind, how.stream)
				: own_cudaMemcpy2DToArray(dst, x, y, src, width, width, rows, kind, how.per_thread);
	}
	return err;
}

static cudaError_t read_run(char *dst, cudaArray_const_t src, size_t x, size_t y, size_t left, enum cudaMemcpyKind kind,
			    struct run how)
{
	size_t row, width, rows;
	cudaError_t err = row_bytes(src, x, &row);

	for (; !err && left; left -= width * rows, dst += width * rows, y += rows, x = 0) {
		next_piece(row, x, left, &width, &rows);
		err = how.async ? own_cudaMemcpy2DFromArrayAsync(dst, width, src, x, y, width, rows, kind, how.stream)
				: own_cudaMemcpy2DFromArray(dst, width, src, x, y, width, rows, kind, how.per_thread);
	}
	return err;
}

cudaError_t own_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
				  enum cudaMemcpyKind kind, bool per_thread)
{
	return write_run(dst, wOffset, hOffset, src, count, kind, (struct run){NULL, false, per_thread});
}

cudaError_t own_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
				       enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return write_run(dst, wOffset, hOffset, src, count, kind, (struct run){stream, true, false});
}

cudaError_t own_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
				    enum cudaMemcpyKind kind, bool per_thread)
{
	return read_run(dst, src, wOffset, hOffset, count, kind, (struct run){NULL, false, per_thread});
}

cudaError_t own_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
					 enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return read_run(dst, src, wOffset, hOffset, count, kind, (struct run){stream, true, false});
}

/* Only copies within one row of each array are supported. */
cudaError_t own_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
				       size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind, bool per_thread)
{
	size_t from, to;
	cudaError_t err = row_bytes(src, wOffsetSrc, &from);

	if (err || (err = row_bytes(dst, wOffsetDst, &to)) != 0)
		return err;
	if (count > from - wOffsetSrc || count > to - wOffsetDst)
		return cudaErrorNotSupported;
	return own_cudaMemcpy2DArrayToArray(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count, 1, kind, per_thread);
}
