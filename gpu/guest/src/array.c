/* Arrays, with and without mipmap levels. The worker has one array for all levels; a level
 * that the program requests is an object of this library. */
#include "capture.h"

static int create(CUDA_ARRAY3D_DESCRIPTOR d, uint32_t levels, enum kind kind, void **out)
{
	struct bslt_array_create a = {.width = d.Width, .height = d.Height, .depth = d.Depth, .format = (uint32_t)d.Format,
				      .channels = d.NumChannels, .flags = d.Flags, .levels = levels};
	struct array *o;
	int err;

	SESSION(s);
	if (capturing())
		TRY(capture_unsafe());
	TRY(context_working(&a.ctx));
	a.array = object_ids(1 + (uint64_t)(kind == KIND_MIPMAP ? levels : 0));
	if (!(o = object_new(sizeof *o, kind, a.array, a.ctx)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->desc = d;
	o->wire = a.array;
	o->levels = levels;
	o->first = a.array + 1;
	if ((err = call(s, BSLT_OP_ARRAY_CREATE, &a, sizeof a).result) != 0) {
		object_put(o);
		return err;
	}
	object_add(o);
	*out = handle_of(a.array);
	return 0;
}

CUDA_API CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	void *h;

	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(create(*pAllocateArray, 1, KIND_ARRAY, &h));
	*pHandle = h;
	return 0;
}

CUDA_API CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	if (!pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = pAllocateArray->Width, .Height = pAllocateArray->Height,
				      .Format = pAllocateArray->Format, .NumChannels = pAllocateArray->NumChannels};
	return cuArray3DCreate_v2(pHandle, &d);
}

/* Returns how often the largest side can be halved, plus one. */
static uint32_t most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t side = d->Width > d->Height ? d->Width : d->Height;
	uint32_t n = 0;

	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && d->Depth > side)
		side = d->Depth;
	for (; side; side >>= 1)
		n++;
	return n;
}

CUDA_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
					 unsigned int numMipmapLevels)
{
	uint32_t most;
	void *h;

	if (!pHandle || !pMipmappedArrayDesc || numMipmapLevels == 0 || (most = most_levels(pMipmappedArrayDesc)) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(create(*pMipmappedArrayDesc, numMipmapLevels < most ? numMipmapLevels : most, KIND_MIPMAP, &h));
	*pHandle = h;
	return 0;
}

static size_t half(size_t n, uint32_t times)
{
	return n == 0 ? 0 : n >> times ? n >> times : 1;
}

/* Finds the object of a level, and creates it at the first request. */
static int level_of(const struct array *m, uint32_t level)
{
	uint64_t id = m->first + level;
	struct array *o = object_get(handle_of(id), KIND_ARRAY);

	if (o) {
		object_put(o);
		return 0;
	}
	if (!(o = object_new(sizeof *o, KIND_ARRAY, id, m->o.context)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->desc = m->desc;
	o->desc.Width = half(m->desc.Width, level);
	o->desc.Height = half(m->desc.Height, level);
	if (!(m->desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		o->desc.Depth = half(m->desc.Depth, level);
	o->wire = m->wire;
	o->level = level;
	object_add(o);
	return 0;
}

CUDA_API CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* so that a level gets one object */
	struct array *m;
	int err = CUDA_ERROR_INVALID_VALUE;

	SESSION(s);
	(void)s;
	if (!pLevelArray)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(m = object_get(hMipmappedArray, KIND_MIPMAP)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (level < m->levels) {
		pthread_mutex_lock(&lock);
		err = level_of(m, level);
		pthread_mutex_unlock(&lock);
	}
	if (err == 0)
		*pLevelArray = handle_of(m->first + level);
	object_put(m);
	return err;
}

static int destroy(const void *h, enum kind kind)
{
	struct array *o = object_get(h, kind);
	struct bslt_array_destroy a = {(uintptr_t)h};
	uint64_t first, levels;
	int err;

	SESSION(s);
	if (capturing())
		TRY(capture_unsafe());
	if (!o)
		return CUDA_ERROR_INVALID_HANDLE;
	first = o->first;
	levels = kind == KIND_MIPMAP ? o->levels : 0;
	err = o->wire == a.array ? 0 : CUDA_ERROR_INVALID_HANDLE; /* a level is destroyed with the whole array only */
	object_put(o);
	TRY(err);
	if (!object_remove(a.array, kind))
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint64_t i = 0; i < levels; i++)
		(void)object_remove(first + i, KIND_ARRAY);
	return call(s, BSLT_OP_ARRAY_DESTROY, &a, sizeof a).result;
}

CUDA_API CUresult cuArrayDestroy(CUarray hArray)
{
	return destroy(hArray, KIND_ARRAY);
}

CUDA_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	return destroy(hMipmappedArray, KIND_MIPMAP);
}

CUDA_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	struct array *o;

	SESSION(s);
	(void)s;
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(o = object_get(hArray, KIND_ARRAY)))
		return CUDA_ERROR_INVALID_HANDLE;
	*pArrayDescriptor = o->desc;
	object_put(o);
	return 0;
}

CUDA_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuArray3DGetDescriptor_v2(&d, hArray));
	*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
	return 0;
}

/* Checks the arguments of queries about sparse, deferred or planar arrays. No array of a vGPU
 * is one of these. */
static int is_plain(const void *h, enum kind kind, const void *out)
{
	void *o;

	SESSION(s);
	(void)s;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(o = object_get(h, kind)))
		return CUDA_ERROR_INVALID_HANDLE;
	object_put(o);
	return CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	return device != 0 ? CUDA_ERROR_INVALID_DEVICE : is_plain(array, KIND_ARRAY, memoryRequirements);
}

CUDA_API CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
							CUdevice device)
{
	return device != 0 ? CUDA_ERROR_INVALID_DEVICE : is_plain(mipmap, KIND_MIPMAP, memoryRequirements);
}

CUDA_API CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	(void)planeIdx;
	return is_plain(hArray, KIND_ARRAY, pPlaneArray);
}

CUDA_API CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	return is_plain(array, KIND_ARRAY, sparseProperties);
}

CUDA_API CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	return is_plain(mipmap, KIND_MIPMAP, sparseProperties);
}
