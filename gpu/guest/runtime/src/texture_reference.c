/* Texture and surface references, which CUDA 12 has removed: variables of the program that stand
 * for variables of its modules. Resources are bound to the driver's reference in the current
 * context, with the sampling state that the program's variable has at that time. */
#if CUDART_MAJOR == 11
#include <pthread.h>
#include <stdlib.h>

#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

enum { READ_AS_INTEGER = 1, NORMALIZED_COORDINATES = 2, SRGB = 16, NO_TRILINEAR = 32 };
enum { OVERRIDE_FORMAT = 1 };

/* The offset of a bound resource, for cudaGetTextureAlignmentOffset. */
struct offset {
	const void *reference;
	size_t bytes;
	struct offset *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct offset *offsets; /* guarded by lock */

static cudaError_t bound_at(const void *reference, size_t bytes)
{
	struct offset *o;

	pthread_mutex_lock(&lock);
	for (o = offsets; o && o->reference != reference;)
		o = o->next;
	if (!o && (o = calloc(1, sizeof *o)) != NULL) {
		o->reference = reference;
		o->next = offsets;
		offsets = o;
	}
	if (o)
		o->bytes = bytes;
	pthread_mutex_unlock(&lock);
	return o ? cudaSuccess : cudaErrorMemoryAllocation;
}

static void unbound(const void *reference)
{
	pthread_mutex_lock(&lock);
	for (struct offset **at = &offsets; *at; at = &(*at)->next) {
		if ((*at)->reference == reference) {
			struct offset *gone = *at;

			*at = gone->next;
			free(gone);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Finds the driver's reference, and sets its sampling state from the program's. */
static cudaError_t sampled(const struct textureReference *t, const struct cudaChannelFormatDesc *desc, void **out)
{
	bool normalized_read = false;
	unsigned int flags;
	cudaError_t err;
	void *r;
	int result;

	if ((err = symbol_reference(t, false, &normalized_read, &r)) != 0)
		return err;
	flags = (normalized_read || desc->f == cudaChannelFormatKindFloat ? 0u : READ_AS_INTEGER) |
		(t->normalized ? NORMALIZED_COORDINATES : 0u) | (t->sRGB ? SRGB : 0u) | (t->disableTrilinearOptimization ? NO_TRILINEAR : 0u);
	result = call_cuTexRefSetFlags(r, flags);
	for (int i = 0; i < 3 && !result; i++)
		result = call_cuTexRefSetAddressMode(r, i, (int)t->addressMode[i]);
	if (!result && !(result = call_cuTexRefSetFilterMode(r, (int)t->filterMode)) &&
	    !(result = call_cuTexRefSetMaxAnisotropy(r, t->maxAnisotropy)) &&
	    !(result = call_cuTexRefSetMipmapFilterMode(r, (int)t->mipmapFilterMode)) &&
	    !(result = call_cuTexRefSetMipmapLevelBias(r, t->mipmapLevelBias)))
		result = call_cuTexRefSetMipmapLevelClamp(r, t->minMipmapLevelClamp, t->maxMipmapLevelClamp);
	*out = r;
	return from_driver(result);
}

cudaError_t own_cudaBindTexture(size_t *offset, const struct textureReference *texref, const void *devPtr,
				const struct cudaChannelFormatDesc *desc, size_t size)
{
	unsigned int channels;
	size_t within = 0;
	cudaError_t err;
	int format;
	void *r;

	if (!texref)
		return cudaErrorInvalidTexture;
	if (!desc || !(format = driver_format(desc, &channels)))
		return cudaErrorInvalidChannelDescriptor;
	if ((err = sampled(texref, desc, &r)) != 0 || (err = from_driver(call_cuTexRefSetFormat(r, format, (int)channels))) != 0 ||
	    (err = from_driver(call_cuTexRefSetAddress_v2(offset ? &within : NULL, r, device_address(devPtr), size))) != 0)
		return err;
	if (offset)
		*offset = within;
	return bound_at(texref, within);
}

cudaError_t own_cudaBindTexture2D(size_t *offset, const struct textureReference *texref, const void *devPtr,
				  const struct cudaChannelFormatDesc *desc, size_t width, size_t height, size_t pitch)
{
	struct {
		size_t width, height;
		int format;
		unsigned int channels;
	} d = {width, height, 0, 0};
	cudaError_t err;
	void *r;

	if (!texref)
		return cudaErrorInvalidTexture;
	if (!desc || !(d.format = driver_format(desc, &d.channels)))
		return cudaErrorInvalidChannelDescriptor;
	if ((err = sampled(texref, desc, &r)) != 0 ||
	    (err = from_driver(call_cuTexRefSetAddress2D_v3(r, &d, device_address(devPtr), pitch))) != 0)
		return err;
	if (offset)
		*offset = 0;
	return bound_at(texref, 0);
}

cudaError_t own_cudaBindTextureToArray(const struct textureReference *texref, cudaArray_const_t array,
				       const struct cudaChannelFormatDesc *desc)
{
	cudaError_t err;
	void *r;

	if (!texref)
		return cudaErrorInvalidTexture;
	if (!desc)
		return cudaErrorInvalidChannelDescriptor;
	if ((err = sampled(texref, desc, &r)) != 0 || (err = from_driver(call_cuTexRefSetArray(r, array, OVERRIDE_FORMAT))) != 0)
		return err;
	return bound_at(texref, 0);
}

cudaError_t own_cudaBindTextureToMipmappedArray(const struct textureReference *texref, cudaMipmappedArray_const_t mipmappedArray,
						const struct cudaChannelFormatDesc *desc)
{
	cudaError_t err;
	void *r;

	if (!texref)
		return cudaErrorInvalidTexture;
	if (!desc)
		return cudaErrorInvalidChannelDescriptor;
	if ((err = sampled(texref, desc, &r)) != 0 ||
	    (err = from_driver(call_cuTexRefSetMipmappedArray(r, mipmappedArray, OVERRIDE_FORMAT))) != 0)
		return err;
	return bound_at(texref, 0);
}

cudaError_t own_cudaBindSurfaceToArray(const struct surfaceReference *surfref, cudaArray_const_t array,
				       const struct cudaChannelFormatDesc *desc)
{
	cudaError_t err;
	void *r;

	if (!surfref)
		return cudaErrorInvalidSurface;
	if (!desc)
		return cudaErrorInvalidChannelDescriptor;
	if ((err = symbol_reference(surfref, true, NULL, &r)) != 0)
		return err;
	return from_driver(call_cuSurfRefSetArray(r, array, 0));
}

/* Does not change the driver's reference, because kernels must not read it now. */
cudaError_t own_cudaUnbindTexture(const struct textureReference *texref)
{
	if (!texref)
		return cudaErrorInvalidTexture;
	unbound(texref);
	return cudaSuccess;
}

cudaError_t own_cudaGetTextureAlignmentOffset(size_t *offset, const struct textureReference *texref)
{
	struct offset *o;

	if (!offset || !texref)
		return texref ? cudaErrorInvalidValue : cudaErrorInvalidTexture;
	pthread_mutex_lock(&lock);
	for (o = offsets; o && o->reference != texref;)
		o = o->next;
	if (o)
		*offset = o->bytes;
	pthread_mutex_unlock(&lock);
	return o ? cudaSuccess : cudaErrorInvalidTextureBinding;
}

cudaError_t own_cudaGetTextureReference(const struct textureReference **texref, const void *symbol)
{
	if (!texref)
		return cudaErrorInvalidValue;
	if (!symbol_is_reference(symbol, false))
		return cudaErrorInvalidTexture;
	*texref = symbol;
	return cudaSuccess;
}

cudaError_t own_cudaGetSurfaceReference(const struct surfaceReference **surfref, const void *symbol)
{
	if (!surfref)
		return cudaErrorInvalidValue;
	if (!symbol_is_reference(symbol, true))
		return cudaErrorInvalidSurface;
	*surfref = symbol;
	return cudaSuccess;
}
#else
typedef int no_references; /* C does not allow an empty file */
#endif
