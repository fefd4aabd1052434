/* Memory, and virtual memory management. */
#include "call.h"

/* Memory. */
EXPORT int cuMemAlloc_v2(u *p, size_t n)
{
	in_context(__func__);
	int r = CALL(cuMemAlloc_v2, p, n);
	if (r == 0) {
		acquire();
		memory_add(*p, n, current, 0, false);
		release();
	}
	return r;
}

EXPORT int cuMemFree_v2(u p)
{
	acquire();
	context_of(__func__);
	memory_check(__func__, p, 1, false);
	nothing_runs(__func__, current);
	memory_remove(__func__, p, false); /* before another thread can get the same address */
	release();
	return CALL(cuMemFree_v2, p);
}

EXPORT int cuMemHostAlloc(void **p, size_t n, unsigned int flags)
{
	in_context(__func__);
	if (flags & ~7u)
		BROKEN("flags are %#x, and 7 are known", flags);
	int r = CALL(cuMemHostAlloc, p, n, flags);
	if (r == 0) {
		acquire();
		memory_add((u)*p, n, current, 0, true);
		release();
	}
	return r;
}

EXPORT int cuMemFreeHost(void *p)
{
	acquire();
	context_of(__func__);
	nothing_runs(__func__, current);
	memory_remove(__func__, (u)p, true);
	release();
	return CALL(cuMemFreeHost, p);
}

/* Virtual memory management. Addresses are of no context; memory is created in one. */
EXPORT int cuMemGetAllocationGranularity(size_t *n, const void *prop, int option)
{
	ready(__func__);
	int r = CALL(cuMemGetAllocationGranularity, n, prop, option);
	if (r == 0 && option == 0) {
		acquire();
		mapped_granule(*n);
		release();
	}
	return r;
}

EXPORT int cuMemAddressReserve(u *p, size_t n, size_t alignment, u at, unsigned long long flags)
{
	ready(__func__);
	acquire();
	reserve_check(__func__, at, n, alignment, flags);
	int r = CALL(cuMemAddressReserve, p, n, alignment, at, flags);
	if (r == 0)
		reserved_add(*p, n);
	release();
	return r;
}

EXPORT int cuMemAddressFree(u p, size_t n)
{
	ready(__func__);
	acquire();
	reserved_remove(__func__, p, n); /* before another thread can get the same addresses */
	release();
	return CALL(cuMemAddressFree, p, n);
}

EXPORT int cuMemCreate(u *h, size_t n, const void *prop, unsigned long long flags)
{
	enum { HANDLES_AT = 4 }; /* CUmemAllocationProp.requestedHandleTypes */

	ready(__func__); /* memory is of a device, and needs no context */
	acquire();
	memory_size_check(__func__, n);
	if (flags)
		BROKEN("flags are %#llx, want 0", flags);
	release();
	int r = CALL(cuMemCreate, h, n, prop, flags);
	if (r == 0) {
		acquire();
		memory_new(*h, n, M(unsigned int, prop, HANDLES_AT));
		release();
	}
	return r;
}

EXPORT int cuMemRelease(u h)
{
	acquire();
	memory_release(__func__, h);
	release();
	return CALL(cuMemRelease, h);
}

EXPORT int cuMemMap(u p, size_t n, size_t offset, u h, unsigned long long flags)
{
	acquire();
	map_check(__func__, p, n, offset, h, flags);
	release();
	int r = CALL(cuMemMap, p, n, offset, h, flags);
	if (r == 0) {
		acquire();
		mapped_add(p, n, h);
		release();
	}
	return r;
}

EXPORT int cuMemUnmap(u p, size_t n)
{
	acquire();
	context_of(__func__);
	unmap_check(__func__, p, n);
	nothing_runs(__func__, current);
	release();
	int r = CALL(cuMemUnmap, p, n);
	if (r == 0) {
		acquire();
		mapped_remove(p, n);
		release();
	}
	return r;
}

EXPORT int cuMemSetAccess(u p, size_t n, const void *desc, size_t count)
{
	acquire();
	access_check(__func__, p, n, desc, count);
	release();
	int r = CALL(cuMemSetAccess, p, n, desc, count);
	if (r == 0) {
		acquire();
		access_set(p, n, ((const int *)desc)[2]);
		release();
	}
	return r;
}

EXPORT int cuMemExportToShareableHandle(void *out, u h, unsigned int type, unsigned long long flags)
{
	acquire();
	memory_exports(__func__, h, type, flags);
	release();
	return CALL(cuMemExportToShareableHandle, out, h, type, flags);
}

EXPORT int cuMemImportFromShareableHandle(u *h, void *from, unsigned int type)
{
	in_context(__func__);
	int r = CALL(cuMemImportFromShareableHandle, h, from, type);
	if (r == 0) {
		acquire();
		memory_new(*h, SIZE_MAX, 0);
		release();
	}
	return r;
}
