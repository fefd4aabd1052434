/* Graphs, as the program builds them and as it launches them.
 *
 * graph_lock guards all graphs, nodes and captures. It is acquired before the locks of
 * state.h and user_object.c, but after callbacks_wait has returned. A node or graph that was
 * found with it stays valid until it is released. An executable graph may be destroyed with
 * its context, so callers hold a reference to it. Its destruction does not acquire
 * graph_lock, because nothing else uses what it owns. */
#ifndef BASALT_GRAPH_H
#define BASALT_GRAPH_H

#include "state.h"

extern pthread_mutex_t graph_lock;

/* The body of a function of the API that works on graphs. */
#define GRAPH_LOCKED(call)                                                                                             \
	do {                                                                                                           \
		int locked_err;                                                                                        \
		SESSION(locked_session);                                                                               \
		(void)locked_session;                                                                                  \
		pthread_mutex_lock(&graph_lock);                                                                       \
		locked_err = (call);                                                                                   \
		pthread_mutex_unlock(&graph_lock);                                                                     \
		return locked_err;                                                                                     \
	} while (0)

struct condition;
struct graph;
struct graph_memory;
struct graph_node;
struct order;

struct node_list {
	struct graph_node **at;
	size_t n, room;
};
int list_add(struct node_list *l, struct graph_node *n);
bool list_remove(struct node_list *l, const struct graph_node *n);
bool list_has(const struct node_list *l, const struct graph_node *n);

/* A kernel's parameters are copied into bytes that the node owns; pointers lead to each. */
#define KERNEL_ATTRIBUTES 4
struct kernel_params {
	CUfunction handle; /* as the program gave it */
	uint64_t function;
	uint32_t grid[3], block[3], shared, flags, size, count;
	uint8_t *bytes;
	void **pointers;
	uint32_t given; /* bits: the attributes that are set */
	CUkernelNodeAttrValue attributes[KERNEL_ATTRIBUTES];
};

/* The condition and the bodies of a conditional node. */
struct choice {
	struct condition *condition; /* a reference */
	int type;		     /* CU_GRAPH_COND_TYPE_… */
	unsigned int size;
	CUgraph *handles;     /* handles of the bodies, which the program received */
	struct graph **bodies; /* owned by the node */
	struct order *orders; /* orders of the bodies, in an executable graph */
};

struct node_params {
	int kind;         /* CU_GRAPH_NODE_TYPE_… */
	uint64_t context; /* 0: any */
	union {
		struct kernel_params kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS set;
		CUDA_HOST_NODE_PARAMS host;
		struct graph *child; /* owned by the node */
		uint64_t event;
		struct graph_memory *memory; /* a reference */
		struct choice choice;
		CUDA_BATCH_MEM_OP_NODE_PARAMS batch; /* the node owns the array */
	};
};

struct graph_node {
	struct object o; /* id 0: not in the table */
	struct graph *graph;
	struct node_params p;
	struct node_list in, out;
	uint64_t origin;    /* the node that this one was cloned from */
	bool disabled;      /* in an executable graph */
	size_t first, last; /* in an executable graph: its first and last index in the flat order */
	struct order *order; /* the flat order that contains it */
	size_t place;       /* its index in its graph, while that is cloned or compared */
};

struct user_object;
struct user_reference {
	struct user_reference *next;
	struct user_object *object;
	unsigned int count;
};

struct graph {
	struct object o; /* id 0: it belongs to an executable graph */
	struct node_list nodes; /* in the order of their creation */
	bool child;      /* belongs to a node: the program cannot destroy it */
	unsigned int captures; /* number of captures into it that have not ended */
	uint64_t origin; /* the graph that this one was cloned from */
	struct user_reference *users;
	struct condition **conditions; /* references to those that the program has created for it */
	size_t condition_count;
};

/* graph.c */
struct graph *graph_find(CUgraph h);
struct graph_node *node_find(CUgraphNode h);
struct graph *graph_new(bool visible);
void graph_drop(struct graph *g);
/* Adds a node that depends on n others of the graph. It takes ownership of what *p points to,
 * even if it fails. */
int node_add(struct graph *g, const CUgraphNode *deps, size_t n, struct node_params *p, struct graph_node **out);
int edge_add(struct graph_node *from, struct graph_node *to);
/* Reports whether none of n edges has data. */
bool edges_plain(const CUgraphEdgeData *data, size_t n);
void graphs_abandon(void);

/* graph_clone.c */
int graph_clone(const struct graph *g, bool visible, struct graph **out);

/* graph_params.c: these functions check the program's parameters and copy them. */
int params_kernel(const CUDA_KERNEL_NODE_PARAMS *k, struct node_params *out);
int params_copy(const CUDA_MEMCPY3D *c, uint64_t context, struct node_params *out);
int params_memset(const CUDA_MEMSET_NODE_PARAMS *m, uint64_t context, struct node_params *out);
int params_host(const CUDA_HOST_NODE_PARAMS *h, struct node_params *out);
int params_event(CUevent e, int kind, struct node_params *out);
int params_child(CUgraph h, struct node_params *out);
int params_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b, struct node_params *out);
int params_any(const CUgraphNodeParams *a, struct node_params *out);
int params_clone(const struct node_params *p, bool visible, struct node_params *out);
void params_free(struct node_params *p);
/* Replaces the array of a batch by a copy. */
int batch_copy_array(CUDA_BATCH_MEM_OP_NODE_PARAMS *b);

/* Finds the context that the program names, or the current one. */
int params_context(CUcontext h, uint64_t *context);

