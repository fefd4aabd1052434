/* Memory that graphs allocate and free. It is allocated when the node that allocates it is
 * created, so that its address is known and does not change; a launch only determines when
 * the program may use it. So a graph holds its memory as long as it or its executable graph
 * exists, and allocations that are not needed at the same time do not share memory. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

struct graph_memory {
	struct graph_memory *next;
	CUdeviceptr address;
	uint64_t context;
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUmemAccessDesc access;   /* what params points to */
	uint64_t owner, freed_by;         /* IDs of graphs; 0: none */
	unsigned int refs;                /* number of nodes */
	unsigned int allocating, freeing; /* number of executable graphs */
	bool gone;                        /* its context was destroyed */
	bool live;                        /* a launch has allocated it, and it has not been freed since */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph_memory *all;      /* guarded by lock, like the list's elements */
static uint64_t used_most, held_most; /* bytes */

static struct graph_memory *find_memory(uint64_t address)
{
	struct graph_memory *m = all;

	while (m && (m->gone || m->address != address))
		m = m->next;
	return m;
}

static uint64_t bytes(bool live_only)
{
	uint64_t sum = 0;

	for (const struct graph_memory *m = all; m; m = m->next)
		if (!m->gone && (m->live || !live_only))
			sum += m->params.bytesize;
	return sum;
}

static void note_most(void)
{
	uint64_t used = bytes(true), held = bytes(false);

	used_most = used > used_most ? used : used_most;
	held_most = held > held_most ? held : held_most;
}

/* Removes the memory from the list and returns it, if nothing refers to it any more, else
 * NULL. The caller frees it without the lock. */
static struct graph_memory *unused(struct graph_memory *m)
{
	struct graph_memory **at = &all;

	if (m->refs || m->live)
		return NULL;
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	return m;
}

/* Has the worker free the memory when the context's work is done. */
static void free_memory(struct graph_memory *m)
{
	struct session *s;
	struct range r;

	if (m && !m->gone && range_take(SPACE_DEVICE, m->address, &r) && library_session(&s) == 0) {
		struct bslt_mem_free a = {m->address};

		(void)ring_put(s, BSLT_OP_MEM_FREE, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);
	}
	free(m);
}

int graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *p, struct node_params *out)
{
	struct graph_memory *m;
	uint64_t context;
	int err;

	SESSION(s);
	if (!p || p->bytesize == 0 || p->poolProps.allocType != 1 || p->poolProps.location.type != 1 || p->accessDescCount > 1 ||
	    (p->accessDescCount && !p->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	if (p->poolProps.location.id != 0 || (p->accessDescCount && p->accessDescs->location.id != 0))
		return CUDA_ERROR_INVALID_DEVICE;
	if (p->poolProps.handleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	TRY(context_working(&context));
	if (!(m = calloc(1, sizeof *m)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((err = graph_allocate(s, context, p->bytesize, &m->address)) != 0) {
		free(m);
		return err;
	}
	p->dptr = m->address;
	m->context = context;
	m->params = *p;
	if (p->accessDescCount) {
		m->access = *p->accessDescs;
		m->params.accessDescs = &m->access;
	}
	m->refs = 1;
	pthread_mutex_lock(&lock);
	m->next = all;
	all = m;
	note_most();
	pthread_mutex_unlock(&lock);
	*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .context = context, .memory = m};
	return 0;
}

void graph_memory_belongs(const struct node_params *p, const struct graph *g)
{
	pthread_mutex_lock(&lock);
	*(p->kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? &p->memory->owner : &p->memory->freed_by) = g->o.id;
	pthread_mutex_unlock(&lock);
}

/* Reports whether a node that frees the memory can be added. Only one graph at a time may have
 * such a node, and none if the graph that allocates it has had one. */
static bool freeable(const struct graph_memory *m)
{
	return !m->freed_by || (m->freed_by != m->owner && !graph_find(handle_of(m->freed_by)));
}

int graph_memory_freed(uint64_t address, struct node_params *out)
{
	struct graph_memory *m;
	int err = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	if ((m = find_memory(address)) != NULL && freeable(m)) {
		m->refs++;
		*out = (struct node_params){.kind = CU_GRAPH_NODE_TYPE_MEM_FREE, .context = m->context, .memory = m};
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void graph_memory_get(struct graph_memory *m)
{
	pthread_mutex_lock(&lock);
	m->refs++;
	pthread_mutex_unlock(&lock);
}

void graph_memory_put(struct graph_memory *m)
{
	pthread_mutex_lock(&lock);
	m->refs--;
	m = unused(m);
	pthread_mutex_unlock(&lock);
	free_memory(m);
}

uint64_t graph_memory_address(const struct graph_memory *m)
{
	return m->address;
}

void graph_memory_params(const struct graph_memory *m, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	*out = m->params;
}

bool graph_has_memory(const struct graph *g)
{
	for (size_t i = 0; i < g->nodes.n; i++)
		if (is_memory(g->nodes.at[i]->p.kind))
			return true;
	return false;
}

/* Iterates over the nodes of a graph that allocate or free memory. */
#define EACH_MEMORY(g, m, allocates)                                                                                   \
	for (size_t each = 0; each < (g)->nodes.n; each++)                                                             \
		if (is_memory((g)->nodes.at[each]->p.kind) && ((m) = (g)->nodes.at[each]->p.memory,                    \
							       (allocates) = (g)->nodes.at[each]->p.kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC, true))

int graph_memory_instantiate(const struct graph *g)
{
	struct graph_memory *m;
	bool allocates;
	int err = 0;

	pthread_mutex_lock(&lock);
	EACH_MEMORY(g, m, allocates)
		if (allocates ? m->allocating : m->freeing)
			err = CUDA_ERROR_NOT_SUPPORTED; /* CUDA: there is only one executable graph at a time */
	EACH_MEMORY(g, m, allocates)
		if (!err)
			(*(allocates ? &m->allocating : &m->freeing))++;
	pthread_mutex_unlock(&lock);
	return err;
}

void graph_memory_uninstantiate(const struct graph *g)
{
	struct graph_memory *m;
	bool allocates;

	pthread_mutex_lock(&lock);
	EACH_MEMORY(g, m, allocates)
		(*(allocates ? &m->allocating : &m->freeing))--;
	pthread_mutex_unlock(&lock);
}

/* Reports whether a graph can be launched: memory that it allocates must not be allocated
 * already, and memory that it frees must be. */
static bool launchable(const struct graph *g, bool auto_free)
{
	struct graph_memory *m;
	bool allocates, ok = true;

	EACH_MEMORY(g, m, allocates)
		ok = ok && !m->gone && (allocates ? !m->live || auto_free : m->live || m->freed_by == m->owner);
	return ok;
}

int graph_memory_launch(const struct graph *g, bool auto_free)
{
	struct graph_memory *m;
	bool allocates, ok;

	pthread_mutex_lock(&lock);
	if ((ok = launchable(g, auto_free))) {
		EACH_MEMORY(g, m, allocates)
			if (allocates)
				m->live = true;
		note_most();
		EACH_MEMORY(g, m, allocates)
			if (!allocates)
				m->live = false;
	}
	pthread_mutex_unlock(&lock);
	return ok ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int graph_memory_free(uint64_t address)
{
	struct graph_memory *m, *last = NULL;
	int err = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	if ((m = find_memory(address)) != NULL && m->live) {
		m->live = false;
		last = unused(m);
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	free_memory(last);
	return err;
}

void graph_memory_drop_context(uint64_t context)
{
	pthread_mutex_lock(&lock);
	for (struct graph_memory *m = all, *next; m; m = next) {
		next = m->next;
		if (m->context != context)
			continue;
		m->live = false;
		m->gone = true;
		free(unused(m)); /* otherwise it is freed with its last node */
	}
	pthread_mutex_unlock(&lock);
}

void graph_memory_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	all = NULL;
	used_most = held_most = 0;
}

CUDA_API CUresult cuDeviceGraphMemTrim(CUdevice device_given)
{
	SESSION(s);
	(void)s;
	return device_given == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE; /* unused memory is always freed at once, so there is nothing to trim */
}

/* CUgraphMem_attribute */
enum { USED, USED_MOST, HELD, HELD_MOST };

CUDA_API CUresult cuDeviceGetGraphMemAttribute(CUdevice device_given, int attr, void *value)
{
	uint64_t now;

	SESSION(s);
	(void)s;
	if (device_given != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attr < USED || attr > HELD_MOST || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	switch (attr) {
	case USED: now = bytes(true); break;
	case USED_MOST: now = used_most; break;
	case HELD: now = bytes(false); break;
	default: now = held_most;
	}
	pthread_mutex_unlock(&lock);
	memcpy(value, &now, sizeof now);
	return 0;
}

/* The maximum values can be reset. */
CUDA_API CUresult cuDeviceSetGraphMemAttribute(CUdevice device_given, int attr, void *value)
{
	uint64_t given;

	SESSION(s);
	(void)s;
	if (device_given != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || (attr != USED_MOST && attr != HELD_MOST))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&given, value, sizeof given);
	if (given)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*(attr == USED_MOST ? &used_most : &held_most) = 0;
	note_most();
	pthread_mutex_unlock(&lock);
	return 0;
}
