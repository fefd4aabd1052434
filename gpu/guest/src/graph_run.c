/* A launch of a graph in which this process has to do something: host functions,
 * and copies of memory that the worker does not see. The steps follow each other
 * in the thread of host functions, which the stream comes to as it comes to a host
 * function; what the stream is to do after the graph waits on this side. */
#include <stdlib.h>

#include "graph.h"

/* A step as it was when the graph was launched. */
struct run_step {
	uint64_t part;
	CUDA_HOST_NODE_PARAMS host; /* fn: a host function */
	struct lowered copy;        /* else */
	bool disabled;
};

struct run {
	struct session *session;
	struct exec *exec; /* kept: its parts are the worker's until it goes */
	uint64_t stream;
	size_t n;
	struct run_step steps[];
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

/* In a context that has failed nothing more is called. */
static void run_steps(void *arg, int err)
{
	struct run *r = arg;
	bool reached = true; /* all before is done */

	for (size_t i = 0; i < r->n && err == 0; i++) {
		const struct run_step *st = &r->steps[i];

		if (st->part) {
			err = launch_part(r, st->part);
			reached = false;
			continue;
		}
		if (st->disabled)
			continue;
		if (!reached)
			err = reach(r);
		reached = true;
		if (err == 0 && st->host.fn)
			st->host.fn(st->host.userData);
		else if (err == 0 && (err = copy_perform(r->session, r->stream, &st->copy)) == 0)
			reached = st->copy.host_to_host || st->copy.what == BSLT_GRAPH_COPY_DTOH;
	}
	object_put(r->exec);
	free(r);
}

static int snapshot(const struct exec *e, struct run *r)
{
	for (size_t i = 0; i < e->order.step_count; i++) {
		const struct step *st = &e->order.steps[i];
		struct run_step *to = &r->steps[r->n++];
		const struct graph_node *n;

		*to = (struct run_step){.part = st->part};
		if (st->part)
			continue;
		n = e->order.flat[e->order.order[st->begin]].node;
		to->disabled = n->disabled;
		if (n->p.kind == CU_GRAPH_NODE_TYPE_HOST)
			to->host = n->p.host;
		else
			TRY(copy_lower(&n->p.copy, &to->copy));
	}
	return 0;
}

int exec_run(struct session *s, struct exec *e, uint64_t stream, uint64_t context, bool blocking)
{
	struct run *r = calloc(1, sizeof *r + e->order.step_count * sizeof r->steps[0]);
	int err = r ? 0 : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		*r = (struct run){.session = s, .exec = e, .stream = stream};
		pthread_mutex_lock(&graph_lock);
		err = snapshot(e, r);
		pthread_mutex_unlock(&graph_lock);
	}
	if (err == 0 && r->steps[0].part) { /* no need to come to the place for that */
		err = launch_part(r, r->steps[0].part);
		r->steps[0].part = 0;
		r->steps[0].disabled = true;
	}
	if (err || (err = callbacks_run(stream, context, blocking, run_steps, r)) != 0) {
		free(r);
		object_put(e);
	}
	return err;
}
