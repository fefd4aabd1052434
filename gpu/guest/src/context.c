/* Creation and destruction of contexts, and the primary context. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "context_storage.h"

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t primary;         /* guarded by primary_lock */
static unsigned int primary_refs, primary_flags;

/* A context that the program does not know: memory that it has created without one belongs to
 * it. The next context that the program creates becomes this one. */
static pthread_mutex_t unclaimed_lock = PTHREAD_MUTEX_INITIALIZER; /* acquired after primary_lock */
static uint64_t unclaimed;                                         /* 0: none; guarded by unclaimed_lock */

/* Returns the unclaimed context, which is the caller's from then on, or NULL. The caller calls
 * object_put. */
static struct context *claim(void)
{
	struct context *c = NULL;

	pthread_mutex_lock(&unclaimed_lock);
	if (unclaimed)
		c = object_get(handle_of(unclaimed), KIND_CONTEXT);
	unclaimed = 0;
	pthread_mutex_unlock(&unclaimed_lock);
	return c;
}

static int create(unsigned int flags, unsigned int api, bool is_primary, uint64_t *id)
{
	struct bslt_ctx_create a = {.flags = flags};
	struct context *c;

	SESSION(s);
	if ((c = claim()) != NULL) {
		c->flags = flags;
		c->api = api;
		c->primary = is_primary;
		*id = c->o.id;
		object_put(c);
		return 0;
	}
	a.ctx = object_stream_id();
	if (!(c = object_new(sizeof *c, KIND_CONTEXT, a.ctx, 0))) {
		object_stream_end(a.ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->o.destroy = object_stream_gone;
	c->flags = flags;
	c->api = api;
	c->primary = is_primary;
	c->limits[0] = 1024;     /* CU_LIMIT_STACK_SIZE */
	c->limits[1] = 1u << 20; /* CU_LIMIT_PRINTF_FIFO_SIZE */
	c->limits[2] = 8u << 20; /* CU_LIMIT_MALLOC_HEAP_SIZE */
	c->limits[3] = 2;        /* CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH */
	c->limits[4] = 2048;     /* CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT */
	c->limits[5] = 128;      /* CU_LIMIT_MAX_L2_FETCH_GRANULARITY */
	int err = call(s, BSLT_OP_CTX_CREATE, &a, sizeof a).result;
	if (err) {
		object_put(c);
		return err;
	}
	object_add(c);
	*id = a.ctx;
	libraries_enter(a.ctx);
	return 0;
}

static void range_gone(const struct range *r)
{
	pool_give(r);
	mapping_ended(r);
}

static int destroy(uint64_t id)
{
	struct bslt_ctx_synchronize ends = {id};
	struct bslt_ctx_destroy a = {id};
	int err;

	SESSION(s);
	if (capturing())
		capture_context_gone(id);
	TRY(callbacks_wait(0, id, true));
	(void)call(s, BSLT_OP_CTX_SYNCHRONIZE, &ends, sizeof ends); /* running kernels may print */
	output_show(s, id);
	if (!object_remove(id, KIND_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	object_remove_context(id);
	ranges_drop_context(id, range_gone);
	kept_drop_context(s, id);
	graph_memory_drop_context(id);
	conditions_drop_context(id);
	err = call(s, BSLT_OP_CTX_DESTROY, &a, sizeof a).result;
	managed_variables_drop(s, id);
	return err;
}

int context_drain(struct session *s, struct context *c)
{
	struct bslt_ctx_synchronize a = {c->o.id};
	uint64_t work = work_count(s) + 1, staged = staged_count(s) + 1;

	TRY(call(s, BSLT_OP_CTX_SYNCHRONIZE, &a, sizeof a).result);
	/* Release, so that a thread that finds the context idle reads what its work has written
	 * to host memory. */
	atomic_store_explicit(&c->drained, work, memory_order_release);
	atomic_store_explicit(&c->drained_staged, staged, memory_order_release);
	return 0;
}

bool context_quiet(struct session *s, struct context *c)
{
	return atomic_load_explicit(&c->drained, memory_order_acquire) == work_count(s) + 1;
}

bool context_untouched(struct session *s, struct context *c)
{
	return context_quiet(s, c) && atomic_load_explicit(&c->drained_staged, memory_order_acquire) == staged_count(s) + 1 &&
	       !callbacks_pending(0, c->o.id, true);
}

int primary_retain(CUcontext *out)
{
	int err = 0;

	pthread_mutex_lock(&primary_lock);
	if (primary == 0)
		err = create(primary_flags, 3020, true, &primary);
	if (err == 0) {
		primary_refs++;
		*out = handle_of(primary);
	}
	pthread_mutex_unlock(&primary_lock);
	return err;
}

/* Memory of a device needs no context in CUDA; here it belongs to one. */
int context_of_memory(uint64_t *context)
{
	int err = context_current(context);

	if (err != CUDA_ERROR_INVALID_CONTEXT)
		return err ? err : context_fault(*context);
	pthread_mutex_lock(&primary_lock);
	err = 0;
	if (primary) {
		*context = primary;
	} else if (object_list(KIND_CONTEXT, context, 1) == 0 && (err = create(0, 3020, false, context)) == 0) {
		pthread_mutex_lock(&unclaimed_lock);
		unclaimed = *context;
		pthread_mutex_unlock(&unclaimed_lock);
	}
	pthread_mutex_unlock(&primary_lock);
	return err ? err : context_fault(*context);
}

int primary_release(void)
{
	uint64_t gone = 0;
	int err = 0;

	pthread_mutex_lock(&primary_lock);
	if (primary_refs == 0) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (--primary_refs == 0) {
		gone = primary;
		err = destroy(primary);
		primary = 0;
	}
	pthread_mutex_unlock(&primary_lock);
	context_storage_end(gone);
	return err;
}

bool primary_active(void)
{
	bool active;

	pthread_mutex_lock(&primary_lock);
	active = primary != 0;
	pthread_mutex_unlock(&primary_lock);
	return active;
}

void primary_abandon(void)
{
	pthread_mutex_init(&primary_lock, NULL);
	pthread_mutex_init(&unclaimed_lock, NULL);
	primary = unclaimed = 0;
	primary_refs = primary_flags = 0;
}

CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	SESSION(s);
	(void)s;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	return primary_retain(pctx);
}

CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	SESSION(s);
	(void)s;
	return dev != 0 ? CUDA_ERROR_INVALID_DEVICE : primary_release();
}

/* Frees everything in the primary context. References are kept, and the next retain creates
 * the context again. */
CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	uint64_t gone;
	int err = 0;

	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	gone = primary;
	if (primary)
		err = destroy(primary);
	primary = 0;
	primary_refs = 0;
	pthread_mutex_unlock(&primary_lock);
	context_storage_end(gone);
	return err;
}

CUDA_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	primary_flags = flags;
	pthread_mutex_unlock(&primary_lock);
	return 0;
}

