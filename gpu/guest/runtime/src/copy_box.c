/* Copies of two and three dimensions, of memory and of arrays. */
#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

static void memory_side(struct driver_side *s, const void *p, size_t pitch, size_t height, enum cudaMemcpyKind kind, bool is_source)
{
	bool host = kind == cudaMemcpyHostToHost || kind == (is_source ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);

	s->type = kind == cudaMemcpyDefault ? DRIVER_UNIFIED : host ? DRIVER_HOST : DRIVER_DEVICE;
	if (host)
		s->host = p;
	else
		s->device = device_address(p);
	s->pitch = pitch;
	s->height = height;
}

static void array_side(struct driver_side *s, cudaArray_const_t array)
{
	s->type = DRIVER_ARRAY;
	s->array = array;
}

static cudaError_t run(const struct driver_box *b, bool per_thread)
{
	if (!b->width || !b->height || !b->depth)
		return cudaSuccess;
	return from_driver(per_thread ? call_cuMemcpy3D_v2_ptds(b) : call_cuMemcpy3D_v2(b));
}

static cudaError_t run_async(const struct driver_box *b, cudaStream_t stream)
{
	if (!b->width || !b->height || !b->depth)
		return cudaSuccess;
	return from_driver(call_cuMemcpy3DAsync_v2(b, stream));
}

static cudaError_t plain_box(struct driver_box *b, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			     size_t height, enum cudaMemcpyKind kind)
{
	*b = (struct driver_box){.width = width, .height = height, .depth = 1};
	if (width > dpitch || width > spitch)
		return cudaErrorInvalidPitchValue;
	memory_side(&b->src, src, spitch, height, kind, true);
	memory_side(&b->dst, dst, dpitch, height, kind, false);
	return check_kind(kind);
}

cudaError_t own_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
			     enum cudaMemcpyKind kind, bool per_thread)
{
	struct driver_box b;
	cudaError_t err = plain_box(&b, dst, dpitch, src, spitch, width, height, kind);

	return err ? err : run(&b, per_thread);
}

cudaError_t own_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
				  enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct driver_box b;
	cudaError_t err = plain_box(&b, dst, dpitch, src, spitch, width, height, kind);

	return err ? err : run_async(&b, stream);
}

/* Converts one side of a copy of three dimensions. *element becomes the size of an element, if
 * the side is an array. */
static cudaError_t parms_side(struct driver_side *s, cudaArray_t array, struct cudaPitchedPtr ptr, struct cudaPos pos,
			      enum cudaMemcpyKind kind, bool is_source, size_t *element)
{
	size_t bytes = 1;
	cudaError_t err;

	if (!array == !ptr.ptr)
		return cudaErrorInvalidValue;
	if (array) {
		if ((err = array_element_size(array, &bytes)) != 0)
			return err;
		array_side(s, array);
		*element = bytes;
	} else {
		memory_side(s, ptr.ptr, ptr.pitch, ptr.ysize, kind, is_source);
	}
	if (__builtin_mul_overflow(pos.x, bytes, &s->x))
		return cudaErrorInvalidValue;
	s->y = pos.y;
	s->z = pos.z;
	return cudaSuccess;
}

/* Converts a copy to the driver's form. Positions are in bytes for memory and in elements for
 * arrays; the extent is in elements if one of the sides is an array. */
cudaError_t driver_box(const struct cudaMemcpy3DParms *p, struct driver_box *b)
{
	size_t element = 1;
	cudaError_t err;

	*b = (struct driver_box){0};
	if (!p || (err = check_kind(p->kind)) != 0)
		return p ? err : cudaErrorInvalidValue;
	if ((err = parms_side(&b->src, p->srcArray, p->srcPtr, p->srcPos, p->kind, true, &element)) != 0 ||
	    (err = parms_side(&b->dst, p->dstArray, p->dstPtr, p->dstPos, p->kind, false, &element)) != 0)
		return err;
	if (__builtin_mul_overflow(p->extent.width, element, &b->width))
		return cudaErrorInvalidValue;
	b->height = p->extent.height;
	b->depth = p->extent.depth;
	if ((!p->srcArray && b->width > p->srcPtr.pitch) || (!p->dstArray && b->width > p->dstPtr.pitch))
		return cudaErrorInvalidPitchValue;
	return cudaSuccess;
}

