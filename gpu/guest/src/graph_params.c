/* Parameters of nodes. They are checked and copied when the program passes them. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

static int kernel_bytes(struct function *f, const CUDA_KERNEL_NODE_PARAMS *k, struct kernel_params *out)
{
	int err = CUDA_ERROR_OUT_OF_MEMORY;

	if (f->param_bytes > BSLT_MAX_PARAM_BYTES)
		return CUDA_ERROR_NOT_SUPPORTED;
	out->count = f->info.param_count;
	out->bytes = malloc(f->param_bytes + 1);
	out->pointers = calloc(out->count + 1, sizeof *out->pointers);
	if (!out->bytes || !out->pointers || (err = launch_parameters(f, k->kernelParams, k->extra, out->bytes, &out->size)) != 0) {
		free(out->bytes);
		free(out->pointers);
		return err;
	}
	for (uint32_t i = 0; i < out->count; i++)
		out->pointers[i] = out->bytes + f->info.params[i].offset;
	return 0;
}

int params_kernel(const CUDA_KERNEL_NODE_PARAMS *k, struct node_params *out)
{
	struct function *f;
	int err = 0;

	if (!k)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_KERNEL};
	out->kernel = (struct kernel_params){
		.handle = k->func ? k->func : (CUfunction)(void *)k->kern,
		.grid = {k->gridDimX, k->gridDimY, k->gridDimZ},
		.block = {k->blockDimX, k->blockDimY, k->blockDimZ},
		.shared = k->sharedMemBytes,
	};
	for (int i = 0; i < 3; i++)
		if (!out->kernel.grid[i] || !out->kernel.block[i] || out->kernel.block[i] > 1024)
			return CUDA_ERROR_INVALID_VALUE;
	if ((uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_resolve(out->kernel.handle, &f));
	out->kernel.function = f->o.id;
	out->context = f->o.context;
	if (k->ctx && (uintptr_t)k->ctx != f->o.context)
		err = CUDA_ERROR_INVALID_VALUE;
	else
		err = kernel_bytes(f, k, &out->kernel);
	object_put(f);
	return err;
}

int params_copy(const CUDA_MEMCPY3D *c, uint64_t context, struct node_params *out)
{
	struct lowered l;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_MEMCPY, .context = context, .copy = *c};
	return copy_lower(c, &l);
}

int params_memset(const CUDA_MEMSET_NODE_PARAMS *m, uint64_t context, struct node_params *out)
{
	uint64_t row;

	if (!m || (m->elementSize != 1 && m->elementSize != 2 && m->elementSize != 4) || m->dst % m->elementSize)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_MEMSET, .context = context, .set = *m};
	if (m->width == 0 || m->height == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (m->width > UINT64_MAX / m->elementSize)
		return CUDA_ERROR_INVALID_VALUE;
	row = m->width * m->elementSize;
	if (m->height > 1 && (m->pitch < row || m->height - 1 > (UINT64_MAX - row) / m->pitch))
		return CUDA_ERROR_INVALID_VALUE;
	if (m->height > BSLT_MAX_GRAPH_ROWS && m->pitch != row)
		return CUDA_ERROR_NOT_SUPPORTED;
	return device_range(m->dst, (m->height - 1) * m->pitch + row) ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int params_host(const CUDA_HOST_NODE_PARAMS *h, struct node_params *out)
{
	if (!h || !h->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_HOST, .host = *h};
	return 0;
}

int params_event(CUevent h, int kind, struct node_params *out)
{
	struct event *e = object_get(h, KIND_EVENT);

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = (struct node_params){.kind = kind, .event = e->o.id};
	if (kind == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		out->context = e->o.context; /* other contexts may wait for it */
	object_put(e);
	return 0;
}

int params_child(CUgraph h, struct node_params *out)
{
	struct graph *g = graph_find(h);

	if (!g)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_GRAPH};
	TRY(graph_clone(g, true, &out->child));
	out->child->child = true;
	return 0;
}

int params_context(CUcontext h, uint64_t *context)
{
	struct context *c;

	if (!h)
		return context_current(context);
	if (!(c = context_get(h)))
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = c->o.id;
	object_put(c);
	return 0;
}

int batch_copy_array(CUDA_BATCH_MEM_OP_NODE_PARAMS *b)
{
	CUstreamBatchMemOpParams *own = malloc(b->count * sizeof *own);

	if (own)
		memcpy(own, b->paramArray, b->count * sizeof *own);
	b->paramArray = own;
	return own ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int params_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b, struct node_params *out)
{
	if (!b || b->count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(memory_operations_check(b->paramArray, b->count, b->flags));
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .batch = *b};
	TRY(params_context(b->ctx, &out->context));
	return batch_copy_array(&out->batch);
}

int params_any(const CUgraphNodeParams *a, struct node_params *out)
{
	uint64_t context;

	if (!a)
		return CUDA_ERROR_INVALID_VALUE;
	switch (a->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return params_kernel(&a->kernel, out);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (a->memcpy.flags)
			return CUDA_ERROR_INVALID_VALUE;
		TRY(params_context(a->memcpy.copyCtx, &context));
		return params_copy(&a->memcpy.copyParams, context, out);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		TRY(params_context(a->memset.ctx, &context));
		return params_memset(&a->memset.params, context, out);
	case CU_GRAPH_NODE_TYPE_HOST: return params_host(&a->host, out);
	case CU_GRAPH_NODE_TYPE_GRAPH: return a->graph.ownership ? CUDA_ERROR_NOT_SUPPORTED : params_child(a->graph.graph, out);
	case CU_GRAPH_NODE_TYPE_EMPTY: *out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_EMPTY}; return 0;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return params_batch(&a->memOp, out);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return params_event(a->event, a->type, out);
	default: return a->type < 0 || a->type > CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
	}
}
