/* Host memory that the program has allocated itself and registers. It is copied through the
 * arena like other memory, and the device cannot use it at its address, where the worker may
 * have other memory (attribute 91 is 0).
 *
 * When a program asks for the device's address of registered memory, the pages are replaced by
 * those of a region in the window (replace.c), where the device can use them: the program has
 * the same bytes at both addresses. Registering alone replaces nothing, because most programs
 * register memory only for faster copies.
 *
 * The pages stay replaced when the memory is unregistered, and the region is used again when
 * the program registers it the next time. It is freed when it is found that the program does
 * not have the pages any more. Pages of a stack are replaced again at once, because a child of
 * fork must not run on the stack of its parent. */
#include <string.h>

#include "capture.h"
#include "registered.h"
#include "replace.h"

#define REPLACED_LIMIT 256

/* Held while memory is registered and unregistered, and during calls of the worker for that. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
/* Guards replaced and replaced_count, which only a holder of registering changes. It is also
 * held while pages are replaced, so that a child of fork knows all that are shared. */
static pthread_mutex_t replacing = PTHREAD_MUTEX_INITIALIZER;
static struct replaced replaced[REPLACED_LIMIT];
static size_t replaced_count;

void registered_fork_begin(void)
{
	pthread_mutex_lock(&replacing);
}

void registered_fork_end(void)
{
	pthread_mutex_unlock(&replacing);
}

void registered_abandon(void)
{
	pthread_mutex_init(&registering, NULL);
	pthread_mutex_init(&replacing, NULL);
	for (size_t i = 0; i < replaced_count; i++)
		pages_copy(&replaced[i]);
	replaced_count = 0;
}

static bool overlaps(const struct replaced *r, uint64_t from, uint64_t to)
{
	return r->address < to && from < r->address + r->size;
}

/* Frees the region of an entry and removes the entry. The caller holds registering. */
static void drop(struct session *s, size_t i)
{
	session_region_free(s, &replaced[i].region);
	pthread_mutex_lock(&replacing);
	replaced[i] = replaced[--replaced_count];
	pthread_mutex_unlock(&replacing);
}

/* Frees the regions that are not in use and whose pages the program has unmapped. If it has
 * unmapped a part, a child of fork shares the rest with its parent. */
static void drop_unmapped(struct session *s)
{
	for (size_t i = replaced_count; i-- > 0;)
		if (replaced[i].users == 0 && !pages_present(&replaced[i]))
			drop(s, i);
}

/* Finds the region that has all pages from up to to, or returns NULL. */
static struct replaced *find(uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < replaced_count; i++)
		if (replaced[i].address <= from && to <= replaced[i].address + replaced[i].size)
			return &replaced[i];
	return NULL;
}

/* Extends the pages of n by those of the regions that it overlaps, and stores these regions.
 * Returns false if one of them is in use: a page cannot be in two. */
static bool extend(struct replaced *n, struct replaced *others, size_t *count)
{
	const uint64_t from = n->address, to = n->address + n->size;
	uint64_t end = to;

	*count = 0;
	for (size_t i = 0; i < replaced_count; i++) {
		const struct replaced *r = &replaced[i];

		if (!overlaps(r, from, to))
			continue;
		if (r->users)
			return false;
		others[(*count)++] = *r;
		if (r->address < n->address)
			n->address = r->address;
		if (r->address + r->size > end)
			end = r->address + r->size;
	}
	n->size = end - n->address;
	return true;
}

