/* What libcuda keeps in this process: the session, the objects behind the
 * handles that it gave to the program, each thread's current context.
 *
 * A handle that a program holds is a number, never an address: a wrong one is
 * not found and gives an error. Numbers are not used twice.
 *
 * Lock order: references (reference.c), mappings (mapping.c), library (state.c), callbacks (callback.c), kept (kept.c), objects (object.c),
 * ranges (ranges.c), pools (pool.c); then the channel's. */
#ifndef BASALT_STATE_H
#define BASALT_STATE_H

#define BASALT_CUDA_IMPLEMENTATION
#include "basalt_cuda.h"
#include "channel.h"
#include "reply.h"

/* state.c: the process's session. */
extern struct device_info device; /* read only once cuInit has returned */
int library_init(void);
/* The CUDA version of the driver, also before cuInit; 0: there is no vGPU. */
uint32_t library_version(void);
/* The session, or why there is none. */
int library_session(struct session **s);
/* Changes in a forked child. */
extern _Atomic unsigned generation;
/* In a forked child: forgets the session and returns it, or NULL. */
struct session *state_abandon(void);
/* fork.c: from now on a forked child forgets all that this library keeps. */
void forks_watch(void);

#define SESSION(s)                                                                                                     \
	struct session *s;                                                                                             \
	do {                                                                                                           \
		int session_err = library_session(&s);                                                                 \
		if (session_err)                                                                                       \
			return session_err;                                                                            \
	} while (0)

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		int try_err = (call);                                                                                  \
		if (try_err)                                                                                           \
			return try_err;                                                                                \
	} while (0)

/* attribute.c: a CUdevice_attribute; 0: not known. */
int device_attribute(int attribute);

/* object.c */
enum kind { KIND_CONTEXT = 1, KIND_MODULE, KIND_FUNCTION, KIND_STREAM, KIND_EVENT, KIND_LIBRARY, KIND_KERNEL, KIND_LINK,
	KIND_GRAPH, KIND_GRAPH_NODE, KIND_GRAPH_EXEC, KIND_USER_OBJECT, KIND_ARRAY, KIND_MIPMAP, KIND_TEXTURE, KIND_MEMORY, KIND_REFERENCE, KIND_GREEN, KIND_RESOURCE_DESC,
	KIND_EXTERNAL };

struct object {
	uint64_t id, context;
	enum kind kind;
	int refs; /* guarded by the table's lock; the table holds one */
	struct object *next;
	void (*destroy)(struct object *); /* frees what hangs on it; NULL: nothing */
};

/* n consecutive new handles. */
uint64_t object_ids(uint64_t n);
/* A new handle for a stream, or for a context, which has one: it names a lane
 * (channel.h) that no other stream has, while there are lanes. The object's
 * destroy gives the lane back, or who has no object calls object_stream_end. */
uint64_t object_stream_id(void);
void object_stream_end(uint64_t id);
void object_stream_gone(struct object *o);
/* An object of size bytes, not yet to be found; NULL: no memory. */
void *object_new(size_t size, enum kind kind, uint64_t id, uint64_t context);
void object_add(void *o);
/* Counts a reference; NULL if the handle is not one of that kind. */
void *object_get(const void *handle, enum kind kind);
/* One more reference to an object of which the caller has one. */
void object_get_more(void *o);
void object_put(void *o);
/* Takes it out of the table; false if it was not there. */
bool object_remove(uint64_t id, enum kind kind);
/* Takes out all of a context, and it too. */
void object_remove_context(uint64_t context);
/* The handles of all of a kind, at most max; how many there are. */
size_t object_list(enum kind kind, uint64_t *ids, size_t max);
/* In a forked child: forgets all. */
void objects_abandon(void);

