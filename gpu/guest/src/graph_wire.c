/* Encodes executable graphs for the worker: gpu/abi/graph_codec.go. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "launch_flags.h"

#define RECORD_VERSION 1 /* abi.RecordVersion */

struct wire {
	uint8_t *b;
	size_t n, room;
	bool failed;
	bool attributes; /* the worker supports attributes of kernels */
	bool clusters;	 /* the worker supports clusters */
};

static void put(struct wire *w, const void *p, size_t n)
{
	if (w->failed || n == 0)
		return;
	if (n > w->room - w->n) {
		size_t room = (w->room + n) * 2;
		uint8_t *b = realloc(w->b, room);

		if (!b) {
			w->failed = true;
			return;
		}
		w->b = b;
		w->room = room;
	}
	memcpy(w->b + w->n, p, n);
	w->n += n;
}

static void u32(struct wire *w, uint32_t v)
{
	put(w, &v, sizeof v);
}

static void u64(struct wire *w, uint64_t v)
{
	put(w, &v, sizeof v);
}

static void align(struct wire *w)
{
	static const uint8_t zero[8];

	put(w, zero, -w->n & 7);
}

/* Returns the number of attributes to send. Older workers do not support them; they are only
 * hints. */
static uint32_t attribute_count(const struct wire *w, const struct kernel_params *k)
{
	return w->attributes ? (uint32_t)__builtin_popcount(k->given) : 0;
}

static void attributes(struct wire *w, const struct kernel_params *k)
{
	for (int i = 0; w->attributes && i < KERNEL_ATTRIBUTES; i++) {
		if (!(k->given & 1u << i))
			continue;
		u32(w, (uint32_t)kernel_attribute_ids[i]);
		u32(w, 0);
		put(w, &k->attributes[i], sizeof k->attributes[i]);
	}
}

static void kernel(struct wire *w, const struct kernel_params *k)
{
	u64(w, k->function);
	put(w, k->grid, sizeof k->grid);
	put(w, k->block, sizeof k->block);
	u32(w, k->shared);
	u32(w, k->flags);
	u32(w, k->size);
	u32(w, attribute_count(w, k));
	put(w, k->bytes, k->size);
	align(w);
	attributes(w, k);
}

static int copy(struct wire *w, const CUDA_MEMCPY3D *c)
{
	struct lowered l;

	TRY(copy_lower(c, &l));
	const uint64_t sums[] = {l.dst,	      l.src,	   l.width,	l.height,   l.depth,
				 l.dst_pitch, l.dst_slice, l.src_pitch, l.src_slice};

	if (l.guest)
		return CUDA_ERROR_INVALID_VALUE; /* it was valid when the graph was created */
	u32(w, l.what);
	u32(w, l.what == BSLT_GRAPH_COPY_DTOD ? 0 : l.region);
	put(w, sums, sizeof sums);
	return 0;
}

static void set(struct wire *w, const CUDA_MEMSET_NODE_PARAMS *m)
{
	bool one = m->pitch == m->width * m->elementSize;

	u32(w, m->value);
	u32(w, m->elementSize);
	u64(w, m->dst);
	u64(w, m->pitch);
	u64(w, one ? m->width * m->height : m->width);
	u64(w, one ? 1 : m->height);
}

