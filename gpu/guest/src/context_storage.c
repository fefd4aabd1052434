#include "context_storage.h"

#include <stdlib.h>

struct entry {
	uint64_t context;
	void *key, *value;
	storage_gone gone;
	struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries; /* guarded by lock */

static int which(CUcontext ctx, uint64_t *context)
{
	struct context *c;

	if (!ctx || ctx == (CUcontext)-1)
		return context_current(context);
	if (!(c = context_get(ctx)))
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = c->o.id;
	object_put(c);
	return 0;
}

/* Returns the pointer to an entry, or the one at the list's end. The caller holds lock. */
static struct entry **find(uint64_t context, void *key)
{
	struct entry **e = &entries;

	while (*e && ((*e)->context != context || (*e)->key != key))
		e = &(*e)->next;
	return e;
}

CUresult context_storage_put(CUcontext ctx, void *key, void *value, storage_gone gone)
{
	struct entry **place, *e;
	uint64_t context;
	int err = 0;

	TRY(which(ctx, &context));
	pthread_mutex_lock(&lock);
	place = find(context, key);
	if (!*place && !(*place = calloc(1, sizeof **place)))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if ((e = *place) != NULL) {
		e->context = context;
		e->key = key;
		e->value = value;
		e->gone = gone;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

CUresult context_storage_delete(CUcontext ctx, void *key)
{
	struct entry **place, *e;
	uint64_t context;

	TRY(which(ctx, &context));
	pthread_mutex_lock(&lock);
	place = find(context, key);
	if ((e = *place) != NULL)
		*place = e->next;
	pthread_mutex_unlock(&lock);
	free(e);
	return e ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult context_storage_get(void **value, CUcontext ctx, void *key)
{
	uint64_t context;
	struct entry *e;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(which(ctx, &context));
	pthread_mutex_lock(&lock);
	if ((e = *find(context, key)) != NULL)
		*value = e->value;
	pthread_mutex_unlock(&lock);
	return e ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

/* Calls the functions one after the other without the lock, because they may call this
 * library. */
void context_storage_end(uint64_t context)
{
	for (;;) {
		struct entry **place = &entries, *e;

		pthread_mutex_lock(&lock);
		while (*place && (*place)->context != context)
			place = &(*place)->next;
		if ((e = *place) != NULL)
			*place = e->next;
		pthread_mutex_unlock(&lock);
		if (!e)
			return;
		if (e->gone)
			e->gone(handle_of(context), e->key, e->value);
		free(e);
	}
}

void context_storage_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	entries = NULL;
}
