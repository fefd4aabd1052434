/* The program's advice about managed memory (cuMemAdvise). It is kept per range of pages,
 * because the program may give advice about a part of an allocation. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define PAGE 4096ull

static const struct advice none = {.preferred = CU_DEVICE_INVALID, .prefetched = CU_DEVICE_INVALID};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct part {
	uint64_t from, to;
	struct advice a;
} *parts;           /* sorted by address, without overlaps; addresses outside have no advice */
static size_t n, room; /* guarded by lock, like parts */

static int insert(size_t i, struct part p)
{
	if (n == room) {
		size_t more = room ? room * 2 : 16;
		struct part *bigger = realloc(parts, more * sizeof *parts);

		if (!bigger)
			return CUDA_ERROR_OUT_OF_MEMORY;
		parts = bigger;
		room = more;
	}
	memmove(parts + i + 1, parts + i, (n - i) * sizeof *parts);
	parts[i] = p;
	n++;
	return 0;
}

/* Splits the part that contains an address, so that a part begins there. */
static int split(uint64_t at)
{
	for (size_t i = 0; i < n; i++) {
		struct part upper = parts[i];

		if (parts[i].from >= at || parts[i].to <= at)
			continue;
		upper.from = at;
		TRY(insert(i + 1, upper));
		parts[i].to = at;
	}
	return 0;
}

/* Creates parts that cover a range exactly, so that they can be changed without others. */
static int cover(uint64_t from, uint64_t to, size_t *first, size_t *end)
{
	size_t i = 0;

	TRY(split(from));
	TRY(split(to));
	while (i < n && parts[i].to <= from)
		i++;
	*first = i;
	for (uint64_t at = from; at < to; at = parts[i++].to) {
		uint64_t next = i < n && parts[i].from < to ? parts[i].from : to;

		if (next > at)
			TRY(insert(i, (struct part){at, next, none}));
	}
	*end = i;
	return 0;
}

static void apply(struct advice *a, int advice, int device)
{
	bool set = advice == CU_MEM_ADVISE_SET_ACCESSED_BY;

	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY: a->read_mostly = true; break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY: a->read_mostly = false; break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: a->preferred = device; break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: a->preferred = CU_DEVICE_INVALID; break;
	default:
		if (device == CU_DEVICE_CPU)
			a->by_host = set;
		else
			a->by_device = set;
	}
}

static int change(uint64_t from, uint64_t to, int advice, int device, bool prefetched)
{
	size_t first, end;
	int err;

	from &= ~(PAGE - 1);
	to = (to + PAGE - 1) & ~(PAGE - 1);
	pthread_mutex_lock(&lock);
	err = cover(from, to, &first, &end);
	for (size_t i = first; !err && i < end; i++) {
		if (prefetched)
			parts[i].a.prefetched = device;
		else
			apply(&parts[i].a, advice, device);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int advice_set(uint64_t from, uint64_t to, int advice, int device)
{
	return change(from, to, advice, device, false);
}

int advice_prefetched(uint64_t from, uint64_t to, int device)
{
	return change(from, to, 0, device, true);
}

/* Reduces a to the advice that a and b have in common. */
static void intersect(struct advice *a, const struct advice *b)
{
	a->read_mostly &= b->read_mostly;
	a->by_device &= b->by_device;
	a->by_host &= b->by_host;
	if (a->preferred != b->preferred)
		a->preferred = CU_DEVICE_INVALID;
	if (a->prefetched != b->prefetched)
		a->prefetched = CU_DEVICE_INVALID;
}

void advice_get(uint64_t from, uint64_t to, struct advice *a)
{
	uint64_t at = from;
	bool first = true;

	*a = none;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n && at < to; i++) {
		if (parts[i].to <= at)
			continue;
		if (parts[i].from > at)
			break; /* the pages between have no advice */
		if (first)
			*a = parts[i].a;
		else
			intersect(a, &parts[i].a);
		first = false;
		at = parts[i].to;
	}
	pthread_mutex_unlock(&lock);
	if (at < to)
		intersect(a, &none);
}

void advice_forget(uint64_t from, uint64_t to)
{
	size_t kept = 0;

	to = (to + PAGE - 1) & ~(PAGE - 1);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++)
		if (parts[i].to <= from || parts[i].from >= to)
			parts[kept++] = parts[i];
	n = kept;
	pthread_mutex_unlock(&lock);
}

void advice_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	n = 0;
}
