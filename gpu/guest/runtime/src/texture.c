/* Texture and surface objects. Converts the runtime's descriptions to the driver's. */
#include <string.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

/* CUDA_RESOURCE_DESC */
struct driver_resource {
	int type;
	union {
		const void *handle;
		struct {
			CUdeviceptr address;
			int format;
			unsigned int channels;
			size_t size;
		} linear;
		struct {
			CUdeviceptr address;
			int format;
			unsigned int channels;
			size_t width, height, pitch;
		} pitch2D;
		int reserved[32];
	} res;
	unsigned int flags;
};

/* CUDA_TEXTURE_DESC */
struct driver_texture {
	int address_mode[3], filter_mode;
	unsigned int flags, max_anisotropy;
	int mipmap_filter_mode;
	float mipmap_level_bias, min_level, max_level, border[4];
	int reserved[12];
};
enum { READ_AS_INTEGER = 1, NORMALIZED_COORDINATES = 2, SRGB = 16, NO_TRILINEAR = 32, SEAMLESS_CUBEMAP = 64 };

static cudaError_t resource(const struct cudaResourceDesc *r, struct driver_resource *d)
{
	memset(d, 0, sizeof *d);
	if (!r)
		return cudaErrorInvalidValue;
	d->type = (int)r->resType;
	switch (r->resType) {
	case cudaResourceTypeArray: d->res.handle = r->res.array.array; return cudaSuccess;
	case cudaResourceTypeMipmappedArray: d->res.handle = r->res.mipmap.mipmap; return cudaSuccess;
	case cudaResourceTypeLinear:
		d->res.linear.address = device_address(r->res.linear.devPtr);
		d->res.linear.format = driver_format(&r->res.linear.desc, &d->res.linear.channels);
		d->res.linear.size = r->res.linear.sizeInBytes;
		return d->res.linear.format ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
	case cudaResourceTypePitch2D:
		d->res.pitch2D.address = device_address(r->res.pitch2D.devPtr);
		d->res.pitch2D.format = driver_format(&r->res.pitch2D.desc, &d->res.pitch2D.channels);
		d->res.pitch2D.width = r->res.pitch2D.width;
		d->res.pitch2D.height = r->res.pitch2D.height;
		d->res.pitch2D.pitch = r->res.pitch2D.pitchInBytes;
		return d->res.pitch2D.format ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
	}
	return cudaErrorInvalidValue;
}

static cudaError_t resource_back(const struct driver_resource *d, struct cudaResourceDesc *r)
{
	memset(r, 0, sizeof *r);
	r->resType = (enum cudaResourceType)d->type;
	switch (r->resType) {
	case cudaResourceTypeArray: r->res.array.array = (cudaArray_t)(uintptr_t)d->res.handle; return cudaSuccess;
	case cudaResourceTypeMipmappedArray:
		r->res.mipmap.mipmap = (cudaMipmappedArray_t)(uintptr_t)d->res.handle;
		return cudaSuccess;
	case cudaResourceTypeLinear:
		r->res.linear.devPtr = (void *)(uintptr_t)d->res.linear.address;
		r->res.linear.desc = channel_desc(d->res.linear.format, d->res.linear.channels);
		r->res.linear.sizeInBytes = d->res.linear.size;
		return cudaSuccess;
	case cudaResourceTypePitch2D:
		r->res.pitch2D.devPtr = (void *)(uintptr_t)d->res.pitch2D.address;
		r->res.pitch2D.desc = channel_desc(d->res.pitch2D.format, d->res.pitch2D.channels);
		r->res.pitch2D.width = d->res.pitch2D.width;
		r->res.pitch2D.height = d->res.pitch2D.height;
		r->res.pitch2D.pitchInBytes = d->res.pitch2D.pitch;
		return cudaSuccess;
	}
	return cudaErrorUnknown;
}

static void texture(const struct cudaTextureDesc *t, bool seamless, struct driver_texture *d)
{
	memset(d, 0, sizeof *d);
	for (int i = 0; i < 3; i++)
		d->address_mode[i] = (int)t->addressMode[i];
	d->filter_mode = (int)t->filterMode;
	d->flags = (t->readMode == cudaReadModeElementType ? READ_AS_INTEGER : 0u) |
		   (t->normalizedCoords ? NORMALIZED_COORDINATES : 0u) | (t->sRGB ? SRGB : 0u) |
		   (t->disableTrilinearOptimization ? NO_TRILINEAR : 0u) | (seamless ? SEAMLESS_CUBEMAP : 0u);
	d->max_anisotropy = t->maxAnisotropy;
	d->mipmap_filter_mode = (int)t->mipmapFilterMode;
	d->mipmap_level_bias = t->mipmapLevelBias;
	d->min_level = t->minMipmapLevelClamp;
	d->max_level = t->maxMipmapLevelClamp;
	memcpy(d->border, t->borderColor, sizeof d->border);
}

