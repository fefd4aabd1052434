/* Pinned host memory: pages that the worker maps at the same address of the window, so that
 * kernels and copies use them in place. */
#include <sys/mman.h>

#include "capture.h"

/* Allocates ordinary memory. Copies of it go through the arena, which is slower. */
static int allocate_plain(struct range *r)
{
	void *p = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->address = (uintptr_t)p;
	return 0;
}

static void release(struct session *s, struct range *r)
{
	if (r->mapped)
		session_host_region_free(s, &r->region);
	else if (r->region.base)
		session_region_free(s, &r->region);
	else
		munmap((void *)(uintptr_t)r->address, r->size);
}

int host_allocate(struct session *s, struct range *r, bool reached)
{
	int err = session_host_region(s, r->size, &r->region);

	r->mapped = err == 0;
	/* An older worker can copy from and to a region at any address. */
	if (err == CUDA_ERROR_NOT_SUPPORTED && !s->host.size)
		reached = false, err = session_region(s, r->size, &r->region);
	if (err == 0) {
		r->address = (uintptr_t)r->region.base;
	} else {
		r->region = (struct region){0};
		if (reached)
			return CUDA_ERROR_OUT_OF_MEMORY;
		TRY(allocate_plain(r));
	}
	if ((err = range_add(SPACE_HOST, r)) != 0)
		release(s, r);
	return err;
}

int host_release(struct session *s, uint64_t address, bool managed)
{
	struct range r;

	if (!range_find(SPACE_HOST, address, &r) || r.address != address || !r.owned || r.managed != managed ||
	    !range_take(SPACE_HOST, address, &r))
		return CUDA_ERROR_INVALID_VALUE;
	release(s, &r);
	return 0;
}

/* The device can access the memory if the pages can be mapped. With DEVICEMAP, it is an error
 * if they cannot. */
CUDA_API CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct range r = {.size = bytesize, .flags = Flags, .owned = true};

	SESSION(s);
	if (!pp || bytesize == 0 || Flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&r.context));
	TRY(host_allocate(s, &r, (Flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0));
	*pp = (void *)(uintptr_t)r.address;
	return 0;
}

CUDA_API CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

/* As with NVIDIA's driver, it waits for work that may use the memory. */
CUDA_API CUresult cuMemFreeHost(void *p)
{
	SESSION(s);
	if (capturing())
		TRY(capture_unsafe());
	return host_release(s, (uintptr_t)p, false);
}
