/* What others keep with a context: values by key, each with a function that is
 * told when the context goes. */
#ifndef BASALT_CONTEXT_STORAGE_H
#define BASALT_CONTEXT_STORAGE_H

#include "state.h"

typedef void (*storage_gone)(CUcontext ctx, void *key, void *value);

/* ctx NULL or -1: the current one. A key that is there gets the new value. */
CUresult context_storage_put(CUcontext ctx, void *key, void *value, storage_gone gone);
/* Forgets the value without telling. */
CUresult context_storage_delete(CUcontext ctx, void *key);
CUresult context_storage_get(void **value, CUcontext ctx, void *key);
/* Tells all of a context and forgets them; before its handle is gone. */
void context_storage_end(uint64_t context);
/* In a forked child: forgets all without telling. */
void context_storage_abandon(void);

#endif
