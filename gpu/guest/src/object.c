/* The table of objects behind the program's handles. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define FIRST_ID 0x10000u /* larger than all special values of handles */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object **buckets; /* guarded by lock, like the variables below */
static size_t bucket_count, object_count;
static _Atomic uint64_t next_id = FIRST_ID;

uint64_t object_ids(uint64_t n)
{
	return atomic_fetch_add(&next_id, n);
}

static pthread_mutex_t lane_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t lane_users[LANES], lane_last; /* guarded by lane_lock: number of streams in each lane, and the last lane allocated */

/* Returns the next unused lane after the last one. If there are more streams than lanes, some
 * share a lane. The caller holds lane_lock. */
static uint32_t lane_free(void)
{
	for (uint32_t least = 0;; least++)
		for (uint32_t k = 1; k <= LANES; k++)
			if (lane_users[(lane_last + k) % LANES] <= least)
				return (lane_last + k) % LANES;
}

uint64_t object_stream_id(void)
{
	uint64_t first = atomic_load(&next_id), id;
	uint32_t lane;

	pthread_mutex_lock(&lane_lock);
	lane = lane_free();
	lane_last = lane;
	lane_users[lane]++;
	pthread_mutex_unlock(&lane_lock);
	do
		id = first + ((lane - first) & (LANES - 1));
	while (!atomic_compare_exchange_weak(&next_id, &first, id + 1));
	return id;
}

void object_stream_end(uint64_t id)
{
	pthread_mutex_lock(&lane_lock);
	lane_users[id & (LANES - 1)]--;
	pthread_mutex_unlock(&lane_lock);
}

void object_stream_gone(struct object *o)
{
	object_stream_end(o->id);
}

void *object_new(size_t size, enum kind kind, uint64_t id, uint64_t context)
{
	struct object *o = calloc(1, size);

	if (o) {
		o->id = id;
		o->kind = kind;
		o->context = context;
		o->refs = 1;
	}
	return o;
}

static void grow(void)
{
	size_t n = bucket_count ? bucket_count * 2 : 256;
	struct object **b = calloc(n, sizeof *b);

	if (!b) {
		if (!buckets)
			abort(); /* there are not even 2 KiB of memory */
		return;
	}
	for (size_t i = 0; i < bucket_count; i++) {
		for (struct object *o = buckets[i], *next; o; o = next) {
			next = o->next;
			o->next = b[o->id & (n - 1)];
			b[o->id & (n - 1)] = o;
		}
	}
	free(buckets);
	buckets = b;
	bucket_count = n;
}

void object_add(void *p)
{
	struct object *o = p;

	pthread_mutex_lock(&lock);
	if (object_count >= bucket_count)
		grow();
	o->next = buckets[o->id & (bucket_count - 1)];
	buckets[o->id & (bucket_count - 1)] = o;
	object_count++;
	pthread_mutex_unlock(&lock);
}

void *object_get(const void *handle, enum kind kind)
{
	uint64_t id = (uintptr_t)handle;
	struct object *o = NULL;

	pthread_mutex_lock(&lock);
	if (buckets)
		for (o = buckets[id & (bucket_count - 1)]; o && o->id != id; o = o->next)
			;
	if (o && o->kind != kind)
		o = NULL;
	if (o)
		o->refs++;
	pthread_mutex_unlock(&lock);
	return o;
}

void object_get_more(void *p)
{
	struct object *o = p;

	pthread_mutex_lock(&lock);
	o->refs++;
	pthread_mutex_unlock(&lock);
}

static void release(struct object *list)
{
	for (struct object *next; list; list = next) {
		next = list->next;
		if (list->destroy)
			list->destroy(list);
		free(list);
	}
}

void object_put(void *p)
{
	struct object *o = p;
	bool last;

	if (!o)
		return;
	pthread_mutex_lock(&lock);
	last = --o->refs == 0;
	pthread_mutex_unlock(&lock);
	if (last) {
		o->next = NULL;
		release(o);
	}
}

/* Unlinks the object that *at points to. The caller holds lock. */
static void unlink_object(struct object **at, struct object **dead)
{
	struct object *o = *at;

	*at = o->next;
	object_count--;
	o->next = NULL;
	if (--o->refs == 0) {
		o->next = *dead;
		*dead = o;
	}
}

bool object_remove(uint64_t id, enum kind kind)
{
	struct object *dead = NULL;
	bool found = false;

	pthread_mutex_lock(&lock);
	if (buckets) {
		struct object **at = &buckets[id & (bucket_count - 1)];

		while (*at && (*at)->id != id)
			at = &(*at)->next;
		if (*at && (*at)->kind == kind) {
			unlink_object(at, &dead);
			found = true;
		}
	}
	pthread_mutex_unlock(&lock);
	release(dead);
	return found;
}

void object_remove_context(uint64_t context)
{
	struct object *dead = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < bucket_count; i++) {
		struct object **at = &buckets[i];

		while (*at) {
			if ((*at)->context == context || (*at)->id == context)
				unlink_object(at, &dead);
			else
				at = &(*at)->next;
		}
	}
	pthread_mutex_unlock(&lock);
	release(dead);
}

size_t object_list(enum kind kind, uint64_t *ids, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < bucket_count; i++)
		for (struct object *o = buckets[i]; o; o = o->next)
			if (o->kind == kind && n++ < max)
				ids[n - 1] = o->id;
	pthread_mutex_unlock(&lock);
	return n;
}

void objects_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	buckets = NULL;
	bucket_count = object_count = 0;
	pthread_mutex_init(&lane_lock, NULL);
	memset(lane_users, 0, sizeof lane_users);
}
