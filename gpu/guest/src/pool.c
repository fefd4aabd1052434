/* Memory pools for stream-ordered allocation. A pool only counts: it does not keep unused
 * memory, so the reserved memory is the memory in use, and a release threshold has no effect.
 * Allocation is cheap nevertheless, because of the worker's account (gpu/worker/account.go). */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"

/* CUmemPool_attribute */
enum {
	FOLLOW_EVENT_DEPENDENCIES = 1,
	ALLOW_OPPORTUNISTIC = 2,
	ALLOW_INTERNAL_DEPENDENCIES = 3,
	RELEASE_THRESHOLD = 4,
	RESERVED_CURRENT = 5,
	RESERVED_HIGH = 6,
	USED_CURRENT = 7,
	USED_HIGH = 8,
};
enum { ACCESS_READ_WRITE = 3 }; /* CUmemAccess_flags */
enum { POOL_HANDLE_TYPES = 119 }; /* CUdevice_attribute */
enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };

struct pool {
	uint64_t id;
	uint64_t used, used_high, reserved_high, max, threshold; /* bytes; max 0: no limit */
	int reuse[3]; /* as set; they have no effect, because a pool does not reuse memory */
	bool shared;	   /* other processes may open it; token identifies it */
	bool imported;	   /* another process's: nothing is allocated from it here */
	uint64_t token[2];
	bool destroyed; /* it is freed when none of its memory is in use */
	struct pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* no other lock is acquired while it is held */
static struct pool *pools; /* guarded by lock, like the variables below */
static uint64_t standard, current; /* IDs; 0: not created yet */

static struct pool *find(uint64_t id)
{
	struct pool *p = pools;

