/* A launch of a graph with nodes that this process performs: host functions, copies of memory
 * that the worker cannot access, batches of memory operations, and conditional nodes. The thread of host functions runs the
 * steps one after the other when the stream reaches the graph, as it reaches a host function.
 * Later work of the stream is held back in this process. */
#include <stdlib.h>

#include "graph.h"

/* A step as it was when the graph was launched. */
struct run_step {
	uint64_t part;
	CUDA_HOST_NODE_PARAMS host; /* of a host function, if fn is set */
	struct run_choice *choice;  /* of a conditional node, or NULL */
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch; /* of memory operations, if count is set */
	struct lowered copy;	    /* otherwise */
	bool disabled;
};

struct run_list {
	size_t n;
	struct run_step *steps;
};

struct run_choice {
	int type;
	uint64_t address; /* of the condition's value */
	bool assign;	  /* the launch assigns value first */
	uint32_t value;
	unsigned int size;
	struct run_list bodies[];
};

struct run {
	struct session *session;
	struct exec *exec; /* a reference: the worker has its parts until it is destroyed */
	uint64_t stream;
	bool reached; /* all earlier work of the stream is done */
	struct run_list top;
};

static int reach(const struct run *r)
{
	struct bslt_stream_synchronize a = {r->stream};

	return call(r->session, BSLT_OP_STREAM_SYNCHRONIZE, &a, sizeof a).result;
}

static int launch_part(const struct run *r, uint64_t part)
{
	struct bslt_graph_launch a = {r->stream, part};

	TRY(stream_enter(r->session, r->stream, exec_units(r->exec)));
	return ring_put(r->session, BSLT_OP_GRAPH_LAUNCH, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
}

static int run_list(struct run *r, const struct run_list *l);

/* Runs bodies as the condition's value requires. */
static int run_choice(struct run *r, const struct run_choice *c)
{
	for (;;) {
		uint32_t value, body;

		TRY(condition_read(r->session, r->stream, c->address, &value));
		r->reached = true;
		body = c->type == CU_GRAPH_COND_TYPE_SWITCH ? value : value == 0;
		if (body >= c->size)
			return 0;
		TRY(run_list(r, &c->bodies[body]));
		if (c->type != CU_GRAPH_COND_TYPE_WHILE)
			return 0;
	}
}

static int run_step(struct run *r, const struct run_step *st)
{
	if (st->part) {
		r->reached = false;
		return launch_part(r, st->part);
	}
	if (st->disabled)
		return 0;
	if (st->choice)
		return run_choice(r, st->choice);
	if (st->batch.count) {
		r->reached = false;
		return memory_operations_put(r->session, r->stream, st->batch.paramArray, st->batch.count);
	}
	if (!r->reached)
		TRY(reach(r));
	r->reached = true;
	if (st->host.fn) {
		st->host.fn(st->host.userData);
		return 0;
	}
	TRY(copy_perform(r->session, r->stream, &st->copy));
	r->reached = st->copy.host_to_host || st->copy.what == BSLT_GRAPH_COPY_DTOH;
	return 0;
}

static int run_list(struct run *r, const struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		TRY(run_step(r, &l->steps[i]));
	return 0;
}

/* Assigns the conditions the values with which a launch begins. */
static int assign(struct run *r, const struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct run_choice *c = l->steps[i].choice;

		if (c && c->assign)
			TRY(condition_write(r->session, r->stream, c->address, c->value));
		for (unsigned int k = 0; c && k < c->size; k++)
			TRY(assign(r, &c->bodies[k]));
	}
	return 0;
}

static void list_free(struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct run_choice *c = l->steps[i].choice;

		for (unsigned int k = 0; c && k < c->size; k++)
			list_free(&c->bodies[k]);
		free(c);
		free(l->steps[i].batch.paramArray);
	}
	free(l->steps);
}

static void run_free(struct run *r)
{
	if (r)
		list_free(&r->top);
	free(r);
}

/* Runs the steps. If the context has failed (err), it calls nothing. */
static void run_steps(void *arg, int err)
{
	struct run *r = arg;

	r->reached = true;
	if (err == 0 && assign(r, &r->top) == 0)
		(void)run_list(r, &r->top);
	object_put(r->exec);
	run_free(r);
}

static int snapshot(const struct order *o, struct run_list *l);

static int snapshot_choice(const struct choice *c, struct run_step *to)
{
	struct run_choice *out = calloc(1, sizeof *out + c->size * sizeof out->bodies[0]);

	if (!(to->choice = out))
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->type = c->type;
	out->size = c->size;
	out->assign = condition_default(c->condition, &out->address, &out->value);
	for (unsigned int k = 0; k < c->size; k++)
		TRY(snapshot(&c->orders[k], &out->bodies[k]));
	return 0;
}

static int snapshot_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b, struct run_step *to)
{
	to->batch = *b;
	return batch_copy_array(&to->batch);
}

static int snapshot(const struct order *o, struct run_list *l)
{
	if (!(l->steps = calloc(o->step_count, sizeof *l->steps)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < o->step_count; i++) {
		const struct step *st = &o->steps[i];
		struct run_step *to = &l->steps[l->n++];
		const struct graph_node *n;

		*to = (struct run_step){.part = st->part};
		if (st->part)
			continue;
		n = o->flat[o->order[st->begin]].node;
		to->disabled = n->disabled;
		if (n->p.kind == CU_GRAPH_NODE_TYPE_HOST)
			to->host = n->p.host;
		else if (n->p.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			TRY(snapshot_choice(&n->p.choice, to));
		else if (n->p.kind == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
			TRY(snapshot_batch(&n->p.batch, to));
		else
			TRY(copy_lower(&n->p.copy, &to->copy));
	}
	return 0;
}

static bool has_choice(const struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->steps[i].choice)
			return true;
	return false;
}

int exec_run(struct session *s, struct exec *e, uint64_t stream, uint64_t context, bool blocking)
{
	struct run *r = calloc(1, sizeof *r);
	int err = r ? 0 : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		*r = (struct run){.session = s, .exec = e, .stream = stream};
		pthread_mutex_lock(&graph_lock);
		err = snapshot(&e->order, &r->top);
		pthread_mutex_unlock(&graph_lock);
	}
	/* The first part can be enqueued at once. This is not possible with conditions: their
	 * first values are assigned when the stream reaches the graph, because an earlier launch
	 * may still use them. */
	if (err == 0 && r->top.steps[0].part && !has_choice(&r->top)) {
		err = launch_part(r, r->top.steps[0].part);
		r->top.steps[0].part = 0;
		r->top.steps[0].disabled = true;
	}
	if (err || (err = callbacks_run(stream, context, blocking, run_steps, r)) != 0) {
		run_free(r);
		object_put(e);
	}
	return err;
}
