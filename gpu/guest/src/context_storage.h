/* Values that other libraries store with a context, by key. Each has a function that is called
 * when the context is destroyed. */
#ifndef BASALT_CONTEXT_STORAGE_H
#define BASALT_CONTEXT_STORAGE_H

#include "state.h"

typedef void (*storage_gone)(CUcontext ctx, void *key, void *value);

/* Stores a value. ctx NULL or -1 is the current context. It replaces the key's old value. */
CUresult context_storage_put(CUcontext ctx, void *key, void *value, storage_gone gone);
/* Removes the value without calling its function. */
CUresult context_storage_delete(CUcontext ctx, void *key);
CUresult context_storage_get(void **value, CUcontext ctx, void *key);
/* Calls the functions of all values of a context and removes them. It is called before the
 * context's handle becomes invalid. */
void context_storage_end(uint64_t context);
/* In a forked child: removes all values without calling their functions. */
void context_storage_abandon(void);

#endif
