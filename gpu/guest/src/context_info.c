/* Queries and settings of contexts that do not need the worker. */
#include "green.h"

CUDA_API CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_object(&c));
	*flags = c->flags;
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxSetFlags(unsigned int flags)
{
	struct context *c;

	SESSION(s);
	(void)s;
	TRY(context_object(&c));
	c->flags = flags;
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ctx)
		TRY(context_object(&c));
	else if (!(c = context_get(ctx)))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctxId = ctx && is_green(ctx) ? (uintptr_t)ctx : !ctx && green_current() ? green_current() : c->o.id;
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ctx)
		TRY(context_object(&c));
	else if (!(c = context_get(ctx)))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = c->api;
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxGetLimit(size_t *pvalue, int limit)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit < 0 || limit >= 7)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	TRY(context_object(&c));
	*pvalue = c->limits[limit];
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxSetLimit(int limit, size_t value)
{
	uint64_t in_force = value;
	struct context *c;
	int err = 0;

	SESSION(s);
	(void)s;
	if (limit < 0 || limit >= 7)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	TRY(context_object(&c));
	if (limit == (int)BSLT_LIMIT_PRINTF_FIFO)
		err = output_limit(c->o.id, &in_force);
	if (err == 0)
		c->limits[limit] = in_force;
	object_put(c);
	return err;
}

CUDA_API CUresult cuCtxGetCacheConfig(int *pconfig)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_object(&c));
	*pconfig = c->cache_config;
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxSetCacheConfig(int config)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_object(&c));
	c->cache_config = config; /* a preference, which has no effect */
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxGetSharedMemConfig(int *pConfig)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_object(&c));
	*pConfig = c->shared_config ? c->shared_config : 1; /* four-byte banks */
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxSetSharedMemConfig(int config)
{
	struct context *c;

	SESSION(s);
	(void)s;
	if (config < 0 || config > 2)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_object(&c));
	c->shared_config = config;
	object_put(c);
	return 0;
}

CUDA_API CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	uint64_t c;

	SESSION(s);
	(void)s;
	TRY(context_current(&c));
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = -5;
	return 0;
}

CUDA_API CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	(void)peerContext;
	(void)Flags;
	SESSION(s);
	(void)s;
	return 217; /* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: there is one device */
}

CUDA_API CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	(void)peerContext;
	SESSION(s);
	(void)s;
	return 705; /* CUDA_ERROR_PEER_ACCESS_NOT_ENABLED */
}
