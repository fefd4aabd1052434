/* Converts a graph to steps: sorts its nodes and those of its children in the order of their
 * dependencies, and splits the order at the nodes that this process has to perform. */
#include <stdlib.h>

#include "graph.h"

#define DEPTH_LIMIT 64 /* maximum nesting of children, and of bodies of conditional nodes */

static int depend(struct flat *f, uint32_t on)
{
	if (f->deps.n == f->deps.room) {
		size_t room = f->deps.room ? f->deps.room * 2 : 4;
		uint32_t *at = realloc(f->deps.at, room * sizeof *at);

		if (!at)
			return CUDA_ERROR_OUT_OF_MEMORY;
		f->deps.at = at;
		f->deps.room = room;
	}
	f->deps.at[f->deps.n++] = on;
	return 0;
}

/* Reports whether a node may be in the body of a conditional node, as CUDA documents. */
static bool in_body(const struct graph_node *n)
{
	switch (n->p.kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_GRAPH:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: return true;
	default: return false;
	}
}

/* Counts the entries of a graph. A child has one for its beginning and one for its end. */
static int count(const struct graph *g, unsigned int depth, bool body, size_t *n)
{
	if (depth > DEPTH_LIMIT)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct graph_node *x = g->nodes.at[i];

		if (body && !in_body(x))
			return CUDA_ERROR_NOT_SUPPORTED;
		*n += 1;
		if (x->p.kind == CU_GRAPH_NODE_TYPE_GRAPH) {
			*n += 1;
			TRY(count(x->p.child, depth + 1, body, n));
		}
	}
	return *n > BSLT_MAX_GRAPH_NODES ? CUDA_ERROR_NOT_SUPPORTED : 0;
}

static bool here(const struct graph_node *n, int *err)
{
	struct lowered l;

	if (n->p.kind == CU_GRAPH_NODE_TYPE_HOST || n->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL || n->p.kind == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		return true;
	if (n->p.kind != CU_GRAPH_NODE_TYPE_MEMCPY)
		return false;
	*err = copy_lower(&n->p.copy, &l);
	return l.guest;
}

static int place(struct graph *g, struct order *o)
{
	int err = 0;

	for (size_t i = 0; i < g->nodes.n; i++) {
		struct graph_node *n = g->nodes.at[i];

		n->first = n->last = o->n;
		n->order = o;
		o->flat[o->n++].node = n;
		o->flat[n->first].guest = here(n, &err);
		if (err)
			return err;
		if (n->p.kind == CU_GRAPH_NODE_TYPE_GRAPH) {
			TRY(place(n->p.child, o));
			n->last = o->n++;
		}
	}
	return 0;
}

static int connect(const struct graph *g, struct order *o)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct graph_node *n = g->nodes.at[i];

		for (size_t k = 0; k < n->in.n; k++)
			TRY(depend(&o->flat[n->first], (uint32_t)n->in.at[k]->last));
		if (n->p.kind != CU_GRAPH_NODE_TYPE_GRAPH)
			continue;
		TRY(connect(n->p.child, o));
		TRY(depend(&o->flat[n->last], (uint32_t)n->first));
		for (size_t k = 0; k < n->p.child->nodes.n; k++) {
			const struct graph_node *c = n->p.child->nodes.at[k];

			if (c->in.n == 0)
				TRY(depend(&o->flat[c->first], (uint32_t)n->first));
			if (c->out.n == 0)
				TRY(depend(&o->flat[n->last], (uint32_t)c->last));
		}
	}
	return 0;
}

/* A queue of entries; each is added once. */
struct queue {
	uint32_t *at;
	size_t head, tail;
};

static void append_entry(struct order *o, uint32_t f)
{
	bool guest = o->flat[f].guest;

	if (guest || o->step_count == 0 || o->flat[o->order[o->n - 1]].guest)
		o->steps[o->step_count++] = (struct step){.part = !guest, .begin = o->n, .end = o->n};
	o->flat[f].step = o->step_count - 1;
	o->flat[f].index = (uint32_t)(o->n - o->steps[o->step_count - 1].begin);
	o->order[o->n++] = f;
	o->steps[o->step_count - 1].end = o->n;
}

/* Sorts the entries. Nodes for the worker come first whenever possible, which gives the fewest
 * steps. */
static int sort(struct order *o, const uint32_t *starts, const uint32_t *behind, uint32_t *missing, struct queue ready[2])
{
	size_t all = o->n;

	o->n = 0;
	for (uint32_t i = 0; i < all; i++) {
		missing[i] = (uint32_t)o->flat[i].deps.n;
		if (missing[i] == 0) {
			struct queue *q = &ready[o->flat[i].guest];

			q->at[q->tail++] = i;
		}
	}
	while (ready[0].head < ready[0].tail || ready[1].head < ready[1].tail) {
		struct queue *from = ready[0].head < ready[0].tail ? &ready[0] : &ready[1];
		uint32_t f = from->at[from->head++];

		append_entry(o, f);
		for (uint32_t k = starts[f]; k < starts[f + 1]; k++) {
			struct queue *q = &ready[o->flat[behind[k]].guest];

			if (--missing[behind[k]] == 0)
				q->at[q->tail++] = behind[k];
		}
	}
	return o->n == all ? 0 : CUDA_ERROR_INVALID_VALUE; /* the rest depend on each other */
}