static cudaError_t create(cudaTextureObject_t *out, const struct cudaResourceDesc *r, const struct cudaTextureDesc *t, bool seamless,
			  const struct cudaResourceViewDesc *view)
{
	struct driver_resource res;
	struct driver_texture tex;
	cudaError_t err;

	if (!out || !t)
		return cudaErrorInvalidValue;
	if (view) /* its formats have other numbers in the driver */
		return cudaErrorNotSupported;
	if ((err = resource(r, &res)) != 0)
		return err;
	texture(t, seamless, &tex);
	return from_driver(call_cuTexObjectCreate(out, &res, &tex, NULL));
}

cudaError_t own_cudaCreateTextureObject(cudaTextureObject_t *pTexObject, const struct cudaResourceDesc *pResDesc,
					const struct cudaTextureDesc *pTexDesc, const struct cudaResourceViewDesc *pResViewDesc)
{
#if CUDART_MAJOR >= 12
	return create(pTexObject, pResDesc, pTexDesc, pTexDesc && pTexDesc->seamlessCubemap, pResViewDesc);
#else
	return create(pTexObject, pResDesc, pTexDesc, false, pResViewDesc);
#endif
}

#if CUDART_MAJOR == 11
/* The first version of the description is the beginning of the second. */
cudaError_t own_cudaCreateTextureObject_v2(cudaTextureObject_t *pTexObject, const struct cudaResourceDesc *pResDesc,
					   const struct cudaTextureDesc_v2 *pTexDesc, const struct cudaResourceViewDesc *pResViewDesc)
{
	return create(pTexObject, pResDesc, (const struct cudaTextureDesc *)pTexDesc, pTexDesc && pTexDesc->seamlessCubemap,
		      pResViewDesc);
}
#endif

cudaError_t own_cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *pResDesc, cudaTextureObject_t texObject)
{
	struct driver_resource d;
	cudaError_t err = pResDesc ? from_driver(call_cuTexObjectGetResourceDesc(&d, texObject)) : cudaErrorInvalidValue;

	return err ? err : resource_back(&d, pResDesc);
}

cudaError_t own_cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject)
{
	struct driver_texture d;
	cudaError_t err = pTexDesc ? from_driver(call_cuTexObjectGetTextureDesc(&d, texObject)) : cudaErrorInvalidValue;

	if (err)
		return err;
	memset(pTexDesc, 0, sizeof *pTexDesc);
	for (int i = 0; i < 3; i++)
		pTexDesc->addressMode[i] = (enum cudaTextureAddressMode)d.address_mode[i];
	pTexDesc->filterMode = (enum cudaTextureFilterMode)d.filter_mode;
	pTexDesc->readMode = d.flags & READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
	pTexDesc->normalizedCoords = (d.flags & NORMALIZED_COORDINATES) != 0;
	pTexDesc->sRGB = (d.flags & SRGB) != 0;
	pTexDesc->disableTrilinearOptimization = (d.flags & NO_TRILINEAR) != 0;
#if CUDART_MAJOR >= 12
	pTexDesc->seamlessCubemap = (d.flags & SEAMLESS_CUBEMAP) != 0;
#endif
	pTexDesc->maxAnisotropy = d.max_anisotropy;
	pTexDesc->mipmapFilterMode = (enum cudaTextureFilterMode)d.mipmap_filter_mode;
	pTexDesc->mipmapLevelBias = d.mipmap_level_bias;
	pTexDesc->minMipmapLevelClamp = d.min_level;
	pTexDesc->maxMipmapLevelClamp = d.max_level;
	memcpy(pTexDesc->borderColor, d.border, sizeof d.border);
	return cudaSuccess;
}

cudaError_t own_cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject, const struct cudaResourceDesc *pResDesc)
{
	struct driver_resource d;
	cudaError_t err = resource(pResDesc, &d);

	if (!pSurfObject)
		return cudaErrorInvalidValue;
	return err ? err : from_driver(call_cuSurfObjectCreate(pSurfObject, &d));
}

cudaError_t own_cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject)
{
	struct driver_resource d;
	cudaError_t err = pResDesc ? from_driver(call_cuSurfObjectGetResourceDesc(&d, surfObject)) : cudaErrorInvalidValue;

	return err ? err : resource_back(&d, pResDesc);
}