static cudaError_t runtime_side(const struct driver_side *s, cudaArray_t *array, struct cudaPitchedPtr *ptr, struct cudaPos *pos, size_t *element)
{
	size_t bytes = 1;
	cudaError_t err;

	if (s->type == DRIVER_ARRAY) {
		*array = (cudaArray_t)(uintptr_t)s->array;
		if ((err = array_element_size(*array, &bytes)) != 0)
			return err;
		*element = bytes;
	} else {
		ptr->ptr = s->type == DRIVER_HOST ? (void *)(uintptr_t)s->host : (void *)(uintptr_t)s->device;
		ptr->pitch = ptr->xsize = s->pitch;
		ptr->ysize = s->height;
	}
	*pos = (struct cudaPos){s->x / bytes, s->y, s->z};
	return cudaSuccess;
}

/* The inverse of driver_box. */
cudaError_t runtime_box(const struct driver_box *b, struct cudaMemcpy3DParms *p)
{
	static const enum cudaMemcpyKind kinds[2][2] = {{cudaMemcpyDeviceToDevice, cudaMemcpyDeviceToHost},
							{cudaMemcpyHostToDevice, cudaMemcpyHostToHost}};
	struct cudaMemcpy3DParms q = {0};
	size_t element = 1;
	cudaError_t err;

	if ((err = runtime_side(&b->src, &q.srcArray, &q.srcPtr, &q.srcPos, &element)) != 0 ||
	    (err = runtime_side(&b->dst, &q.dstArray, &q.dstPtr, &q.dstPos, &element)) != 0)
		return err;
	q.extent = (struct cudaExtent){b->width / element, b->height, b->depth};
	q.kind = b->src.type == DRIVER_UNIFIED || b->dst.type == DRIVER_UNIFIED ? cudaMemcpyDefault
										 : kinds[b->src.type == DRIVER_HOST][b->dst.type == DRIVER_HOST];
	*p = q;
	return cudaSuccess;
}

cudaError_t own_cudaMemcpy3D(const struct cudaMemcpy3DParms *p, bool per_thread)
{
	struct driver_box b;
	cudaError_t err = driver_box(p, &b);

	return err ? err : run(&b, per_thread);
}

cudaError_t own_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	struct driver_box b;
	cudaError_t err = driver_box(p, &b);

	return err ? err : run_async(&b, stream);
}

static cudaError_t to_array(struct driver_box *b, cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
			    size_t height, enum cudaMemcpyKind kind)
{
	*b = (struct driver_box){.width = width, .height = height, .depth = 1};
	if (width > spitch)
		return cudaErrorInvalidPitchValue;
	if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
		return cudaErrorInvalidMemcpyDirection;
	memory_side(&b->src, src, spitch, height, kind, true);
	array_side(&b->dst, dst);
	b->dst.x = x;
	b->dst.y = y;
	return check_kind(kind);
}

static cudaError_t from_array(struct driver_box *b, void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y,
			      size_t width, size_t height, enum cudaMemcpyKind kind)
{
	*b = (struct driver_box){.width = width, .height = height, .depth = 1};
	if (width > dpitch)
		return cudaErrorInvalidPitchValue;
	if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
		return cudaErrorInvalidMemcpyDirection;
	memory_side(&b->dst, dst, dpitch, height, kind, false);
	array_side(&b->src, src);
	b->src.x = x;
	b->src.y = y;
	return check_kind(kind);
}

cudaError_t own_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
				    size_t height, enum cudaMemcpyKind kind, bool per_thread)
{
	struct driver_box b;
	cudaError_t err = to_array(&b, dst, wOffset, hOffset, src, spitch, width, height, kind);

	return err ? err : run(&b, per_thread);
}

cudaError_t own_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
					 size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct driver_box b;
	cudaError_t err = to_array(&b, dst, wOffset, hOffset, src, spitch, width, height, kind);

	return err ? err : run_async(&b, stream);
}

cudaError_t own_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
				      size_t height, enum cudaMemcpyKind kind, bool per_thread)
{
	struct driver_box b;
	cudaError_t err = from_array(&b, dst, dpitch, src, wOffset, hOffset, width, height, kind);

	return err ? err : run(&b, per_thread);
}

cudaError_t own_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
					   size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct driver_box b;
	cudaError_t err = from_array(&b, dst, dpitch, src, wOffset, hOffset, width, height, kind);

	return err ? err : run_async(&b, stream);
}

cudaError_t own_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
					 size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
					 enum cudaMemcpyKind kind, bool per_thread)
{
	struct driver_box b = {.width = width, .height = height, .depth = 1};

	if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	array_side(&b.src, src);
	array_side(&b.dst, dst);
	b.src.x = wOffsetSrc, b.src.y = hOffsetSrc;
	b.dst.x = wOffsetDst, b.dst.y = hOffsetDst;
	return run(&b, per_thread);
}
