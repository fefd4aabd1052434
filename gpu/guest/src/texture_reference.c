/* The functions that set and query the state of texture and surface references (CUDA driver
 * API, "Texture Reference Management", "Surface Reference Management"). A launch uses the state
 * at the time of its call. */
#include <string.h>

#include "reference.h"

CUDA_API CUresult cuTexRefCreate(CUtexref *pTexRef)
{
	SESSION(s);
	(void)s;
	return pTexRef ? reference_new((void **)pTexRef) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuTexRefDestroy(CUtexref hTexRef)
{
	return reference_delete(hTexRef);
}

/* Binds a resource of the given context to a reference. */
static int bind(const void *h, bool surface, uint64_t context, const CUDA_RESOURCE_DESC *to, int format, unsigned int channels)
{
	struct reference *r;
	bool good;

	TRY(reference_get(h, surface, &r));
	if ((good = r->o.context == context)) {
		r->resource = *to;
		r->bound = true;
		r->format = format;
		r->channels = channels;
	}
	reference_put(r, good);
	return good ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

/* Binds an array. The reference gets its format. */
static int bind_array(const void *h, bool surface, const void *array, enum kind kind)
{
	CUDA_RESOURCE_DESC to = {.resType = kind == KIND_MIPMAP ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY};
	struct array *o = object_get(array, kind);
	CUDA_ARRAY3D_DESCRIPTOR d;
	uint64_t context;

	if (!o)
		return CUDA_ERROR_INVALID_HANDLE;
	d = o->desc;
	context = o->o.context;
	object_put(o);
	if (surface && !(d.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == KIND_MIPMAP)
		to.res.mipmap.hMipmappedArray = handle_of((uintptr_t)array);
	else
		to.res.array.hArray = handle_of((uintptr_t)array);
	return bind(h, surface, context, &to, d.Format, d.NumChannels);
}

CUDA_API CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	SESSION(s);
	(void)s;
	return Flags == CU_TRSA_OVERRIDE_FORMAT ? bind_array(hTexRef, false, hArray, KIND_ARRAY) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
	SESSION(s);
	(void)s;
	return Flags == CU_TRSA_OVERRIDE_FORMAT ? bind_array(hTexRef, false, hMipmappedArray, KIND_MIPMAP) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
	SESSION(s);
	(void)s;
	return Flags == 0 ? bind_array(hSurfRef, true, hArray, KIND_ARRAY) : CUDA_ERROR_INVALID_VALUE;
}

/* Finds the context whose work can read n bytes from an address on. */
static int memory_context(uint64_t address, uint64_t n, uint64_t *context)
{
	struct range r;

	if (host_range(address, n))
		return context_current(context);
	if (!device_range(address, n) || !range_find(SPACE_DEVICE, address, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*context = r.context;
	return 0;
}

static bool format_valid(int format, unsigned int channels)
{
	return channel_bytes(format) && (channels == 1 || channels == 2 || channels == 4);
}

/* The texture begins at an aligned address. The program has to add the bytes between that and
 * the given address. */
CUDA_API CUresult cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	enum { TEXTURE_ALIGNMENT = 14, MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69 };
	CUDA_RESOURCE_DESC to = {.resType = CU_RESOURCE_TYPE_LINEAR};
	uint64_t alignment, offset, context;
	struct reference *r;
	int err = 0;

	SESSION(s);
	(void)s;
	alignment = (uint64_t)device_attribute(TEXTURE_ALIGNMENT);
	offset = alignment ? dptr % alignment : 0;
	if (bytes == 0 || (offset && !ByteOffset))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(memory_context(dptr - offset, bytes + offset, &context));
	to.res.linear.devPtr = dptr - offset;
	to.res.linear.sizeInBytes = bytes + offset;
	TRY(reference_get(hTexRef, false, &r));
	if (r->o.context != context) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (bytes / (channel_bytes(r->format) * r->channels) > (size_t)device_attribute(MAXIMUM_TEXTURE1D_LINEAR_WIDTH)) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		r->resource = to;
		r->bound = true;
	}
	reference_put(r, !err);
	if (!err && ByteOffset)
		*ByteOffset = offset;
	return err;
}

CUDA_API CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	enum { TEXTURE_ALIGNMENT = 14, TEXTURE_PITCH_ALIGNMENT = 51, LINEAR_WIDTH = 70, LINEAR_HEIGHT = 71, LINEAR_PITCH = 72 };
	CUDA_RESOURCE_DESC to = {.resType = CU_RESOURCE_TYPE_PITCH2D};
	uint64_t context;
	size_t row;

	SESSION(s);
	(void)s;
	if (!desc || !format_valid(desc->Format, desc->NumChannels) || !desc->Width || !desc->Height ||
	    desc->Width > (size_t)device_attribute(LINEAR_WIDTH) || desc->Height > (size_t)device_attribute(LINEAR_HEIGHT) ||
	    Pitch > (size_t)device_attribute(LINEAR_PITCH))
		return CUDA_ERROR_INVALID_VALUE;
	row = desc->Width * channel_bytes(desc->Format) * desc->NumChannels;
	if (dptr % (uint64_t)device_attribute(TEXTURE_ALIGNMENT) || Pitch % (size_t)device_attribute(TEXTURE_PITCH_ALIGNMENT) ||
	    Pitch < row)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(memory_context(dptr, (desc->Height - 1) * Pitch + row, &context));
	to.res.pitch2D.devPtr = dptr;
	to.res.pitch2D.format = desc->Format;
	to.res.pitch2D.numChannels = desc->NumChannels;
	to.res.pitch2D.width = desc->Width;
	to.res.pitch2D.height = desc->Height;
	to.res.pitch2D.pitchInBytes = Pitch;
	return bind(hTexRef, false, context, &to, desc->Format, desc->NumChannels);
}

/* It cannot follow cuTexRefSetAddress2D. */
CUDA_API CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	struct reference *r;
	int err = 0;

	TRY(reference_get(hTexRef, false, &r));
	if (!format_valid(fmt, (unsigned int)NumPackedComponents) || (r->bound && r->resource.resType == CU_RESOURCE_TYPE_PITCH2D)) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		r->format = fmt;
		r->channels = (unsigned int)NumPackedComponents;
	}
	reference_put(r, !err);
	return err;
}

