/* The objects of texture and surface references: finds them in modules, and sends their state
 * to the worker. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "reference.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while state is sent to the worker */
static struct reference *all;				  /* the references of modules; guarded by lock */
_Atomic uint32_t references_unsent;			  /* changed with lock held */

static void tell_later(struct reference *r)
{
	if (r->sent && r->module && r->bound) {
		r->sent = false;
		atomic_fetch_add(&references_unsent, 1);
	}
}

static void has_been_told(struct reference *r)
{
	if (!r->sent) {
		r->sent = true;
		atomic_fetch_sub(&references_unsent, 1);
	}
}

static void reference_destroy(struct object *o)
{
	struct reference *r = (struct reference *)o;

	pthread_mutex_lock(&lock);
	for (struct reference **at = &all; *at; at = &(*at)->next) {
		if (*at == r) {
			*at = r->next;
			break;
		}
	}
	has_been_told(r);
	pthread_mutex_unlock(&lock);
	free(r->name);
}

/* Creates a reference with the default state: point filter, clamped addresses, and a format of
 * one float. */
static struct reference *make(uint64_t context)
{
	struct reference *r = object_new(sizeof *r, KIND_REFERENCE, object_ids(1), context);

	if (!r)
		return NULL;
	r->o.destroy = reference_destroy;
	r->sent = true;
	r->format = CU_AD_FORMAT_FLOAT;
	r->channels = 1;
	for (int i = 0; i < 3; i++)
		r->sampler.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	return r;
}

int reference_new(void **out)
{
	struct reference *r;
	uint64_t context;

	TRY(context_current(&context));
	if (!(r = make(context)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = handle_of(r->o.id);
	object_add(r);
	return 0;
}

int reference_delete(const void *h)
{
	struct reference *r;
	bool own;

	TRY(reference_get(h, false, &r));
	own = r->module == 0;
	reference_put(r, false);
	return own && object_remove((uintptr_t)h, KIND_REFERENCE) ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int reference_get(const void *h, bool surface, struct reference **r)
{
	uint64_t context;

	SESSION(s);
	(void)s;
	TRY(context_current(&context));
	if (!(*r = object_get(h, KIND_REFERENCE)))
		return CUDA_ERROR_INVALID_VALUE;
	if ((*r)->surface != surface) {
		object_put(*r);
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&lock);
	return 0;
}

void reference_put(struct reference *r, bool changed)
{
	if (changed)
		tell_later(r);
	pthread_mutex_unlock(&lock);
	object_put(r);
}

/* Finds a reference that was requested before, or returns NULL. The caller holds lock. */
static struct reference *find_known(uint64_t module, const char *name, bool surface)
{
	for (struct reference *r = all; r; r = r->next)
		if (r->module == module && r->surface == surface && !r->gone && strcmp(r->name, name) == 0)
			return r;
	return NULL;
}

static int find_in_worker(struct session *s, const struct module *m, const char *name, struct reference *r)
{
	struct bslt_reference_find a = {m->o.id, r->o.id, r->surface, 0};
	size_t n = strlen(name);
	uint32_t slot;
	int err;

	if (worker_minor(s) < 9)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (n == 0 || n > BSLT_MAX_INLINE)
		return CUDA_ERROR_NOT_FOUND;
	TRY(slot_take(s, &slot));
	if ((err = ring_put(s, BSLT_OP_REFERENCE_FIND, 0, slot, &a, sizeof a, name, (uint32_t)n)) != 0) {
		slot_give(s, slot);
		return err;
	}
	return slot_wait(s, slot).result;
}

/* Finds or creates the reference of a name. The caller holds lock, so that there is one object
 * for each name. */
static int find_or_create(struct session *s, const struct module *m, const char *name, bool surface, uint64_t *id)
{
	struct reference *r = find_known(m->o.id, name, surface);
	int err = 0;

	if (r) {
		*id = r->o.id;
		return 0;
	}
	if (!(r = make(m->o.context)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->o.destroy = NULL; /* destroy would acquire the lock, and there is nothing to remove yet */
	r->surface = surface;
	if (!(r->name = strdup(name)))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (err == 0)
		err = find_in_worker(s, m, name, r);
	if (err) {
		free(r->name);
		object_put(r);
		return err;
	}
	r->o.destroy = reference_destroy;
	r->module = m->o.id;
	r->next = all;
	all = r;
	*id = r->o.id;
	object_add(r);
	return 0;
}

static int find(void **out, CUmodule hmod, const char *name, bool surface)
{
	uint64_t context, id;
	struct module *m;
	int err;

	SESSION(s);
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_current(&context));
	if (!(m = object_get(hmod, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	err = find_or_create(s, m, name, surface, &id);
	pthread_mutex_unlock(&lock);
	object_put(m);
	if (err == 0)
		*out = handle_of(id);
	return err;
}

CUDA_API CUresult cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	return find((void **)pTexRef, hmod, name, false);
}

CUDA_API CUresult cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	return find((void **)pSurfRef, hmod, name, true);
}

/* Returns the description of a reference's memory, whose format may have been set later. */
static CUDA_RESOURCE_DESC resource_of(const struct reference *r)
{
	CUDA_RESOURCE_DESC d = r->resource;

	if (d.resType == CU_RESOURCE_TYPE_LINEAR) {
		d.res.linear.format = r->format;
		d.res.linear.numChannels = r->channels;
	}
	return d;
}

/* Sends a reference's state to the worker. Filter and address mode have no effect on linear
 * memory (CUDA driver API, cuTexRefSetFilterMode, cuTexRefSetAddressMode). */
static int send_state(struct session *s, struct reference *r)
{
	struct bslt_texture_create a = {.ctx = r->o.context, .texture = r->o.id, .surface = r->surface};
	CUDA_RESOURCE_DESC resource = resource_of(r);
	int err = texture_resource(&a, &resource);

	_Static_assert(sizeof(struct bslt_reference_bind) == sizeof a, "the same members");
	if (err == CUDA_ERROR_INVALID_HANDLE) { /* the array was destroyed */
		r->bound = false;
		has_been_told(r);
		return 0;
	}
	TRY(err);
	if (!r->surface)
		texture_sampler(&a, &r->sampler);
	if (resource.resType == CU_RESOURCE_TYPE_LINEAR)
		a.filter = a.mip_filter = 0;
	TRY(call(s, BSLT_OP_REFERENCE_BIND, &a, sizeof a).result);
	has_been_told(r);
	return 0;
}

int references_send(struct session *s, uint64_t context, uint64_t module)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	for (struct reference *r = all; r && !err; r = r->next)
		if (!r->sent && !r->gone && r->o.context == context && (!module || r->module == module))
			err = send_state(s, r);
	pthread_mutex_unlock(&lock);
	return err;
}

/* Returns the handle of a reference of the module that is not destroyed yet, or 0. */
static uint64_t next_end(uint64_t module)
{
	uint64_t id = 0;

	pthread_mutex_lock(&lock);
	for (struct reference *r = all; r && !id; r = r->next) {
		if (r->module == module && !r->gone) {
			r->gone = true;
			id = r->o.id;
		}
	}
	pthread_mutex_unlock(&lock);
	return id;
}

void references_end(uint64_t module)
{
	for (uint64_t id; (id = next_end(module)) != 0;)
		(void)object_remove(id, KIND_REFERENCE);
}

void references_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	all = NULL;
	atomic_store(&references_unsent, 0);
}
