/* Common code of batches. Their lists have entries each of which applies from one operation
 * up to the one where the next entry begins. */
#ifndef BASALT_BATCH_H
#define BASALT_BATCH_H

#include "capture.h"

/* Reports whether a list of n entries covers count operations: the first entry begins at the
 * first operation, and each other entry after the one before. */
static inline bool batch_covers(const size_t *from, size_t n, size_t count)
{
	if (!from || n == 0 || n > count || from[0] != 0)
		return false;
	for (size_t i = 1; i < n; i++)
		if (from[i] <= from[i - 1] || from[i] >= count)
			return false;
	return true;
}

/* Returns 0 if a batch may be enqueued in a stream, else an error. */
static inline int batch_stream(CUstream h)
{
	uint64_t stream, context;

	if (!h || h == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(h, &stream, &context);
}

#endif
