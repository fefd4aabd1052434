/* Arrays. The runtime describes an element by the bits of its channels, the driver by a format
 * and the number of channels. */
#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

/* CUDA_ARRAY3D_DESCRIPTOR */
struct driver_array {
	size_t width, height, depth;
	int format;
	unsigned int channels, flags;
};

/* CUarray_format: the formats of one channel. */
static const struct {
	int format, bits;
	enum cudaChannelFormatKind kind;
} formats[] = {
	{0x01, 8, cudaChannelFormatKindUnsigned}, {0x02, 16, cudaChannelFormatKindUnsigned}, {0x03, 32, cudaChannelFormatKindUnsigned},
	{0x08, 8, cudaChannelFormatKindSigned},   {0x09, 16, cudaChannelFormatKindSigned},   {0x0a, 32, cudaChannelFormatKindSigned},
	{0x10, 16, cudaChannelFormatKindFloat},   {0x20, 32, cudaChannelFormatKindFloat},
};
#define FORMATS (sizeof formats / sizeof *formats)

int driver_format(const struct cudaChannelFormatDesc *d, unsigned int *channels)
{
	const int bits[] = {d->x, d->y, d->z, d->w};

	for (*channels = 0; *channels < 4 && bits[*channels]; ++*channels)
		if (bits[*channels] != d->x)
			return 0;
	for (unsigned int i = *channels; i < 4; i++)
		if (bits[i])
			return 0;
	if (*channels == 0 || *channels == 3)
		return 0;
	for (size_t i = 0; i < FORMATS; i++)
		if (formats[i].bits == d->x && formats[i].kind == d->f)
			return formats[i].format;
	return 0;
}

struct cudaChannelFormatDesc channel_desc(int format, unsigned int channels)
{
	struct cudaChannelFormatDesc d = {0, 0, 0, 0, cudaChannelFormatKindNone};

	for (size_t i = 0; i < FORMATS; i++)
		if (formats[i].format == format) {
			int b = formats[i].bits;

			d = (struct cudaChannelFormatDesc){b, channels > 1 ? b : 0, channels > 2 ? b : 0, channels > 3 ? b : 0,
							   formats[i].kind};
		}
	return d;
}

struct cudaChannelFormatDesc own_cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

static cudaError_t describe(cudaArray_const_t array, struct driver_array *a)
{
	return array ? from_driver(call_cuArray3DGetDescriptor_v2(a, array)) : cudaErrorInvalidResourceHandle;
}

cudaError_t array_element_size(cudaArray_const_t array, size_t *bytes)
{
	struct driver_array a;
	cudaError_t err = describe(array, &a);

	if (!err) {
		*bytes = (size_t)channel_desc(a.format, 1).x / 8 * a.channels;
		if (!*bytes)
			err = cudaErrorNotSupported;
	}
	return err;
}

cudaError_t own_cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned int *flags, cudaArray_t array)
{
	struct driver_array a;
	cudaError_t err = describe(array, &a);

	if (err)
		return err;
	if (desc)
		*desc = channel_desc(a.format, a.channels);
	if (extent)
		*extent = (struct cudaExtent){a.width, a.height, a.depth};
	if (flags)
		*flags = a.flags;
	return cudaSuccess;
}

cudaError_t own_cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	return desc ? own_cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)array) : cudaErrorInvalidValue;
}

static cudaError_t translate(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned int flags,
			     struct driver_array *a)
{
	if (!desc)
		return cudaErrorInvalidValue;
	*a = (struct driver_array){extent.width, extent.height, extent.depth, 0, 0, flags};
	a->format = driver_format(desc, &a->channels);
	return a->format ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

cudaError_t own_cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
				  unsigned int flags)
{
	struct driver_array a;
	cudaError_t err = translate(desc, extent, flags, &a);

	if (!array)
		return cudaErrorInvalidValue;
	return err ? err : from_driver(call_cuArray3DCreate_v2(array, &a));
}

cudaError_t own_cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
				unsigned int flags)
{
	return own_cudaMalloc3DArray(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t own_cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray, const struct cudaChannelFormatDesc *desc,
					 struct cudaExtent extent, unsigned int numLevels, unsigned int flags)
{
	struct driver_array a;
	cudaError_t err = translate(desc, extent, flags, &a);

	if (!mipmappedArray)
		return cudaErrorInvalidValue;
	return err ? err : from_driver(call_cuMipmappedArrayCreate(mipmappedArray, &a, numLevels));
}

cudaError_t own_cudaFreeArray(cudaArray_t array)
{
	return array ? from_driver(call_cuArrayDestroy(array)) : cudaSuccess;
}
