/* A cache of device memory that the program has freed. The next allocation of the same size in
 * the same context uses it, and needs no command then. Memory is kept only if nothing in its
 * context can use it any more, and only up to the worker's limit. The limit is 0 with a worker
 * that does not support the cache, and while other programs need the memory.
 *
 * The kept addresses are in the header of region 0, so that the worker can free the memory
 * without this process. The side that exchanges a word for 0 owns the memory
 * (gpu/abi/layout.go). */
#include <string.h>

#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept {
	uint64_t address; /* 0: none */
	uint64_t size, context;
} kept[BSLT_MAX_KEPT]; /* guarded by lock */

static _Atomic uint64_t *word(const struct session *s, size_t i)
{
	return word64(s, BSLT_OFF_KEPT + 8 * i);
}

/* Removes the memory from the header. Returns false if the worker has freed it. */
static bool withdraw(const struct session *s, struct kept *k)
{
	uint64_t address = k->address;

	k->address = 0;
	return atomic_compare_exchange_strong(word(s, (size_t)(k - kept)), &address, 0);
}

/* Returns the bytes that the worker counts for an allocation. */
static uint64_t accounted(uint64_t size)
{
	return (size + 255) & ~255ull;
}

static bool context_there(uint64_t context)
{
	void *o = object_get(handle_of(context), KIND_CONTEXT);

	if (o)
		object_put(o);
	return o != NULL;
}

bool kept_put(struct session *s, const struct range *r)
{
	uint64_t most = atomic_load_explicit(word64(s, BSLT_OFF_KEEP_MOST), memory_order_relaxed);
	uint64_t sum = accounted(r->size);
	struct kept *room = NULL;

	if (r->size > most)
		return false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BSLT_MAX_KEPT; i++) {
		struct kept *k = &kept[i];

		if (k->address && atomic_load_explicit(word(s, i), memory_order_relaxed) != k->address)
			k->address = 0;
		if (k->address)
			sum += accounted(k->size);
		else
			room = k;
	}
	/* Checked with the lock held, because a context that is destroyed removes its memory
	 * from the cache afterwards. */
	if (sum > most || !room || !context_there(r->context)) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	*room = (struct kept){r->address, r->size, r->context};
	atomic_store(word(s, (size_t)(room - kept)), r->address);
	pthread_mutex_unlock(&lock);
	return true;
}

bool kept_take(struct session *s, uint64_t context, uint64_t size, uint64_t *address)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BSLT_MAX_KEPT && !found; i++) {
		if (!kept[i].address || kept[i].size != size || kept[i].context != context)
			continue;
		*address = kept[i].address;
		found = withdraw(s, &kept[i]);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void kept_drop_context(struct session *s, uint64_t context)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BSLT_MAX_KEPT; i++)
		if (kept[i].address && kept[i].context == context)
			(void)withdraw(s, &kept[i]);
	pthread_mutex_unlock(&lock);
}

void kept_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(kept, 0, sizeof kept);
}