/* Lists the entries that depend on each entry f: behind[starts[f]…]. */
static void reverse(const struct order *o, uint32_t *starts, uint32_t *behind)
{
	for (size_t i = 0; i < o->n; i++)
		for (size_t k = 0; k < o->flat[i].deps.n; k++)
			starts[o->flat[i].deps.at[k] + 2]++;
	for (size_t i = 0; i < o->n; i++)
		starts[i + 2] += starts[i + 1];
	for (size_t i = 0; i < o->n; i++)
		for (size_t k = 0; k < o->flat[i].deps.n; k++)
			behind[starts[o->flat[i].deps.at[k] + 1]++] = (uint32_t)i;
}

static int arrange(struct order *o)
{
	size_t edges = 0;
	int err = CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; i < o->n; i++)
		edges += o->flat[i].deps.n;
	if (edges > BSLT_MAX_GRAPH_EDGES)
		return CUDA_ERROR_NOT_SUPPORTED;
	uint32_t *starts = calloc(o->n + 2, sizeof *starts), *behind = calloc(edges + 1, sizeof *behind);
	uint32_t *missing = calloc(o->n + 1, sizeof *missing), *room = calloc(2 * o->n + 1, sizeof *room);

	if (starts && behind && missing && room) {
		struct queue ready[2] = {{room, 0, 0}, {room + o->n, 0, 0}};

		reverse(o, starts, behind);
		err = sort(o, starts, behind, missing, ready);
	}
	free(starts);
	free(behind);
	free(missing);
	free(room);
	return err;
}

static int make(struct graph *g, unsigned int depth, bool body, struct order *o);

/* Creates the orders of the bodies of all conditional nodes. */
static int make_bodies(struct order *o, unsigned int depth)
{
	for (size_t i = 0; i < o->n; i++) {
		struct graph_node *n = o->flat[i].node;
		struct choice *c = n ? &n->p.choice : NULL;

		if (!n || n->p.kind != CU_GRAPH_NODE_TYPE_CONDITIONAL)
			continue;
		if (!(c->orders = calloc(c->size, sizeof *c->orders)))
			return CUDA_ERROR_OUT_OF_MEMORY;
		for (unsigned int k = 0; k < c->size; k++)
			TRY(make(c->bodies[k], depth + 1, true, &c->orders[k]));
	}
	return 0;
}

static int make(struct graph *g, unsigned int depth, bool body, struct order *o)
{
	size_t n = 0;
	int err;

	*o = (struct order){0};
	TRY(count(g, depth, body, &n));
	o->flat = calloc(n + 1, sizeof *o->flat);
	o->order = calloc(n + 1, sizeof *o->order);
	o->steps = calloc(n + 1, sizeof *o->steps);
	err = o->flat && o->order && o->steps ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	if (err || (err = place(g, o)) != 0 || (err = connect(g, o)) != 0 || (err = arrange(o)) != 0) {
		o->n = n;
		order_free(o);
		return err;
	}
	if (o->step_count == 0)
		o->steps[o->step_count++].part = 1; /* an empty graph is launched like others */
	if ((err = make_bodies(o, depth)) != 0)
		order_free(o);
	return err;
}

int order_make(struct graph *g, struct order *out)
{
	return make(g, 0, false, out);
}

static struct choice *choice_at(const struct order *o, size_t i)
{
	struct graph_node *n = o->flat[i].node;

	return n && n->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL && n->p.choice.orders ? &n->p.choice : NULL;
}

int order_each(struct order *o, int (*f)(struct order *, void *), void *arg)
{
	TRY(f(o, arg));
	for (size_t i = 0; i < o->n; i++) {
		struct choice *c = choice_at(o, i);

		for (unsigned int k = 0; c && k < c->size; k++)
			TRY(order_each(&c->orders[k], f, arg));
	}
	return 0;
}

void order_free(struct order *o)
{
	for (size_t i = 0; o->flat && i < o->n; i++) {
		struct choice *c = choice_at(o, i);

		for (unsigned int k = 0; c && k < c->size; k++)
			order_free(&c->orders[k]);
		if (c) {
			free(c->orders);
			c->orders = NULL;
		}
		free(o->flat[i].deps.at);
	}
	free(o->flat);
	free(o->order);
	free(o->steps);
	*o = (struct order){0};
}
