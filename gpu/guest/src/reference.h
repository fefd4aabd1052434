/* Texture and surface references: what the program has said of them is kept here, and
 * told to the worker when a launch may read it. */
#ifndef BASALT_REFERENCE_H
#define BASALT_REFERENCE_H

#include "state.h"

struct reference {
	struct object o; /* KIND_REFERENCE */
	uint64_t module; /* 0: of no module, made by cuTexRefCreate */
	bool surface;
	char *name;
	/* Guarded by the references' lock. */
	bool bound; /* to what resource says */
	bool told;  /* the worker knows it as it is, or there is nothing to know */
	bool gone;  /* its module is being unloaded */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	int format; /* of memory */
	unsigned int channels;
	struct reference *next;
};

/* A reference of the program, locked; reference_put it. */
int reference_get(const void *h, bool surface, struct reference **r);
/* changed: launches from now on are to see it as it is now. */
void reference_put(struct reference *r, bool changed);
/* A new one of no module. */
int reference_new(void **out);
/* Destroys one of no module. */
int reference_delete(const void *h);

/* Tells the worker of the references of a module (0: of all modules) of a context, before a launch. */
int references_tell(struct session *s, uint64_t context, uint64_t module);
/* Whether there is anything to tell, which costs one load. */
extern _Atomic uint32_t references_untold;
static inline int references_ready(struct session *s, uint64_t context, uint64_t module)
{
	return atomic_load_explicit(&references_untold, memory_order_relaxed) ? references_tell(s, context, module) : 0;
}
/* A module is being unloaded: its references end. */
void references_end(uint64_t module);
void references_abandon(void);

/* texture.c: describes what a texture or surface reads, and how. Its context is set. */
int texture_resource(struct bslt_texture_create *a, const CUDA_RESOURCE_DESC *r);
void texture_sampler(struct bslt_texture_create *a, const CUDA_TEXTURE_DESC *t);

#endif