/* Sets a member of the sampling state, if the value is valid. */
#define SET(handle, valid, member, value)                                                                              \
	do {                                                                                                           \
		struct reference *r;                                                                                   \
		bool good = (valid);                                                                                   \
		TRY(reference_get(handle, false, &r));                                                                 \
		if (good)                                                                                              \
			r->sampler.member = (value);                                                                   \
		reference_put(r, good);                                                                                \
		return good ? 0 : CUDA_ERROR_INVALID_VALUE;                                                            \
	} while (0)

CUDA_API CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
	SET(hTexRef, dim >= 0 && dim < 3 && am >= CU_TR_ADDRESS_MODE_WRAP && am <= CU_TR_ADDRESS_MODE_BORDER, addressMode[dim], am);
}

CUDA_API CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	SET(hTexRef, fm == CU_TR_FILTER_MODE_POINT || fm == CU_TR_FILTER_MODE_LINEAR, filterMode, fm);
}

CUDA_API CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	SET(hTexRef, fm == CU_TR_FILTER_MODE_POINT || fm == CU_TR_FILTER_MODE_LINEAR, mipmapFilterMode, fm);
}

CUDA_API CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
	SET(hTexRef, true, mipmapLevelBias, bias);
}

CUDA_API CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
	struct reference *r;

	TRY(reference_get(hTexRef, false, &r));
	r->sampler.minMipmapLevelClamp = minMipmapLevelClamp;
	r->sampler.maxMipmapLevelClamp = maxMipmapLevelClamp;
	reference_put(r, true);
	return 0;
}

CUDA_API CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
	SET(hTexRef, maxAniso <= 16, maxAnisotropy, maxAniso);
}

CUDA_API CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
	const unsigned int known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
				   CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

	SET(hTexRef, !(Flags & ~known), flags, Flags);
}

CUDA_API CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	struct reference *r;

	TRY(reference_get(hTexRef, false, &r));
	if (pBorderColor)
		memcpy(r->sampler.borderColor, pBorderColor, sizeof r->sampler.borderColor);
	reference_put(r, pBorderColor != NULL);
	return pBorderColor ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* Copies the state of a reference, so that the caller does not hold its lock. */