CUDA_API CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	SESSION(s);
	(void)s;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	*flags = primary_flags;
	*active = primary != 0;
	pthread_mutex_unlock(&primary_lock);
	return 0;
}

CUDA_API CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	uint64_t id;

	SESSION(s);
	(void)s;
	if (!pctx || flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(create(flags, 3020, false, &id));
	*pctx = handle_of(id);
	return current_push(id);
}

/* Execution affinity divides a GPU among the clients of one MPS server. It is not supported,
 * because a vGPU already has a share of a GPU. */
CUDA_API CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev)
{
	if (numParams < 0 || (numParams && !paramsArray))
		return CUDA_ERROR_INVALID_VALUE;
	return numParams ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : cuCtxCreate_v2(pctx, flags, dev);
}

CUDA_API CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	static const CUctxCreateParams none;
	const CUctxCreateParams *p = ctxCreateParams ? ctxCreateParams : &none;

	if (p->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED; /* a context for graphics */
	return cuCtxCreate_v3(pctx, p->execAffinityParams, p->numExecAffinityParams, flags, dev);
}

CUDA_API CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	struct context *c;
	bool is_primary;
	int err;

	SESSION(s);
	(void)s;
	if (!(c = object_get(ctx, KIND_CONTEXT)))
		return CUDA_ERROR_INVALID_CONTEXT;
	is_primary = c->primary;
	object_put(c);
	if (is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	current_leave((uintptr_t)ctx);
	err = destroy((uintptr_t)ctx);
	context_storage_end((uintptr_t)ctx);
	return err;
}

CUDA_API CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_object(&c));
	c->attached++;
	*pctx = handle_of(c->o.id);
	object_put(c);
	return 0;
}

/* Undoes one cuCtxAttach, or destroys the context if there was none. */
CUDA_API CUresult cuCtxDetach(CUcontext ctx)
{
	struct context *c;
	unsigned int n;

	SESSION(s);
	(void)s;
	if (!(c = object_get(ctx, KIND_CONTEXT)))
		return CUDA_ERROR_INVALID_CONTEXT;
	n = c->attached;
	while (n && !atomic_compare_exchange_weak(&c->attached, &n, n - 1))
		;
	object_put(c);
	return n ? 0 : cuCtxDestroy_v2(ctx);
}

static int synchronize(struct session *s, struct context *c)
{
	if (capturing()) {
		TRY(capture_refuse_context(c->o.id));
		TRY(capture_unsafe());
	}
	TRY(callbacks_wait(0, c->o.id, true));
	int err = context_drain(s, c);
	output_show(s, c->o.id);
	return err;
}

/* numba calls it without an argument: see cuCtxGetDevice_v2. */
CUDA_API CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct context *c;
	int err;

	SESSION(s);
	if (!ctx || !(c = context_get(ctx)))
		TRY(context_object(&c));
	err = synchronize(s, c);
	object_put(c);
	return err;
}

CUDA_API CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}