/* graph_condition.c */
int params_choice(const CUDA_CONDITIONAL_NODE_PARAMS *c, struct node_params *out);
int choice_clone(const struct choice *c, struct choice *out);
void choice_free(struct choice *c);
struct condition *condition_get(struct condition *c);
void conditions_free(struct graph *g);
void conditions_abandon(void);
/* Returns the address of the condition's value, and reports whether each launch assigns it a
 * first value, and which. */
bool condition_default(const struct condition *c, uint64_t *address, uint32_t *value);
/* Read the value when the stream has reached this point, and write a new one in the order of
 * the stream. */
int condition_read(struct session *s, uint64_t stream, uint64_t address, uint32_t *value);
int condition_write(struct session *s, uint64_t stream, uint64_t address, uint32_t value);

/* graph_attributes.c. Attributes are separate from a kernel's parameters: code that replaces
 * the parameters copies the attributes. */
extern const int kernel_attribute_ids[KERNEL_ATTRIBUTES];
int kernel_attribute_get(const struct kernel_params *k, int id, CUkernelNodeAttrValue *out);
int kernel_attribute_set(struct kernel_params *k, int id, const CUkernelNodeAttrValue *value);
void kernel_attributes_copy(struct kernel_params *to, const struct kernel_params *from);
int kernel_attributes_of_stream(CUstream h, struct kernel_params *k);

/* user_object.c */
void user_references_free(struct user_reference *r);
void user_objects_abandon(void);
int user_references_clone(const struct user_reference *r, struct user_reference **out);
/* Adds n references to a list: new ones, or, with move, those of the program. */
int user_references_add(struct user_reference **list, CUuserObject object, unsigned int n, bool move);
int user_references_take(struct user_reference **list, CUuserObject object, unsigned int n);

/* graph_copy.c: a copy in the form in which it is performed. Host addresses without a region
 * are addresses of this process, which then performs the copy. */
struct lowered {
	uint32_t what, region; /* BSLT_GRAPH_COPY_… */
	bool host_to_host, guest;
	uint64_t dst, src, width, height, depth, dst_pitch, dst_slice, src_pitch, src_slice;
};
int copy_lower(const CUDA_MEMCPY3D *c, struct lowered *out);
/* Performs the copy in this process. The stream has reached it. */
int copy_perform(struct session *s, uint64_t stream, const struct lowered *l);

/* graph_memory.c. Creates the parameters of a node that allocates. It allocates the memory
 * now, without graph_lock, because that may wait. */
int graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *p, struct node_params *out);
/* Creates the parameters of a node that frees the memory at an address. */
int graph_memory_freed(uint64_t address, struct node_params *out);
/* Records that such a node now belongs to the graph. */
void graph_memory_belongs(const struct node_params *p, const struct graph *g);
void graph_memory_get(struct graph_memory *m);
void graph_memory_put(struct graph_memory *m);
uint64_t graph_memory_address(const struct graph_memory *m);
void graph_memory_params(const struct graph_memory *m, CUDA_MEM_ALLOC_NODE_PARAMS *out);
bool graph_has_memory(const struct graph *g);
/* Called when an executable graph is created and destroyed. */
int graph_memory_instantiate(const struct graph *g);
void graph_memory_uninstantiate(const struct graph *g);
/* Called when it is launched. */
int graph_memory_launch(const struct graph *g, bool auto_free);
void graph_memory_abandon(void);

static inline bool is_memory(int kind)
{
	return kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC || kind == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

/* graph_order.c: the nodes of a graph and of its children in one order. */
struct flat {
	struct graph_node *node; /* NULL: begin or end of a child */
	struct {
		uint32_t *at;
		size_t n, room;
	} deps;
	bool guest;     /* performed in this process */
	uint32_t index; /* in its part */
	size_t step;
};
struct step {
	uint64_t part; /* ID of the worker's executable graph; 0: one node that this process performs */
	size_t begin, end; /* indices in order */
};
struct order {
	struct flat *flat;
	uint32_t *order; /* indices of flat */
	size_t n;
	struct step *steps;
	size_t step_count;
};
int order_make(struct graph *g, struct order *out);
void order_free(struct order *o);
/* Calls f for the order and for the orders of the bodies in it, until one returns an error. */
int order_each(struct order *o, int (*f)(struct order *, void *), void *arg);

/* graph_wire.c */
int wire_instantiate(struct session *s, const struct order *o, const struct step *st, uint64_t context);
int wire_update(struct session *s, const struct order *o, const struct step *st, const size_t *changed, size_t n);

/* graph_exec.c */
struct exec {
	struct object o;
	struct graph *own; /* its own clone; its nodes have their origin */
	struct order order;
	unsigned long long flags;
	bool memory; /* it has nodes that allocate or free memory */
	_Atomic bool launched;
};
/* Returns the units that a launch counts in its stream (lane.c): the worker needs a little
 * memory for each node until the launch is done. */
static inline uint32_t exec_units(const struct exec *e)
{
	return 1 + (uint32_t)(e->order.n / 32);
}
/* Returns the node of an executable graph whose origin is the given node. */
struct graph_node *exec_node(struct graph *own, uint64_t origin);
/* Reports whether a launch has steps that this process performs. */
static inline bool exec_stepwise(const struct exec *e)
{
	return e->order.step_count > 1 || e->order.steps[0].part == 0;
}

/* graph_run.c: launches a graph of several steps. It takes ownership of *e. */
int exec_run(struct session *s, struct exec *e, uint64_t stream, uint64_t context, bool blocking);

#endif
