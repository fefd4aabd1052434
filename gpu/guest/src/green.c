/* Green contexts (CUDA driver API, "Green Contexts"). They only record which multiprocessors
 * work is meant for: their memory, modules and default stream are those of the primary
 * context, and their streams run like others. A green context and the CUcontext that it is
 * converted to have the same handle. */
#include <string.h>

#include "green.h"

/* The data that this library stores in a resource, to recognize it: a contiguous part of the
 * device's multiprocessors. */
struct mark {
	uint32_t magic, first, count;
	uint32_t split; /* number of the call that split it off; 0: all of a context or device */
};
#define MARK 0x736d7267u

static _Atomic uint32_t splits;

static struct mark mark_of(const CUdevResource *r)
{
	struct mark m;

	memcpy(&m, r->_internal_padding, sizeof m);
	return m;
}

/* Returns the minimum size of the parts that the device can be split into, and the number of
 * which their size is a multiple (CUDA driver API, cuDevSmResourceSplitByCount). */
static void granularity(unsigned int flags, unsigned int *least, unsigned int *multiple)
{
	int major = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);

	*multiple = major >= 9 ? 8 : major >= 7 ? 2 : 1;
	*least = major >= 9 ? 8 : major == 8 ? 4 : *multiple;
	if (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING)
		*least = *multiple = major >= 7 ? 2 : 1;
}

static CUdevResource resource(uint32_t first, uint32_t count, uint32_t split)
{
	const struct mark m = {MARK, first, count, split};
	CUdevResource r = {.type = count ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID};

	if (count == 0)
		return r;
	memcpy(r._internal_padding, &m, sizeof m);
	r.sm.smCount = count;
	granularity(0, &r.sm.minSmPartitionSize, &r.sm.smCoscheduledAlignment);
	return r;
}

/* Returns the resource of all multiprocessors of the device. It is an error if the device does
 * not support green contexts. */
static int all_multiprocessors(struct session *s, CUdevResource *r)
{
	struct bslt_multiprocessors a = {0};
	struct answer n = {.result = CUDA_ERROR_NOT_SUPPORTED};

	if (worker_minor(s) >= 9)
		n = call(s, BSLT_OP_MULTIPROCESSORS, &a, sizeof a);
	if (n.result == 0)
		*r = resource(0, (uint32_t)n.value0, 0);
	return n.result;
}

/* Checks that this library has created a resource, of the device's multiprocessors. */
static int check_resource(const CUdevResource *r, struct mark *m)
{
	CUdevResource all;

	SESSION(s);
	if (r->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	TRY(all_multiprocessors(s, &all));
	*m = mark_of(r);
	return m->magic == MARK && m->count != 0 && m->count == r->sm.smCount && m->first < all.sm.smCount && m->count <= all.sm.smCount - m->first
		       ? 0
		       : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

static int return_resource(const CUdevResource *r, CUdevResource *out, int type)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*out = *r;
	return 0;
}

CUDA_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	CUdevResource all;

	SESSION(s);
	if (device != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(all_multiprocessors(s, &all));
	return return_resource(&all, resource, type);
}

CUDA_API CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	struct green *g;
	int err;

	SESSION(s);
	(void)s;
	if (!(g = object_get(hCtx, KIND_GREEN)))
		return CUDA_ERROR_INVALID_CONTEXT;
	err = return_resource(&g->sm, resource, type);
	object_put(g);
	return err;
}

CUDA_API CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	void *c;

	SESSION(s);
	(void)s;
	if (cuGreenCtxGetDevResource((CUgreenCtx)(void *)hCtx, resource, type) == 0)
		return 0;
	if (!(c = context_get(hCtx)))
		return CUDA_ERROR_INVALID_CONTEXT;
	object_put(c);
	return cuDeviceGetDevResource(0, resource, type);
}

static int split_size(const CUdevResource *input, unsigned int flags, unsigned int count, struct mark *m, unsigned int *size)
{
	const unsigned int flags_known = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
	unsigned int multiple;

	TRY(check_resource(input, m));
	if (m->split) /* a part must become a green context before it can be split */
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (flags & ~flags_known || count > m->count)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE && device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
		return CUDA_ERROR_INVALID_VALUE;
	granularity(flags, size, &multiple);
	if (count > *size)
		*size = (count + multiple - 1) / multiple * multiple;
	return 0;
}

/* Creates groups of one size, as many as the input and the program's array have room for.
 * Without an array it only returns their number. */
CUDA_API CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input,
					      CUdevResource *remaining, unsigned int useFlags, unsigned int minCount)
{
	unsigned int size, groups, wanted;
	struct mark m;
	uint32_t split;

	SESSION(s);
	(void)s;
	if (!nbGroups || !input || (result && *nbGroups == 0))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(split_size(input, useFlags, minCount, &m, &size));
	groups = m.count / size;
	if (!result) {
		*nbGroups = groups;
		return 0;
	}
	if (groups == 0)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	wanted = *nbGroups;
	*nbGroups = groups < wanted ? groups : wanted;
	split = atomic_fetch_add(&splits, 1) + 1;
	for (unsigned int i = 0; i < *nbGroups; i++)
		result[i] = resource(m.first + i * size, size, split);
	if (remaining)
		*remaining = resource(m.first + *nbGroups * size, m.count - *nbGroups * size, split);
	return 0;
}

