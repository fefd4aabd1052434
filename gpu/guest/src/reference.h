/* Texture and surface references. The state that the program sets is stored here, and sent to
 * the worker when a launch may use it. */
#ifndef BASALT_REFERENCE_H
#define BASALT_REFERENCE_H

#include "state.h"

struct reference {
	struct object o; /* KIND_REFERENCE */
	uint64_t module; /* 0: created by cuTexRefCreate, without a module */
	bool surface;
	char *name;
	/* The members below are guarded by the lock of references. */
	bool bound; /* resource is bound */
	bool sent;  /* the worker has the current state, or does not need it */
	bool gone;  /* its module is being unloaded */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	int format; /* format of bound memory */
	unsigned int channels;
	struct reference *next;
};

/* Finds and locks a reference of the program. The caller calls reference_put. */
int reference_get(const void *h, bool surface, struct reference **r);
/* Unlocks a reference. With changed, later launches use its new state. */
void reference_put(struct reference *r, bool changed);
/* Creates a reference without a module. */
int reference_new(void **out);
/* Destroys a reference without a module. */
int reference_delete(const void *h);

/* Sends the worker the changed references of a module (0: of all modules) of a context, before
 * a launch. */
int references_send(struct session *s, uint64_t context, uint64_t module);
/* The number of references whose state the worker does not have. Checking it costs one load. */
extern _Atomic uint32_t references_unsent;
static inline int references_ready(struct session *s, uint64_t context, uint64_t module)
{
	return atomic_load_explicit(&references_unsent, memory_order_relaxed) ? references_send(s, context, module) : 0;
}
/* Destroys the references of a module that is unloaded. */
void references_end(uint64_t module);
void references_abandon(void);

/* texture.c: these functions describe what a texture or surface reads, and how. a->ctx is set. */
int texture_resource(struct bslt_texture_create *a, const CUDA_RESOURCE_DESC *r);
void texture_sampler(struct bslt_texture_create *a, const CUDA_TEXTURE_DESC *t);

#endif
