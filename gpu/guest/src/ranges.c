/* Sorted tables of device and pinned host memory. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table {
	struct range *r; /* by address; they do not overlap */
	size_t n, room;
} tables[2]; /* guarded by lock */

/* The index of the first range that starts above address. */
static size_t above(const struct table *t, uint64_t address)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->r[mid].address <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int range_add(enum space space, const struct range *r)
{
	struct table *t = &tables[space];
	int err = 0;
	size_t i;

	pthread_mutex_lock(&lock);
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 64;
		struct range *p = realloc(t->r, room * sizeof *p);

		if (!p) {
			pthread_mutex_unlock(&lock);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		t->r = p;
		t->room = room;
	}
	i = above(t, r->address);
	if (i < t->n && t->r[i].address - r->address < r->size)
		err = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (i > 0 && r->address - t->r[i - 1].address < t->r[i - 1].size)
		err = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!err) {
		memmove(t->r + i + 1, t->r + i, (t->n - i) * sizeof *t->r);
		t->r[i] = *r;
		t->n++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

bool range_find(enum space space, uint64_t address, struct range *r)
{
	struct table *t = &tables[space];
	bool found = false;
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(t, address);
	if (i > 0 && address - t->r[i - 1].address < t->r[i - 1].size) {
		*r = t->r[i - 1];
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool range_take(enum space space, uint64_t address, struct range *r)
{
	struct table *t = &tables[space];
	bool found = false;
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(t, address);
	if (i > 0 && t->r[i - 1].address == address) {
		*r = t->r[i - 1];
		memmove(t->r + i - 1, t->r + i, (t->n - i) * sizeof *t->r);
		t->n--;
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void ranges_drop_context(uint64_t context)
{
	struct table *t = &tables[SPACE_DEVICE];
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < t->n; i++)
		if (t->r[i].context != context)
			t->r[kept++] = t->r[i];
	t->n = kept;
	pthread_mutex_unlock(&lock);
}

void ranges_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(tables, 0, sizeof tables);
}