/* Replaces the pages from up to to. The caller holds registering. */
static int replace(struct session *s, uint64_t from, uint64_t to, struct replaced **out)
{
	struct replaced n = {.address = from, .size = to - from};
	static struct replaced others[REPLACED_LIMIT]; /* guarded by registering */
	size_t count;
	int err;

	if (!extend(&n, others, &count) || !pages_replaceable(n.address, n.size, others, count))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (replaced_count - count == REPLACED_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	TRY(session_host_region(s, n.size, &n.region));
	pthread_mutex_lock(&replacing);
	if ((err = pages_replace(s, &n)) == 0) {
		for (size_t i = replaced_count; i-- > 0;)
			if (overlaps(&replaced[i], n.address, n.address + n.size))
				replaced[i] = replaced[--replaced_count];
		replaced[replaced_count++] = n;
	}
	pthread_mutex_unlock(&replacing);
	if (err) {
		session_host_region_free(s, &n.region);
		return err;
	}
	for (size_t i = 0; i < count; i++)
		session_region_free(s, &others[i].region);
	*out = &replaced[replaced_count - 1];
	return 0;
}

/* Called when nothing in a region is registered any more. The caller holds registering. */
static void unused(struct session *s, struct replaced *r)
{
	int err;

	session_host_region_unmap(s, &r->region);
	if (!r->stack)
		return;
	pthread_mutex_lock(&replacing);
	err = pages_restore(r);
	pthread_mutex_unlock(&replacing);
	if (!err)
		drop(s, (size_t)(r - replaced));
}

/* Gives registered memory an address on the device. The caller holds registering. */
static int place(struct session *s, struct range *r)
{
	uint64_t from = r->address & ~(PAGE - 1), to = page_up(r->address + r->size);
	struct range on_device = *r;
	struct replaced *p;
	int err;

	drop_unmapped(s);
	if (!(p = find(from, to)))
		TRY(replace(s, from, to, &p));
	else if (!pages_present(p))
		return CUDA_ERROR_INVALID_VALUE; /* the program has unmapped registered memory */
	else if (p->users == 0)
		TRY(session_host_region_map(s, &p->region));
	r->other = (uintptr_t)p->region.base + (r->address - p->address);
	on_device.address = r->other;
	on_device.other = r->address;
	on_device.mapped = true;
	p->users++;
	if ((err = range_add(SPACE_HOST, &on_device)) == 0) {
		range_set_other(r->address, r->other);
		return 0;
	}
	if (--p->users == 0)
		unused(s, p);
	return err;
}

CUDA_API CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct range r = {.address = (uintptr_t)p, .size = bytesize, .flags = Flags};

	SESSION(s);
	(void)s;
	if (!p || bytesize == 0 || bytesize > UINTPTR_MAX - PAGE - (uintptr_t)p)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & ~(unsigned int)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
		return CUDA_ERROR_NOT_SUPPORTED; /* I/O memory, or read-only memory */
	if (capturing())
		TRY(capture_unsafe());
	if (host_range((uintptr_t)p, 1))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (in_window((uintptr_t)p, bytesize))
		return CUDA_ERROR_INVALID_VALUE; /* device addresses, which are not the program's memory */
	TRY(context_working(&r.context));
	return range_add(SPACE_HOST, &r);
}

/* As with NVIDIA's driver, it waits for work that may use the memory. */
CUDA_API CUresult cuMemHostUnregister(void *p)
{
	struct range r, on_device;
	struct replaced *in;

	SESSION(s);
	pthread_mutex_lock(&registering);
	if (!range_find(SPACE_HOST, (uintptr_t)p, &r) || r.owned || r.mapped || !range_take(SPACE_HOST, (uintptr_t)p, &r)) {
		pthread_mutex_unlock(&registering);
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	}
	if (r.other && range_take(SPACE_HOST, r.other, &on_device) && (in = find(r.address, r.address + r.size)) != NULL && --in->users == 0)
		unused(s, in);
	pthread_mutex_unlock(&registering);
	return 0;
}

CUDA_API CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct range r;

	SESSION(s);
	(void)s;
	if (!pFlags || !range_find(SPACE_HOST, (uintptr_t)p, &r) || r.managed)
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = r.flags;
	return 0;
}

/* The device's address of memory that the library has allocated is the host's, if there is
 * one. That of registered memory is another one. */
CUDA_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct range r;
	int err = 0;

	SESSION(s);
	if (!pdptr || Flags || !range_find(SPACE_HOST, (uintptr_t)p, &r) || r.managed)
		return CUDA_ERROR_INVALID_VALUE;
	if (r.mapped) {
		*pdptr = (uintptr_t)p;
		return 0;
	}
	if (r.owned)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&registering);
	if (!range_find(SPACE_HOST, (uintptr_t)p, &r))
		err = CUDA_ERROR_INVALID_VALUE;
	else if (!r.other)
		err = place(s, &r);
	pthread_mutex_unlock(&registering);
	if (!err)
		*pdptr = r.other + ((uintptr_t)p - r.address);
	return err;
}
