/* Conditions of graphs, and conditional nodes. A handle is the address of the condition's
 * value in device memory. On a soft GPU, cudaGraphSetConditional stores the value there, and
 * this process reads it when a launch reaches the node. The driver of a physical GPU has
 * another kind of handle, so conditions are not supported there. */
#include <stdlib.h>

#include "graph.h"

#define OURS 92 /* CAN_USE_STREAM_MEM_OPS_V1: 1 on a soft GPU, 0 on a physical GPU */
#define CHOICES_LIMIT 4096

struct condition {
	struct condition *next;
	uint64_t address, context;
	uint32_t value; /* value at the beginning of a launch */
	bool assign;	/* a launch assigns value */
	bool gone;	/* its context was destroyed */
	unsigned int refs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct condition *all; /* guarded by lock, like the list's elements */

/* Gives up a reference. With the last, the worker frees the value when the context's work is
 * done. */
static void release_condition(struct condition *c)
{
	struct condition **at = &all;
	struct session *s;
	struct range r;
	bool last, gone;

	pthread_mutex_lock(&lock);
	gone = c->gone;
	if ((last = --c->refs == 0)) {
		while (*at != c)
			at = &(*at)->next;
		*at = c->next;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (!gone && range_take(SPACE_DEVICE, c->address, &r) && library_session(&s) == 0) {
		struct bslt_mem_free a = {c->address};

		(void)ring_put(s, BSLT_OP_MEM_FREE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	}
	free(c);
}

/* Returns a new reference to the condition of a handle, or NULL. */
static struct condition *acquire_condition(uint64_t handle)
{
	struct condition *c;

	pthread_mutex_lock(&lock);
	for (c = all; c && (c->gone || c->address != handle); c = c->next)
		;
	if (c)
		c->refs++;
	pthread_mutex_unlock(&lock);
	return c;
}

struct condition *condition_get(struct condition *c)
{
	pthread_mutex_lock(&lock);
	c->refs++;
	pthread_mutex_unlock(&lock);
	return c;
}

bool condition_default(const struct condition *c, uint64_t *address, uint32_t *value)
{
	*address = c->address;
	*value = c->value;
	return c->assign;
}

int condition_write(struct session *s, uint64_t stream, uint64_t address, uint32_t value)
{
	struct bslt_copy_htod_inline a = {stream, address};

	return stream_put(s, stream, BSLT_OP_COPY_HTOD_INLINE, 0, BSLT_NO_SLOT, &a, sizeof a, &value, sizeof value);
}

int condition_read(struct session *s, uint64_t stream, uint64_t address, uint32_t *value)
{
	struct lowered l = {.what = BSLT_GRAPH_COPY_DTOH, .dst = (uintptr_t)value, .src = address, .width = sizeof *value, .height = 1, .depth = 1};

	return copy_perform(s, stream, &l);
}

void conditions_drop_context(uint64_t context)
{
	pthread_mutex_lock(&lock);
	for (struct condition *c = all; c; c = c->next)
		c->gone |= c->context == context;
	pthread_mutex_unlock(&lock);
}

void conditions_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	all = NULL;
}

void conditions_free(struct graph *g)
{
	for (size_t i = 0; i < g->condition_count; i++)
		release_condition(g->conditions[i]);
	free(g->conditions);
}

/* Adds the condition to those of the graph. It takes ownership of the reference. */
static int add_to_graph(CUgraph h, struct condition *c)
{
	struct graph *g = graph_find(h);
	struct condition **more = g ? realloc(g->conditions, (g->condition_count + 1) * sizeof *more) : NULL;

	if (!more) {
		release_condition(c);
		return g ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	}
	g->conditions = more;
	g->conditions[g->condition_count++] = c;
	return 0;
}

/* Runs without graph_lock, because an allocation may wait. */
CUDA_API CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
						 unsigned int defaultLaunchValue, unsigned int flags)
{
	struct condition *c;
	uint64_t context;
	CUdeviceptr address;
	int err;

	SESSION(s);
	if (!pHandle_out || !hGraph || flags & ~(unsigned int)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_attribute(OURS))
		return CUDA_ERROR_NOT_SUPPORTED;
	TRY(params_context(ctx, &context));
	if (!(c = calloc(1, sizeof *c)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = graph_allocate(s, context, sizeof c->value, &address)) != 0) {
		free(c);
		return err;
	}
	*c = (struct condition){.address = address, .context = context, .value = defaultLaunchValue, .assign = flags != 0, .refs = 1};
	pthread_mutex_lock(&lock);
	c->next = all;
	all = c;
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&graph_lock);
	if ((err = add_to_graph(hGraph, c)) == 0)
		*pHandle_out = address;
	pthread_mutex_unlock(&graph_lock);
	return err;
}

static bool size_fits(int type, unsigned int size)
{
	switch (type) {
	case CU_GRAPH_COND_TYPE_IF: return size == 1 || size == 2;
	case CU_GRAPH_COND_TYPE_WHILE: return size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH: return size >= 1 && size <= CHOICES_LIMIT;
	default: return false;
	}
}

/* Allocates memory for size bodies. */
static int allocate_bodies(struct choice *c, unsigned int size)
{
	c->size = size;
	c->handles = calloc(size, sizeof *c->handles);
	c->bodies = calloc(size, sizeof *c->bodies);
	return c->handles && c->bodies ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

void choice_free(struct choice *c)
{
	for (unsigned int i = 0; c->bodies && i < c->size; i++)
		graph_drop(c->bodies[i]);
	free(c->bodies);
	free(c->handles);
	if (c->condition)
		release_condition(c->condition);
}

static int bodies_new(struct choice *c, unsigned int size)
{
	TRY(allocate_bodies(c, size));
	for (unsigned int i = 0; i < size; i++) {
		if (!(c->bodies[i] = graph_new(true)))
			return CUDA_ERROR_OUT_OF_MEMORY;
		c->bodies[i]->child = true;
		c->handles[i] = handle_of(c->bodies[i]->o.id);
	}
	return 0;
}

int params_choice(const CUDA_CONDITIONAL_NODE_PARAMS *p, struct node_params *out)
{
	struct choice c = {.type = p->type};
	int err;

	if (!size_fits(p->type, p->size) || !(c.condition = acquire_condition(p->handle)))
		return CUDA_ERROR_INVALID_VALUE;
	if (p->ctx && (uintptr_t)p->ctx != c.condition->context)
		err = CUDA_ERROR_INVALID_VALUE;
	else
		err = bodies_new(&c, p->size);
	if (err) {
		choice_free(&c);
		return err;
	}
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_CONDITIONAL, .context = c.condition->context, .choice = c};
	return 0;
}

int choice_clone(const struct choice *c, struct choice *out)
{
	int err;

	*out = (struct choice){.type = c->type, .condition = condition_get(c->condition)};
	err = allocate_bodies(out, c->size);
	for (unsigned int i = 0; i < c->size && !err; i++)
		err = graph_clone(c->bodies[i], false, &out->bodies[i]);
	if (err)
		choice_free(out);
	return err;
}
