/* Virtual memory management: reserved addresses, memory without an address, and mappings
 * (CUDA Driver API, "Virtual Memory Management"). */
#include <stdlib.h>

#include "strict.h"

struct memory {
	u handle, context; /* context: that was current when it was created or imported, or 0 */
	size_t size;	   /* SIZE_MAX: imported, and not known */
	unsigned int handles;
	bool held; /* not released */
	struct memory *next;
};

struct range {
	u address;
	size_t size;
	struct memory *of; /* a reservation has none */
	int access;	   /* CUmemAccess_flags */
	struct range *next;
};

static struct memory *memories;
static struct range *reservations, *mappings;
static size_t granule; /* 0: not known yet */

void mapped_granule(size_t minimum)
{
	granule = minimum;
}

static void granular(const char *function, u address, size_t size)
{
	if (!granule)
		broken(function, "the granularity of memory was never queried");
	if (!size || address % granule || size % granule)
		broken(function, "%zu bytes at %#zx are not in whole granules of %zu bytes", size, address, granule);
}

static bool overlaps(const struct range *r, u address, size_t size)
{
	return address < r->address + r->size && r->address < address + size;
}

static struct range *range_at(struct range *list, u address)
{
	while (list && (address < list->address || address - list->address >= list->size))
		list = list->next;
	return list;
}

static void range_new(struct range **list, u address, size_t size, struct memory *of)
{
	struct range *r = malloc(sizeof *r);

	*r = (struct range){.address = address, .size = size, .of = of, .next = *list};
	*list = r;
}

static void range_drop(struct range **list, struct range *r)
{
	while (*list != r)
		list = &(*list)->next;
	*list = r->next;
	free(r);
}

/* Reservations. Host pages are 4 KiB. */
void reserve_check(const char *function, u address, size_t size, size_t alignment, unsigned long long flags)
{
	if (!size || size % 4096 || address % 4096)
		broken(function, "%zu bytes at %#zx are not whole pages", size, address);
	if (alignment & (alignment - 1))
		broken(function, "alignment %zu is not a power of two", alignment);
	if (flags)
		broken(function, "flags are %#llx, want 0", flags);
}

void reserved_add(u address, size_t size)
{
	for (struct range *r = reservations; r; r = r->next)
		if (overlaps(r, address, size))
			broken("libcuda", "addresses at %#zx were given twice", address);
	range_new(&reservations, address, size, NULL);
}

void reserved_remove(const char *function, u address, size_t size)
{
	struct range *r = range_at(reservations, address);

	if (!r || r->address != address || r->size != size)
		broken(function, "%zu bytes at %#zx are not a reservation", size, address);
	for (struct range *m = mappings; m; m = m->next)
		if (overlaps(m, address, size))
			broken(function, "memory is still mapped at %#zx, in the reservation at %#zx", m->address, address);
	range_drop(&reservations, r);
}

/* Memory. */
void memory_size_check(const char *function, size_t size)
{
	granular(function, 0, size);
}

void memory_new(u handle, size_t size, unsigned int handles)
{
	struct memory *m = malloc(sizeof *m);

	for (struct memory *o = memories; o; o = o->next)
		if (o->handle == handle && o->held)
			broken("libcuda", "memory %#zx was given twice", handle);
	*m = (struct memory){handle, current, size, handles, true, memories};
	memories = m;
}

static struct memory *memory_of(const char *function, u handle)
{
	struct memory *m = memories;

	while (m && (m->handle != handle || !m->held))
		m = m->next;
	if (!m)
		broken(function, "%#zx is not memory, or was released", handle);
	return m;
}

static bool is_mapped(const struct memory *m)
{
	struct range *r = mappings;

	while (r && r->of != m)
		r = r->next;
	return r != NULL;
}

/* Memory exists until it is released and mapped nowhere. */
static void drop_unused(struct memory *m)
{
	struct memory **p = &memories;

	if (m->held || is_mapped(m))
		return;
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	free(m);
}