static int body(struct wire *w, const struct node_params *p)
{
	switch (p->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (p->kernel.flags >> CLUSTER_SHIFT && !w->clusters)
			return CUDA_ERROR_NOT_SUPPORTED;
		kernel(w, &p->kernel);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY: return copy(w, &p->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET: set(w, &p->set); break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: u64(w, p->event); break;
	default: break;
	}
	return 0;
}

/* Writes one node; deps are the indices of nodes in the same record. */
static int node(struct wire *w, const struct graph_node *n, const uint32_t *deps, uint32_t count)
{
	bool empty = !n || n->p.kind == CU_GRAPH_NODE_TYPE_GRAPH || is_memory(n->p.kind);
	size_t length, start;
	uint32_t size;

	u32(w, empty ? BSLT_GRAPH_NODE_EMPTY : (uint32_t)n->p.kind);
	u32(w, n && n->disabled ? BSLT_GRAPH_NODE_DISABLED : 0);
	u32(w, count);
	length = w->n;
	u32(w, 0);
	put(w, deps, count * sizeof *deps);
	align(w);
	start = w->n;
	if (!empty)
		TRY(body(w, &n->p));
	size = (uint32_t)(w->n - start);
	if (!w->failed)
		memcpy(w->b + length, &size, sizeof size);
	return 0;
}

static void begin(struct wire *w, size_t nodes)
{
	u32(w, RECORD_VERSION);
	u32(w, 0);
	u32(w, (uint32_t)nodes);
	u32(w, 0);
}

/* Sends the record with a command. off, len and region point to the members of args for the
 * record's position. */
static int finish(struct session *s, struct wire *w, uint16_t op, void *args, uint32_t args_len, uint64_t *off, uint64_t *len,
		  uint32_t *region)
{
	struct piece p;
	uint32_t total = (uint32_t)w->n;
	int err = w->failed ? CUDA_ERROR_OUT_OF_MEMORY : w->n > BSLT_MAX_GRAPH_BYTES ? CUDA_ERROR_NOT_SUPPORTED : 0;

	if (!err && (err = piece_get(s, w->n, &p)) == 0) {
		memcpy(w->b + 4, &total, sizeof total);
		memcpy(p.bytes, w->b, w->n);
		*off = p.off;
		*len = w->n;
		*region = p.number;
		err = call(s, op, args, args_len).result;
		piece_put(s, &p);
	}
	free(w->b);
	return err;
}

int wire_instantiate(struct session *s, const struct order *o, const struct step *st, uint64_t context)
{
	struct bslt_graph_instantiate a = {.ctx = context, .exec = st->part};
	uint32_t *deps = NULL;
	struct wire w = {.attributes = worker_minor(s) >= 3, .clusters = worker_minor(s) >= 5};
	size_t room = 0;
	int err = 0;

	begin(&w, st->end - st->begin);
	for (size_t i = st->begin; i < st->end && !err; i++) {
		const struct flat *f = &o->flat[o->order[i]];
		uint32_t n = 0;

		if (f->deps.n > room) {
			uint32_t *more = realloc(deps, (room = 2 * f->deps.n) * sizeof *deps);

			if (!more) {
				err = CUDA_ERROR_OUT_OF_MEMORY;
				break;
			}
			deps = more;
		}
		for (size_t k = 0; k < f->deps.n; k++) { /* nodes of earlier parts are done before this part begins */
			const struct flat *on = &o->flat[f->deps.at[k]];

			if (on->step == f->step)
				deps[n++] = on->index;
		}
		err = node(&w, f->node, deps, n);
	}
	free(deps);
	if (err) {
		free(w.b);
		return err;
	}
	return finish(s, &w, BSLT_OP_GRAPH_INSTANTIATE, &a, sizeof a, &a.nodes_off, &a.nodes_len, &a.nodes_region);
}

int wire_update(struct session *s, const struct order *o, const struct step *st, const size_t *changed, size_t n)
{
	struct bslt_graph_update a = {.exec = st->part};
	struct wire w = {.attributes = worker_minor(s) >= 3, .clusters = worker_minor(s) >= 5};

	begin(&w, n);
	for (size_t i = 0; i < n; i++) {
		const struct flat *f = &o->flat[changed[i]];
		int err = node(&w, f->node, &f->index, 1);

		if (err) {
			free(w.b);
			return err;
		}
	}
	return finish(s, &w, BSLT_OP_GRAPH_UPDATE, &a, sizeof a, &a.nodes_off, &a.nodes_len, &a.nodes_region);
}
