/* Texture and surface objects. Kernels use the device's number of the object; this library
 * stores the program's description of it. */
#include <stddef.h>
#include <string.h>

#include "capture.h"
#include "reference.h"

/* The program's description of an object. */
struct said {
	bool surface, viewed;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC desc;
	CUDA_RESOURCE_VIEW_DESC view;
};

struct texture {
	struct object o;
	uint64_t wire;
	struct said said;
};

/* Returns the ID of an object in the table. It contains the context, because objects in two
 * contexts of a physical GPU may have the same number. */
static uint64_t key(uint64_t context, uint64_t object)
{
	return 1ull << 63 ^ context << 40 ^ object;
}

/* Returns 0 if no vGPU supports the format. */
uint64_t channel_bytes(int format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	}
	return 0;
}

static int on_array(struct bslt_texture_create *a, const void *h, enum kind kind)
{
	struct array *o = object_get(h, kind);
	int err = 0;

	if (!o)
		return CUDA_ERROR_INVALID_HANDLE;
	if (o->o.context != a->ctx)
		err = CUDA_ERROR_INVALID_CONTEXT;
	a->base = o->wire;
	a->level = o->level;
	object_put(o);
	return err;
}

static int on_memory(struct bslt_texture_create *a, CUdeviceptr address, int format, unsigned int channels)
{
	a->base = address;
	a->format = (uint32_t)format;
	a->channels = channels;
	return channel_bytes(format) && channels ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int texture_resource(struct bslt_texture_create *a, const CUDA_RESOURCE_DESC *r)
{
	a->resource = (uint32_t)r->resType;
	if (r->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return on_array(a, r->res.array.hArray, KIND_ARRAY);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return on_array(a, r->res.mipmap.hMipmappedArray, KIND_MIPMAP);
	case CU_RESOURCE_TYPE_LINEAR:
		TRY(on_memory(a, r->res.linear.devPtr, r->res.linear.format, r->res.linear.numChannels));
		a->width = r->res.linear.sizeInBytes / (channel_bytes(r->res.linear.format) * r->res.linear.numChannels);
		return 0;
	case CU_RESOURCE_TYPE_PITCH2D:
		TRY(on_memory(a, r->res.pitch2D.devPtr, r->res.pitch2D.format, r->res.pitch2D.numChannels));
		a->width = r->res.pitch2D.width;
		a->height = r->res.pitch2D.height;
		a->pitch = r->res.pitch2D.pitchInBytes;
		return 0;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

void texture_sampler(struct bslt_texture_create *a, const CUDA_TEXTURE_DESC *t)
{
	a->flags = t->flags;
	for (int i = 0; i < 3; i++)
		a->address[i] = (uint32_t)t->addressMode[i];
	a->filter = (uint32_t)t->filterMode;
	a->mip_filter = (uint32_t)t->mipmapFilterMode;
	a->anisotropy = t->maxAnisotropy;
	a->bias = t->mipmapLevelBias;
	a->min_level = t->minMipmapLevelClamp;
	a->max_level = t->maxMipmapLevelClamp;
	memcpy(a->border, t->borderColor, sizeof a->border);
}

static void view(struct bslt_texture_create *a, const CUDA_RESOURCE_VIEW_DESC *v)
{
	a->view = (uint32_t)v->format;
	a->view_width = v->width;
	a->view_height = v->height;
	a->view_depth = v->depth;
	a->first_level = v->firstMipmapLevel;
	a->last_level = v->lastMipmapLevel;
	a->first_layer = v->firstLayer;
	a->last_layer = v->lastLayer;
}

static int enter(struct bslt_texture_create *a, struct texture *o, unsigned long long *out)
{
	struct answer r;

	SESSION(s);
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&a->ctx));
	TRY(texture_resource(a, &o->said.resource));
	a->texture = o->wire = object_ids(1);
	r = call(s, BSLT_OP_TEXTURE_CREATE, a, sizeof *a);
	TRY(r.result);
	o->o.id = key(a->ctx, r.value0);
	o->o.context = a->ctx;
	object_add(o);
	*out = r.value0;
	return 0;
}

static int create(struct bslt_texture_create *a, const struct said *said, unsigned long long *out)
{
	struct texture *o = object_new(sizeof *o, KIND_TEXTURE, 0, 0);
	int err;

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->said = *said;
	if ((err = enter(a, o, out)) != 0)
		object_put(o);
	return err;
}

CUDA_API CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
				    const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	struct bslt_texture_create a = {0};
	struct said said = {0};

	if (!pTexObject || !pResDesc || !pTexDesc)
		return CUDA_ERROR_INVALID_VALUE;
	said.resource = *pResDesc;
	said.desc = *pTexDesc;
	texture_sampler(&a, pTexDesc);
	if (pResViewDesc && pResViewDesc->format) {
		said.viewed = true;
		said.view = *pResViewDesc;
		view(&a, pResViewDesc);
	}
	return create(&a, &said, pTexObject);
}

CUDA_API CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	struct bslt_texture_create a = {.surface = 1};
	struct said said = {.surface = true};

	if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	said.resource = *pResDesc;
	return create(&a, &said, pSurfObject);
}

/* Finds an object of the current context. The caller calls object_put. */
static int find(unsigned long long object, bool surface, struct texture **o)
{
	uint64_t context;

	SESSION(s);
	(void)s;
	TRY(context_current(&context));
	if (!(*o = object_get(handle_of(key(context, object)), KIND_TEXTURE)))
		return CUDA_ERROR_INVALID_VALUE;
	if ((*o)->said.surface == surface)
		return 0;
	object_put(*o);
	return CUDA_ERROR_INVALID_VALUE;
}

static int destroy(unsigned long long object, bool surface)
{
	struct bslt_texture_destroy a;
	struct texture *o;
	uint64_t id;

	SESSION(s);
	TRY(find(object, surface, &o));
	id = o->o.id;
	a.texture = o->wire;
	object_put(o);
	if (!object_remove(id, KIND_TEXTURE))
		return CUDA_ERROR_INVALID_VALUE;
	return ring_put(s, BSLT_OP_TEXTURE_DESTROY, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

CUDA_API CUresult cuTexObjectDestroy(CUtexObject texObject)
{
	return destroy(texObject, false);
}

CUDA_API CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return destroy(surfObject, true);
}

/* Returns a member of an object's description. */
static int describe(unsigned long long object, bool surface, size_t at, void *out, size_t size)
{
	struct texture *o;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(find(object, surface, &o));
	memcpy(out, (const char *)&o->said + at, size);
	object_put(o);
	return 0;
}

CUDA_API CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	return describe(texObject, false, offsetof(struct said, resource), pResDesc, sizeof *pResDesc);
}

CUDA_API CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	return describe(surfObject, true, offsetof(struct said, resource), pResDesc, sizeof *pResDesc);
}

CUDA_API CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	return describe(texObject, false, offsetof(struct said, desc), pTexDesc, sizeof *pTexDesc);
}

CUDA_API CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	struct texture *o;
	bool viewed;

	if (!pResViewDesc)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(find(texObject, false, &o));
	if ((viewed = o->said.viewed))
		*pResViewDesc = o->said.view;
	object_put(o);
	return viewed ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format, unsigned int numChannels,
						     CUdevice dev)
{
	enum { MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69 };

	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!maxWidthInElements || !channel_bytes(format) || (numChannels != 1 && numChannels != 2 && numChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	*maxWidthInElements = (size_t)device_attribute(MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
	return 0;
}
