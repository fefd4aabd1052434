/* Prefetching and discarding managed memory in batches. Both are hints, and the memory does
 * not move: a prefetch is recorded, and discarded memory keeps its bytes. */
#include "batch.h"

static int check(const CUdeviceptr *dptrs, const size_t *sizes, size_t count, unsigned long long flags, CUstream h)
{
	SESSION(s);
	(void)s;
	if (!dptrs || !sizes || count == 0 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(batch_stream(h));
	for (size_t i = 0; i < count; i++)
		if (!managed_range(dptrs[i], sizes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

CUDA_API CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags, CUstream hStream)
{
	return check(dptrs, sizes, count, flags, hStream);
}

CUDA_API CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
					  size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	TRY(check(dptrs, sizes, count, flags, hStream));
	if (!prefetchLocs || !batch_covers(prefetchLocIdxs, numPrefetchLocs, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < numPrefetchLocs; k++)
		if (device_at(prefetchLocs[k]) == CU_DEVICE_INVALID)
			return CUDA_ERROR_INVALID_DEVICE;
	for (size_t i = 0, k = 0; i < count; i++) {
		if (k + 1 < numPrefetchLocs && prefetchLocIdxs[k + 1] == i)
			k++;
		TRY(advice_prefetched(dptrs[i], dptrs[i] + sizes[i], device_at(prefetchLocs[k])));
	}
	return 0;
}

CUDA_API CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
						    size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
						    CUstream hStream)
{
	return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}