static inline void *handle_of(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

/* coredump.c: what was set for a context, or the program; nothing is found elsewhere. */
struct coredump {
	struct {
		int state, value;
	} trigger_host, lightweight, flags;
	char file[1024]; /* "": not set */
};

struct context {
	struct object o;
	unsigned int flags, api;
	bool primary;
	_Atomic unsigned int attached; /* by cuCtxAttach, and not yet by cuCtxDetach */
	_Atomic uint64_t limits[8];
	_Atomic int cache_config, shared_config;
	_Atomic int fault;        /* its asynchronous error, once it is known */
	_Atomic uint32_t well_at; /* it had none when so many contexts had one */
	_Atomic uint32_t shown_at; /* what its kernels had printed when the header counted so much has been shown */
	_Atomic uint64_t drained; /* all that was put before work_count was one less is done; 0: never */
	_Atomic uint64_t drained_staged; /* likewise of staged_count */
	_Atomic uint64_t gate; /* the stream that new streams wait for (context_events.c), or 0 */
	struct coredump coredump; /* guarded by coredump.c's lock */
};
struct stream {
	struct object o;
	unsigned int flags;
	int priority;
	uint64_t green; /* the green context that it is of, or 0 */
	bool gate;	/* of a context (context_events.c) */
};
struct event {
	struct object o;
	unsigned int flags;
	_Atomic bool recorded;
	_Atomic bool shared; /* with other processes (ipc.c) */
	_Atomic uint64_t captured; /* the capture in which it was last recorded; 0: none */
	struct handle_list *fork;  /* what it stands for there; guarded by graph_lock */
};
struct function {
	struct object o;
	uint64_t module;
	struct function_info info;
	_Atomic int cluster[2];	/* what was set for attributes 14 and 15, of which the worker tells nothing */
	_Atomic bool loaded; /* the attributes in info are known, and whether it is refused */
	uint32_t param_bytes;
	struct launch_state *state; /* launch_state.c's, or NULL */
};
struct module {
	struct object o;
	uint64_t first_function;
	uint64_t managed; /* where its managed variables lie, if they are its own */
	bool lazy;	  /* its functions may have to be loaded */
	struct module_info info; /* names and params of functions have moved into them */
	char **names;
};

/* current.c */
int context_current(uint64_t *context);
int context_object(struct context **c); /* the current one; object_put it */
/* The context of a handle, or the one behind a green context's; object_put it. NULL: none. */
struct context *context_get(const void *h);
int current_push(uint64_t context);
/* Takes a context off the stack, if it is on top. */
void current_leave(uint64_t context);
/* Whom to tell of a default stream that ends with its thread. */
void default_streams_tell(void (*gone)(uint64_t stream));
/* fault.c: the asynchronous error of a context, or 0. */
int context_fault(uint64_t context);
/* resolve.c: context_current for a call that gives it work. */
int context_working(uint64_t *context);

/* The wire's stream and its context, for a stream handle of the program. *blocking:
 * whether it and the context's default stream wait for each other. */
int stream_find(CUstream h, uint64_t *stream, uint64_t *context, bool *blocking);
/* resolve.c: the same for a call that puts work there or waits for it: an error when
 * the context has failed. */
int stream_resolve(CUstream h, uint64_t *stream, uint64_t *context);
/* The calling thread's own default stream in a context. */
int stream_per_thread(uint64_t context, uint64_t *stream);
/* context.c */
int primary_retain(CUcontext *c);
/* Waits until all that the context has been given is done. */
int context_drain(struct session *s, struct context *c);
/* Whether nothing is under way in it whose end the program could see. */
bool context_quiet(struct session *s, struct context *c);
/* Whether nothing is under way in it at all. */
bool context_untouched(struct session *s, struct context *c);
void primary_abandon(void);
int primary_release(void);
bool primary_active(void);

/* callback.c: waits until no host function is due before what that stream does
 * next; stream 0: before anything in the context. An error in a host function. */
int callbacks_wait(uint64_t stream, uint64_t context, bool blocking);
bool callbacks_pending(uint64_t stream, uint64_t context, bool blocking);
void callbacks_abandon(void);

/* Adds a host function of the program, of either kind. */
int callbacks_add(CUstream h, CUhostFn function, CUstreamCallback callback, void *data);
/* Calls run with the result when the stream has come to this place, before what the
 * stream does next. It is the library's: it makes no call of the API. */
int callbacks_run(uint64_t stream, uint64_t context, bool blocking, void (*run)(void *, int), void *data);
/* Calls run when all that the context has been given is done; context 0: soon. */
int callbacks_after(uint64_t context, void (*run)(void *, int), void *data);

/* module.c: has the worker compile a function, and reads what it says of it. */
int function_load(struct session *s, uint64_t function, struct module_info *info);
/* refused.c: 0, or CUDA_ERROR_NO_BINARY_FOR_GPU when the device cannot run it. Before,
 * its attributes may not be known. */
int function_usable(struct function *f);

/* printf.c: writes what the context's kernels have printed to this process's stdout,
 * and failed assertions to stderr. */
void output_show(struct session *s, uint64_t context);
/* The same for the context of a stream, at the end of a call that returns err. */
int output_after(CUstream h, int err);
/* Sets how many bytes are kept; *value becomes what they are. */
int output_limit(uint64_t context, uint64_t *value);
void output_abandon(void);

/* parameters.c: lays a kernel's parameters out as its parameter space; *n: bytes. */
int launch_parameters(struct function *f, void **params, void **extra, uint8_t *out, uint32_t *n);

/* module.c */
int module_load(const void *image, size_t size, unsigned int options, const CUjit_option *keys, void **values,
		CUmodule *out);
/* Memory for the managed variables of a library, whose modules share it. */
struct managed_variables {
	pthread_mutex_t lock; /* held while a module with some is loaded */
	uint64_t address;     /* 0: none has been loaded */
};
/* A managed variable of a module. */
int module_managed(CUmodule h, const char *name, CUdeviceptr *address, size_t *bytes);
/* The same into a context that need not be the current one; shared: NULL where a
 * module has its variables for itself. */
int module_load_into(uint64_t context, const void *image, size_t size, unsigned int options, const CUjit_option *keys,
		     void **values, struct managed_variables *shared, CUmodule *out);
/* The kernels of an image, as the worker reads them; free_module_info. No context is
 * needed and nothing is loaded. CUDA_ERROR_NOT_SUPPORTED: the worker is too old. */
int image_read(const void *image, size_t size, struct module_info *info);
/* The optimization level and the registers a thread that JIT options ask for. */
void jit_numbers(unsigned int n, const CUjit_option *keys, void **values, uint32_t *opt_level, uint32_t *max_registers);
/* Empties the log buffers among JIT options: a program reads them after any error. */
void jit_logs_begin(unsigned int n, const CUjit_option *keys, void **values);
/* Bytes of an image that the program gave without its size; 0: not known. *image
 * becomes what is to be sent, and *made the same where it had to be made, or NULL:
 * free(*made). */
size_t image_size(const void **image, void **made);
/* link.c: an image of several objects. Its name may be NULL. */
struct link;
struct link *link_begin(void); /* object_put it */
int link_add(struct link *l, uint32_t type, const void *data, size_t size, const char *name);
size_t link_end(struct link *l, void **image); /* 0: no memory, or too large */
/* What the beginning of an image of that size tells: 0, or CUDA_ERROR_INVALID_IMAGE. */
int image_check(const void *image, size_t size);
/* The bytes of a file, with a NUL after them; free(*bytes). */
int read_file(const char *name, void **bytes, size_t *size);
int function_resolve(CUfunction h, struct function **f);

/* function.c: one parameter of a kernel, or CUDA_ERROR_INVALID_VALUE. */
int param_info_of(const struct function_info *f, size_t index, size_t *offset, size_t *size);

/* library.c: a context is new; where programs ask for it, libraries go there. */
void libraries_enter(uint64_t context);

/* ranges.c: what lies at an address. */
struct range {
	uint64_t address, size, context;
	unsigned int flags;
	struct region region; /* pinned host memory with a region of its own */
	bool owned;           /* host: allocated by us, not registered */
	bool mapped;          /* host: the device uses it at its address */
	bool managed;         /* host: of cuMemAllocManaged, or variables; mapped too */
	bool variables;       /* host: a module's, or a library's if context is 0 */
	uint64_t pool;        /* device: that it counts in, or 0 */
	bool graph;           /* device: a graph's (graph_memory.c) */
	bool exported;	      /* device: other processes may open it (ipc.c) */
	bool opened;	      /* device: another process's, of cuIpcOpenMemHandle */
	bool sync;            /* calls that need not wait for copies and memsets of it do */
	uint64_t memory;      /* device: what is mapped here (mapping.c), or 0 */
	uint32_t access;      /* with memory: CUmemAccess_flags */
};
enum space { SPACE_DEVICE, SPACE_HOST };
/* Where the session's addresses lie, before any range is added, and which of them
 * are of host memory. */
void ranges_window(const struct window *w, const struct window *host);
/* Whether n bytes from address on have one in the window: no program memory. */
bool in_window(uint64_t address, uint64_t n);
int range_add(enum space space, const struct range *r);
bool range_find(enum space space, uint64_t address, struct range *r);
/* Whether n bytes from address on lie in one piece of host memory that the device
 * uses at its address. */
bool host_range(uint64_t address, uint64_t n);
/* Sets or clears the range's sync; false: there is none at the address. */
bool range_sync(uint64_t address, bool set, struct range *r);
/* Whether it is set. */
bool range_synced(uint64_t address);
/* The address of variables in host memory that are a context's; 0: there are none. */
uint64_t range_variables(uint64_t context);
/* Notes that other processes may open the range that starts at address; false: there is none. */
bool range_export(uint64_t address);
/* Takes out the range that starts at address. */
bool range_take(enum space space, uint64_t address, struct range *r);
/* Says what may be done with all that is mapped in a range. */
void ranges_access(uint64_t address, uint64_t size, uint32_t access);
/* Takes out all of a context; gone is called for each, with the table locked. */
void ranges_drop_context(uint64_t context, void (*gone)(const struct range *r));
void ranges_abandon(void);

/* mapping.c. The addresses that the program has reserved around one. */
bool reservation_find(uint64_t address, uint64_t *base, uint64_t *size);
void mappings_abandon(void);

/* external.c. Ends a buffer of external memory; CUDA_ERROR_INVALID_VALUE: it is none. */
int external_free(uint64_t address);
void external_abandon(void);

enum { IPC_EVENT_SUPPORTED = 125 }; /* CUdevice_attribute */
/* ipc.c. Whether other processes can be let open a range of device memory. */
bool ipc_capable(const struct range *r);
/* A file with the token of an answer in it, and back. */
int token_file(const struct answer *a, int *fd);
int token_read(int fd, uint64_t *half0, uint64_t *half1);
/* Lets a stream wait for the latest record of a shared event, whatever process made it. */
int ipc_stream_wait(struct session *s, CUstream h, const struct event *e);
void ipc_abandon(void);

/* memory.c. Allocates memory of a graph. */
int graph_allocate(struct session *s, uint64_t context, uint64_t size, CUdeviceptr *out);
/* graph_memory.c. The program frees memory of a graph. */
int graph_memory_free(uint64_t address);
void graph_memory_drop_context(uint64_t context);
/* graph_condition.c */
void conditions_drop_context(uint64_t context);

/* kept.c. Keeps a range of device memory, which nothing can use any more; false: it
 * is to be freed. */
bool kept_put(struct session *s, const struct range *r);
/* Memory of just that size that is kept in the context. */
bool kept_take(struct session *s, uint64_t context, uint64_t size, uint64_t *address);
/* A context is going, and its memory with it; it is in the table of objects no longer. */
void kept_drop_context(struct session *s, uint64_t context);
void kept_abandon(void);

/* pool.c. Counts size bytes in a pool, NULL the device's, before they are allocated. */
int pool_take(CUmemoryPool h, uint64_t size, uint64_t *id);
/* They have been: the most in use counts. */
void pool_taken(uint64_t id);
/* A range's bytes are in use no longer, or were not allocated. */
void pool_give(const struct range *r);
void pools_abandon(void);

/* memory.c: device memory of a context; cuMemFree and cuMemFreeAsync free it. */
int device_allocate(struct session *s, uint64_t context, uint64_t pool, size_t size, CUdeviceptr *out);

/* array.c: an array, a level of one, or a whole one with levels. */
struct array {
	struct object o; /* KIND_ARRAY or KIND_MIPMAP */
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t wire; /* the worker's array, of which it is a level */
	uint32_t level, levels;
	uint64_t first; /* KIND_MIPMAP: the handle of its first level; the others count up */
};

/* texture.c: bytes of one channel of a CUarray_format; 0: no vGPU knows it. */
uint64_t channel_bytes(int format);

/* copy_array.c: a copy with an array on one side or both. */
int copy_array(const CUDA_MEMCPY3D *c, CUstream h, bool wait);

/* copy_rect.c: what a side of a copy is that is no array, and where it begins. */
struct side {
	uint64_t address, pitch;
	bool host;
};
int copy_side(struct side *out, unsigned int type, const void *host, CUdeviceptr dev, uint64_t offset, size_t pitch);
/* Rows of width bytes from src to dst. */
int copy_rows(CUstream h, struct side dst, struct side src, size_t width, size_t height, bool wait);

/* copy.c. stream is the program's handle. */
int copy_to_device(CUstream h, CUdeviceptr dst, const void *src, size_t n, bool wait);
int copy_from_device(CUstream h, void *dst, CUdeviceptr src, size_t n, bool wait);
int copy_on_device(CUstream h, CUdeviceptr dst, CUdeviceptr src, size_t n);
/* Puts the first bytes of a copy from the program's memory into a stream of the
 * wire; *staged: how many. wait: with all of them, until they are on the device. */
int copy_stage(struct session *s, uint64_t stream, uint64_t dst, const void *src, size_t n, bool wait, size_t *staged);
/* By what the addresses are. */
int copy_any(CUstream h, uint64_t dst, uint64_t src, size_t n, bool wait);
int stream_wait(CUstream h);
/* Whether n bytes from address on lie in one piece of device memory, or in mappings with
 * access side by side. */
bool device_range(CUdeviceptr address, size_t n);
/* The end of a call that returns when it is done, and so does nothing to the host's
 * view of device memory: waits where n bytes at an address are the host's, or a range
 * whose calls have to wait (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). */
int settle(CUstream h, uint64_t address, uint64_t n, int err);
int memset_device(CUstream h, CUdeviceptr dst, uint32_t value, uint32_t width, uint64_t count);

/* host_memory.c. Makes the host range r, of which size and what it is are set;
 * reached: the device must be able to use it. */
int host_allocate(struct session *s, struct range *r, bool reached);
/* Frees what host_allocate made, when no work can use it any more. */
int host_release(struct session *s, uint64_t address, bool managed);

/* managed.c. Whether n bytes from address on are managed memory, in one piece. */
bool managed_range(uint64_t address, size_t n);
/* A CUmemLocation as a device; CU_DEVICE_INVALID: none of ours. Memory of any NUMA
 * node is the processor's. */
int device_at(CUmemLocation l);
/* Frees managed memory that the program has allocated. */
int managed_free(struct session *s, uint64_t address);
/* Memory for managed variables of a context or, 0, of all. */
int managed_variables_allocate(struct session *s, uint64_t context, uint64_t size, uint64_t *address);
int managed_variables_free(struct session *s, uint64_t address);
/* Frees those of a context that has gone. */
void managed_variables_drop(struct session *s, uint64_t context);

/* advice.c: what the program has said of pages of managed memory. */
struct advice {
	bool read_mostly, by_device, by_host;
	int preferred, prefetched; /* devices; CU_DEVICE_INVALID: none */
};
/* A CUmem_advise about the addresses from up to to. */
int advice_set(uint64_t from, uint64_t to, int advice, int device);
int advice_prefetched(uint64_t from, uint64_t to, int device);
/* What holds for all of them. */
void advice_get(uint64_t from, uint64_t to, struct advice *a);
void advice_forget(uint64_t from, uint64_t to);
void advice_abandon(void);

#endif