/* The description from which a green context is created. No call destroys it. */
struct desc {
	struct object o; /* KIND_RESOURCE_DESC */
	uint32_t first, count;
};

/* Joins resources of one split. They must not overlap. */
static int join(const CUdevResource *list, unsigned int n, uint32_t *first, uint32_t *count)
{
	struct mark m, other;
	uint32_t split = 0;

	*count = 0;
	for (unsigned int i = 0; i < n; i++) {
		TRY(check_resource(&list[i], &m));
		if (i && (m.split != split || split == 0))
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		for (unsigned int k = 0; k < i; k++) {
			other = mark_of(&list[k]);
			if (m.first < other.first + other.count && other.first < m.first + m.count)
				return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		}
		split = m.split;
		*first = i && *first < m.first ? *first : m.first;
		*count += m.count;
	}
	return 0;
}

CUDA_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	enum { MOST = 1024 }; /* maximum number of parts; no device has more */
	uint32_t first, count;
	struct desc *d;

	SESSION(s);
	(void)s;
	if (!phDesc || !resources || nbResources == 0 || nbResources > MOST)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(join(resources, nbResources, &first, &count));
	if (!(d = object_new(sizeof *d, KIND_RESOURCE_DESC, object_ids(1), 0)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->first = first;
	d->count = count;
	*phDesc = handle_of(d->o.id);
	object_add(d);
	return 0;
}

CUDA_API CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUcontext context;
	CUdevResource sm;
	struct green *g;
	struct desc *d;

	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM || !(d = object_get(desc, KIND_RESOURCE_DESC)))
		return CUDA_ERROR_INVALID_VALUE;
	sm = resource(d->first, d->count, 0);
	object_put(d);
	TRY(primary_retain(&context));
	if (!(g = object_new(sizeof *g, KIND_GREEN, object_ids(1), (uintptr_t)context))) {
		(void)primary_release();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	g->sm = sm;
	*phCtx = handle_of(g->o.id);
	object_add(g);
	return 0;
}

CUDA_API CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	uint64_t id = (uintptr_t)hCtx, gate;
	struct green *g;

	SESSION(s);
	(void)s;
	if (!(g = object_get(hCtx, KIND_GREEN)))
		return CUDA_ERROR_INVALID_CONTEXT;
	gate = g->gate;
	object_put(g);
	if (!object_remove(id, KIND_GREEN))
		return CUDA_ERROR_INVALID_CONTEXT; /* another thread has destroyed it */
	if (gate)
		(void)cuStreamDestroy_v2(handle_of(gate));
	current_leave(id);
	return primary_release();
}

bool is_green(const void *h)
{
	void *g = object_get(h, KIND_GREEN);

	object_put(g);
	return g != NULL;
}

CUDA_API CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	SESSION(s);
	(void)s;
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_green(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*pContext = handle_of((uintptr_t)hCtx);
	return 0;
}

CUDA_API CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
	SESSION(s);
	(void)s;
	if (!greenCtxId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_green(greenCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*greenCtxId = (uintptr_t)greenCtx;
	return 0;
}

CUDA_API CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	int err;

	SESSION(s);
	(void)s;
	if (!phStream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_green(greenCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	TRY(current_push((uintptr_t)greenCtx));
	err = cuStreamCreateWithPriority(phStream, flags, priority);
	current_leave((uintptr_t)greenCtx);
	return err;
}

/* Finds the green context of a stream. For a default stream it is the current one. */
static int green_of(CUstream h, uint64_t *green)
{
	uint64_t stream, context;
	struct stream *o;
	bool blocking;

	SESSION(s);
	(void)s;
	TRY(stream_find(h, &stream, &context, &blocking));
	*green = green_current();
	if ((o = object_get(h, KIND_STREAM)) != NULL) {
		*green = o->green;
		object_put(o);
	}
	return 0;
}

CUDA_API CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
	uint64_t green;

	if (!phCtx)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(green_of(hStream, &green));
	*phCtx = handle_of(green);
	return 0;
}

/* The first version returns the context that was current when the stream was created. */
CUDA_API CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	uint64_t id, context, green;
	bool blocking;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(green_of(hStream, &green));
	TRY(stream_find(hStream, &id, &context, &blocking));
	*pctx = handle_of(green ? green : context);
	return 0;
}

/* The second version returns both the primary context and the green one. */
CUDA_API CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	uint64_t id, context, green;
	bool blocking;

	if (!pCtx || !pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(green_of(hStream, &green));
	TRY(stream_find(hStream, &id, &context, &blocking));
	*pCtx = handle_of(context);
	*pGreenCtx = handle_of(green);
	return 0;
}