	while (p && p->id != id)
		p = p->next;
	return p;
}

static struct pool *add(void)
{
	struct pool *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->id = object_ids(1);
	for (size_t i = 0; i < sizeof p->reuse / sizeof p->reuse[0]; i++)
		p->reuse[i] = 1;
	p->next = pools;
	pools = p;
	return p;
}

/* Frees a destroyed pool if none of its memory is in use. */
static void drop_unused(struct pool *p)
{
	struct pool **at = &pools;

	if (!p->destroyed || p->used)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

/* Creates the device's default pool when it is first needed. */
static int make_standard(void)
{
	struct pool *p;

	if (standard)
		return 0;
	if (!(p = add()))
		return CUDA_ERROR_OUT_OF_MEMORY;
	standard = current = p->id;
	return 0;
}

/* Returns the pool of a program's handle, or NULL. */
static struct pool *pool_of(CUmemoryPool h)
{
	struct pool *p = h ? find((uintptr_t)h) : NULL;

	return p && !p->destroyed ? p : NULL;
}

int pool_take(CUmemoryPool h, uint64_t size, uint64_t *id)
{
	struct pool *p;
	int err;

	pthread_mutex_lock(&lock);
	if ((err = make_standard()) == 0) {
		p = h ? pool_of(h) : find(current);
		if (!p || p->imported)
			err = CUDA_ERROR_INVALID_VALUE;
		else if (p->max && (p->used > p->max || size > p->max - p->used))
			err = CUDA_ERROR_OUT_OF_MEMORY;
		else if (size > UINT64_MAX - p->used)
			err = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!err) {
		p->used += size;
		*id = p->id;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void pool_taken(uint64_t id)
{
	struct pool *p;

	pthread_mutex_lock(&lock);
	if ((p = find(id)) != NULL) {
		if (p->used > p->used_high)
			p->used_high = p->used;
		if (p->used > p->reserved_high)
			p->reserved_high = p->used;
	}
	pthread_mutex_unlock(&lock);
}

void pool_give(const struct range *r)
{
	struct pool *p;

	if (!r->pool)
		return;
	pthread_mutex_lock(&lock);
	if ((p = find(r->pool)) != NULL) {
		p->used -= r->size;
		drop_unused(p);
	}
	pthread_mutex_unlock(&lock);
}

void pool_opened(uint64_t id, uint64_t size)
{
	struct pool *p;

	pthread_mutex_lock(&lock);
	if ((p = find(id)) != NULL)
		p->used += size;
	pthread_mutex_unlock(&lock);
	pool_taken(id);
}

int pool_token(uint64_t id, bool imported, uint64_t token[2])
{
	int err = CUDA_ERROR_INVALID_VALUE;
	const struct pool *p;

	pthread_mutex_lock(&lock);
	if ((p = find(id)) != NULL && !p->destroyed && (imported ? p->imported : p->shared)) {
		memcpy(token, p->token, sizeof p->token);
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int pool_import(const uint64_t token[2], CUmemoryPool *out)
{
	struct pool *p;
	int err;

	pthread_mutex_lock(&lock);
	if ((err = make_standard()) == 0 && !(p = add()))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (!err) {
		p->imported = true;
		memcpy(p->token, token, sizeof p->token);
		*out = handle_of(p->id);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void pools_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	pools = NULL;
	standard = current = 0;
}

static int is_device(const CUmemLocation *l)
{
	if (l->type != LOCATION_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	return l->id == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

CUDA_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	uint64_t token[2] = {0};
	struct pool *p;
	int err;

	SESSION(s);
	(void)s;
	if (!pool || !poolProps || poolProps->allocType != ALLOCATION_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->handleTypes & ~device_attribute(POOL_HANDLE_TYPES))
		return CUDA_ERROR_NOT_SUPPORTED;
	TRY(is_device(&poolProps->location));
	if (poolProps->handleTypes && syscall(SYS_getrandom, token, sizeof token, 0) != (long)sizeof token)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_lock(&lock);
	if ((err = make_standard()) == 0 && !(p = add()))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (!err) {
		p->max = poolProps->maxSize;
		p->shared = poolProps->handleTypes != 0;
		memcpy(p->token, token, sizeof p->token);
		*pool = handle_of(p->id);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* Memory that was allocated from the pool stays allocated, and is freed as usual. */
CUDA_API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct pool *p;
	int err = 0;

	SESSION(s);
	(void)s;
	pthread_mutex_lock(&lock);
	if (!(p = pool_of(pool)) || p->id == standard) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		p->destroyed = true;
		if (current == p->id)
			current = standard;
		drop_unused(p);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* A pool keeps no memory that could be released. */
CUDA_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	int err;

	SESSION(s);
	(void)s, (void)minBytesToKeep;
	pthread_mutex_lock(&lock);
	err = pool_of(pool) ? 0 : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return err;
}

static int get(const struct pool *p, int attribute, void *value)
{
	uint64_t v;

	switch (attribute) {
	case FOLLOW_EVENT_DEPENDENCIES:
	case ALLOW_OPPORTUNISTIC:
	case ALLOW_INTERNAL_DEPENDENCIES: memcpy(value, &p->reuse[attribute - 1], sizeof p->reuse[0]); return 0;
	case RELEASE_THRESHOLD: v = p->threshold; break;
	case RESERVED_CURRENT:
	case USED_CURRENT: v = p->used; break;
	case RESERVED_HIGH: v = p->reserved_high; break;
	case USED_HIGH: v = p->used_high; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(value, &v, sizeof v);
	return 0;
}

/* Resets a maximum to the current value. Other changes are an error. */
static int reset(uint64_t *high, uint64_t now, uint64_t value)
{
	if (value != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*high = now;
	return 0;
}

static int set(struct pool *p, int attribute, const void *value)
{
	uint64_t v;
	int flag;

	if (attribute >= FOLLOW_EVENT_DEPENDENCIES && attribute <= ALLOW_INTERNAL_DEPENDENCIES) {
		memcpy(&flag, value, sizeof flag);
		p->reuse[attribute - 1] = flag != 0;
		return 0;
	}
	if (attribute != RELEASE_THRESHOLD && attribute != RESERVED_HIGH && attribute != USED_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&v, value, sizeof v);
	if (attribute == RESERVED_HIGH)
		return reset(&p->reserved_high, p->used, v);
	if (attribute == USED_HIGH)
		return reset(&p->used_high, p->used, v);
	p->threshold = v;
	return 0;
}

CUDA_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attr, void *value)
{
	struct pool *p;
	int err;

	SESSION(s);
	(void)s;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	err = (p = pool_of(pool)) ? get(p, attr, value) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return err;
}

CUDA_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attr, void *value)
{
	struct pool *p;
	int err;

	SESSION(s);
	(void)s;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	err = (p = pool_of(pool)) ? set(p, attr, value) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return err;
}

/* The device can always read and write its own memory. */
CUDA_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	int err;

	SESSION(s);
	(void)s;
	if (count && !map)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	err = pool_of(pool) ? 0 : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < count && !err; i++) {
		err = is_device(&map[i].location);
		if (!err && map[i].flags != ACCESS_READ_WRITE)
			err = CUDA_ERROR_INVALID_VALUE;
	}
	return err;
}

CUDA_API CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	bool known;

	SESSION(s);
	(void)s;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	known = pool_of(memPool) != NULL;
	pthread_mutex_unlock(&lock);
	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(is_device(location));
	*flags = ACCESS_READ_WRITE;
	return 0;
}

static int device_pool(CUmemoryPool *out, CUdevice dev, const uint64_t *which)
{
	int err;

	SESSION(s);
	(void)s;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if ((err = make_standard()) == 0)
		*out = handle_of(*which);
	pthread_mutex_unlock(&lock);
	return err;
}

CUDA_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return device_pool(pool_out, dev, &standard);
}

CUDA_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return device_pool(pool, dev, &current);
}

CUDA_API CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct pool *p;
	int err;

	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if ((err = (p = pool_of(pool)) ? 0 : CUDA_ERROR_INVALID_VALUE) == 0)
		current = p->id;
	pthread_mutex_unlock(&lock);
	return err;
}

/* Checks a location and a type of memory. Only pools of the device's own memory are supported,
 * not pools on the host or of managed memory. */
static int place_of_pools(const CUmemLocation *l, CUmemAllocationType type)
{
	bool host = l && (l->type == CU_MEM_LOCATION_TYPE_HOST || l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA);
	bool device = l && l->type == LOCATION_DEVICE && l->id == 0;

	SESSION(s);
	(void)s;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return host || device || (l && l->type == CU_MEM_LOCATION_TYPE_NONE) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	if (type != ALLOCATION_PINNED || (!host && !device))
		return CUDA_ERROR_INVALID_VALUE;
	return host ? CUDA_ERROR_NOT_SUPPORTED : 0;
}

CUDA_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	TRY(place_of_pools(location, type));
	return cuDeviceGetDefaultMemPool(pool_out, 0);
}

CUDA_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	TRY(place_of_pools(location, type));
	return cuDeviceGetMemPool(pool, 0);
}

CUDA_API CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	TRY(place_of_pools(location, type));
	return cuDeviceSetMemPool(0, pool);
}
