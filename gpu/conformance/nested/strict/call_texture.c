/* Arrays, textures, and references of modules. */
#include "call.h"

/* Arrays and textures. */
EXPORT int cuArray3DCreate_v2(u *h, const void *d)
{
	in_context(__func__);
	int r = CALL(cuArray3DCreate_v2, h, d);
	if (r == 0)
		made(*h, ARRAY, 0, 0);
	return r;
}

EXPORT int cuMipmappedArrayCreate(u *h, const void *d, unsigned int levels)
{
	in_context(__func__);
	int r = CALL(cuMipmappedArrayCreate, h, d, levels);
	if (r == 0)
		made(*h, MIPMAP, 0, 0);
	return r;
}

EXPORT int cuMipmappedArrayGetLevel(u *h, u m, unsigned int level)
{
	of_context(__func__, m, MIPMAP);
	int r = CALL(cuMipmappedArrayGetLevel, h, m, level);
	if (r == 0)
		made(*h, ARRAY, 0, m);
	return r;
}

EXPORT int cuArrayDestroy(u h) { ends(__func__, h, ARRAY); return CALL(cuArrayDestroy, h); }
EXPORT int cuMipmappedArrayDestroy(u h) { ends(__func__, h, MIPMAP); return CALL(cuMipmappedArrayDestroy, h); }

/* One side of CUDA_MEMCPY3D: its type, its device address, its array. */
static void side(const char *function, unsigned int type, u device, u array)
{
	if (type == 3)
		object_current(function, array, ARRAY);
	else if (type == 2)
		memory_check(function, device, 1, false);
	else
		broken(function, "memory type %u: gpu/cuda copies between arrays and device memory", type);
}

EXPORT int cuMemcpy3DAsync_v2(const void *c, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	side(__func__, M(unsigned int, c, 32), M(u, c, 48), M(u, c, 56));
	side(__func__, M(unsigned int, c, 120), M(u, c, 136), M(u, c, 144));
	put(stream, 0);
	release();
	return CALL(cuMemcpy3DAsync_v2, c, st);
}

EXPORT int cuTexObjectCreate(u *o, const void *r, const void *t, const void *v)
{
	in_context(__func__);
	int result = CALL(cuTexObjectCreate, o, r, t, v);
	if (result == 0)
		made(*o, TEXTURE, 0, 0);
	return result;
}

EXPORT int cuSurfObjectCreate(u *o, const void *r)
{
	in_context(__func__);
	int result = CALL(cuSurfObjectCreate, o, r);
	if (result == 0)
		made(*o, SURFACE, 0, 0);
	return result;
}

EXPORT int cuTexObjectDestroy(u o) { ends(__func__, o, TEXTURE); return CALL(cuTexObjectDestroy, o); }
EXPORT int cuSurfObjectDestroy(u o) { ends(__func__, o, SURFACE); return CALL(cuSurfObjectDestroy, o); }

/* References of modules: gpu/cuda looks up each name once. */
EXPORT int cuModuleGetTexRef(u *h, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetTexRef, h, m, name);
	if (r == 0)
		made(*h, REFERENCE, 0, m);
	return r;
}

EXPORT int cuModuleGetSurfRef(u *h, u m, const char *name)
{
	of_context(__func__, m, MODULE);
	int r = CALL(cuModuleGetSurfRef, h, m, name);
	if (r == 0)
		made(*h, REFERENCE, 0, m);
	return r;
}

/* A call binds an array, or (0) device memory, which must exist. */
static void binds(const char *function, u reference, u array, u device)
{
	of_context(function, reference, REFERENCE);
	acquire();
	side(function, array ? 3 : 2, device, array);
	release();
}

EXPORT int cuSurfRefSetArray(u h, u a, unsigned int flags) { binds(__func__, h, a, 0); return CALL(cuSurfRefSetArray, h, a, flags); }
EXPORT int cuTexRefSetArray(u h, u a, unsigned int flags) { binds(__func__, h, a, 0); return CALL(cuTexRefSetArray, h, a, flags); }
EXPORT int cuTexRefSetAddress_v2(size_t *o, u h, u d, size_t n) { binds(__func__, h, 0, d); return CALL(cuTexRefSetAddress_v2, o, h, d, n); }
EXPORT int cuTexRefSetAddress2D_v3(u h, const void *desc, u d, size_t pitch) { binds(__func__, h, 0, d); return CALL(cuTexRefSetAddress2D_v3, h, desc, d, pitch); }

EXPORT int cuTexRefSetMipmappedArray(u h, u m, unsigned int flags)
{
	of_context(__func__, h, REFERENCE);
	of_context(__func__, m, MIPMAP);
	return CALL(cuTexRefSetMipmappedArray, h, m, flags);
}

EXPORT int cuTexRefSetMipmapLevelBias(u h, float bias) { of_context(__func__, h, REFERENCE); return CALL(cuTexRefSetMipmapLevelBias, h, bias); }
EXPORT int cuTexRefSetMipmapLevelClamp(u h, float least, float most) { of_context(__func__, h, REFERENCE); return CALL(cuTexRefSetMipmapLevelClamp, h, least, most); }

#define SAMPLE(name)                                                                                                   \
	EXPORT int name(u h, u a, u b)                                                                                 \
	{                                                                                                              \
		of_context(__func__, h, REFERENCE);                                                                    \
		return CALL(name, h, a, b);                                                                            \
	}
SAMPLE(cuTexRefSetFormat)
SAMPLE(cuTexRefSetFlags)
SAMPLE(cuTexRefSetAddressMode)
SAMPLE(cuTexRefSetFilterMode)
SAMPLE(cuTexRefSetMipmapFilterMode)
SAMPLE(cuTexRefSetMaxAnisotropy)
SAMPLE(cuTexRefSetBorderColor)