void memory_release(const char *function, u handle)
{
	struct memory *m = memory_of(function, handle);

	m->held = false;
	drop_unused(m);
}

void memory_exports(const char *function, u handle, unsigned int type, unsigned long long flags)
{
	if (!(memory_of(function, handle)->handles & type) || flags)
		broken(function, "memory %#zx was not created for handles of type %u, or flags are %#llx", handle, type, flags);
}

/* Mappings. */
void map_check(const char *function, u address, size_t size, size_t offset, u handle, unsigned long long flags)
{
	struct memory *m = memory_of(function, handle);
	struct range *r = range_at(reservations, address);

	granular(function, address, size);
	if (offset || flags)
		broken(function, "offset is %zu and flags are %#llx, want 0", offset, flags);
	if (size > m->size)
		broken(function, "%zu bytes are more than the %zu of memory %#zx", size, m->size, handle);
	if (!r || size > r->size - (address - r->address))
		broken(function, "%zu bytes at %#zx are not in one reservation", size, address);
	for (struct range *x = mappings; x; x = x->next)
		if (overlaps(x, address, size))
			broken(function, "memory is mapped at %#zx already", x->address);
}

void mapped_add(u address, size_t size, u handle)
{
	range_new(&mappings, address, size, memory_of("libcuda", handle));
}

/* Whole mappings, side by side. */
static void whole(const char *function, u address, size_t size)
{
	granular(function, address, size);
	for (u at = address; at - address < size;) {
		struct range *r = range_at(mappings, at);

		if (!r || r->address != at || r->size > size - (at - address))
			broken(function, "%zu bytes at %#zx are not whole mappings", size, address);
		at += r->size;
	}
}

void unmap_check(const char *function, u address, size_t size)
{
	whole(function, address, size);
}

void mapped_remove(u address, size_t size)
{
	for (u at = address; at - address < size;) {
		struct range *r = range_at(mappings, at);
		struct memory *m = r->of;

		at += r->size;
		range_drop(&mappings, r);
		drop_unused(m);
	}
}

void access_check(const char *function, u address, size_t size, const int *desc, size_t count)
{
	enum { DEVICE = 1, READ = 1, READ_WRITE = 3 };

	whole(function, address, size);
	if (count != 1 || desc[0] != DEVICE || (desc[2] && desc[2] != READ && desc[2] != READ_WRITE))
		broken(function, "%zu descriptors, the first of a location of type %d and access %d", count, count ? desc[0] : 0, count ? desc[2] : 0);
}

void access_set(u address, size_t size, int access)
{
	for (struct range *r = mappings; r; r = r->next)
		if (overlaps(r, address, size))
			r->access = access;
}

/* Reports whether an address is reserved; all of the bytes must then be mapped with access. */
bool mapped_check(const char *function, u address, size_t size)
{
	if (!range_at(reservations, address))
		return false;
	for (u at = address; at - address < size;) {
		struct range *r = range_at(mappings, at);

		if (!r)
			broken(function, "nothing is mapped at %#zx, in %zu bytes from %#zx on", at, size, address);
		if (!r->access)
			broken(function, "memory at %#zx is mapped without access", at);
		at = r->address + r->size;
	}
	return true;
}

/* What a context has not freed at its end. Memory is of no context, so it would be lost to the
 * process; the library behind this one destroys it. The memory of a context that has failed
 * cannot be freed in any other way. */
void mapped_left(const char *function, u context, bool failed)
{
	struct memory *next;

	for (struct memory *m = memories; m; m = next) {
		next = m->next;
		if (m->context != context)
			continue;
		if (!failed)
			broken(function, "memory %#zx of context %#zx is still %s", m->handle, context, m->held ? "held" : "mapped");
		for (struct range *r = mappings, *after; r; r = after) {
			after = r->next;
			if (r->of == m)
				range_drop(&mappings, r);
		}
		m->held = false;
		drop_unused(m);
	}
}