static int snapshot(const void *h, bool surface, struct reference *copy)
{
	struct reference *r;

	TRY(reference_get(h, surface, &r));
	*copy = *r;
	reference_put(r, false);
	return 0;
}

/* Returns a member of the sampling state. */
#define GET(handle, out, valid, member)                                                                                \
	do {                                                                                                           \
		struct reference r;                                                                                    \
		TRY(snapshot(handle, false, &r));                                                                      \
		if (!(out) || !(valid))                                                                                \
			return CUDA_ERROR_INVALID_VALUE;                                                               \
		*(out) = r.sampler.member;                                                                             \
		return 0;                                                                                              \
	} while (0)

CUDA_API CUresult cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
	GET(hTexRef, pam, dim >= 0 && dim < 3, addressMode[dim]);
}

CUDA_API CUresult cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	GET(hTexRef, pfm, true, filterMode);
}

CUDA_API CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	GET(hTexRef, pfm, true, mipmapFilterMode);
}

CUDA_API CUresult cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
	GET(hTexRef, pbias, true, mipmapLevelBias);
}

CUDA_API CUresult cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
	GET(hTexRef, pmaxAniso, true, maxAnisotropy);
}

CUDA_API CUresult cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
	GET(hTexRef, pFlags, true, flags);
}

CUDA_API CUresult cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
	struct reference r;

	TRY(snapshot(hTexRef, false, &r));
	if (!pminMipmapLevelClamp || !pmaxMipmapLevelClamp)
		return CUDA_ERROR_INVALID_VALUE;
	*pminMipmapLevelClamp = r.sampler.minMipmapLevelClamp;
	*pmaxMipmapLevelClamp = r.sampler.maxMipmapLevelClamp;
	return 0;
}

CUDA_API CUresult cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	struct reference r;

	TRY(snapshot(hTexRef, false, &r));
	if (!pBorderColor)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(pBorderColor, r.sampler.borderColor, sizeof r.sampler.borderColor);
	return 0;
}

CUDA_API CUresult cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
	struct reference r;

	TRY(snapshot(hTexRef, false, &r));
	if (pFormat)
		*pFormat = r.format;
	if (pNumChannels)
		*pNumChannels = (int)r.channels;
	return 0;
}

/* Copies the state of a reference. It is an error if no resource of that type is bound. */
static int bound(const void *h, bool surface, int type, const void *out, struct reference *copy)
{
	TRY(snapshot(h, surface, copy));
	return out && copy->bound && copy->resource.resType == type ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
	struct reference r;

	if (bound(hTexRef, false, CU_RESOURCE_TYPE_PITCH2D, pdptr, &r) == 0) {
		*pdptr = r.resource.res.pitch2D.devPtr;
		return 0;
	}
	TRY(bound(hTexRef, false, CU_RESOURCE_TYPE_LINEAR, pdptr, &r));
	*pdptr = r.resource.res.linear.devPtr;
	return 0;
}

CUDA_API CUresult cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
	struct reference r;

	TRY(bound(hTexRef, false, CU_RESOURCE_TYPE_ARRAY, phArray, &r));
	*phArray = r.resource.res.array.hArray;
	return 0;
}

CUDA_API CUresult cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
	struct reference r;

	TRY(bound(hSurfRef, true, CU_RESOURCE_TYPE_ARRAY, phArray, &r));
	*phArray = r.resource.res.array.hArray;
	return 0;
}

CUDA_API CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
	struct reference r;

	TRY(bound(hTexRef, false, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, phMipmappedArray, &r));
	*phMipmappedArray = r.resource.res.mipmap.hMipmappedArray;
	return 0;
}

/* Has no effect, because a function uses the references of its module. */
CUDA_API CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
	struct reference r;
	struct function *f;
	uint64_t module;

	TRY(snapshot(hTexRef, false, &r));
	TRY(function_resolve(hfunc, &f));
	module = f->module;
	object_put(f);
	return texunit == CU_PARAM_TR_DEFAULT && r.module == module ? 0 : CUDA_ERROR_INVALID_VALUE;
}
