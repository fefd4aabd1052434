/* What batches have in common: lists of which each entry holds from one operation up
 * to the next entry's. */
#ifndef BASALT_BATCH_H
#define BASALT_BATCH_H

#include "capture.h"

/* Whether such a list of n entries covers count operations: the first begins at the
 * first of them, and each after the one before. */
static inline bool batch_covers(const size_t *from, size_t n, size_t count)
{
	if (!from || n == 0 || n > count || from[0] != 0)
		return false;
	for (size_t i = 1; i < n; i++)
		if (from[i] <= from[i - 1] || from[i] >= count)
			return false;
	return true;
}

/* Whether a batch may go into a stream. */
static inline int batch_stream(CUstream h)
{
	uint64_t stream, context;

	if (!h || h == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(h, &stream, &context);
}

#endif
