/* The state of libcuda in this process: the session, the objects of the program's handles, and
 * each thread's current context.
 *
 * A handle of the program is a number, never an address: an invalid one is not found and gives
 * an error. Numbers are not used again.
 *
 * Lock order: registered memory (registered.c), references (reference.c), mappings (mapping.c), library (state.c), callbacks
 * (callback.c), kept (kept.c), objects (object.c), ranges (ranges.c), pools (pool.c); then the
 * locks of the channel. */
#ifndef BASALT_STATE_H
#define BASALT_STATE_H

#define BASALT_CUDA_IMPLEMENTATION
#include "basalt_cuda.h"
#include "channel.h"
#include "reply.h"

/* state.c: the process's session. */
extern struct device_info device; /* read only once cuInit has returned */
int library_init(void);
/* Returns the driver's CUDA version, also before cuInit, or 0 if there is no vGPU. */
uint32_t library_version(void);
/* Returns the session, or an error if there is none. */
int library_session(struct session **s);
/* A number that changes in a forked child. */
extern _Atomic unsigned generation;
/* In a forked child: forgets the session and returns it, or NULL. */
struct session *state_abandon(void);
/* fork.c: from now on this library's state is cleared in a forked child. */
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

/* attribute.c: returns the value of a CUdevice_attribute, or 0 if it is unknown. */
int device_attribute(int attribute);

/* object.c */
enum kind { KIND_CONTEXT = 1, KIND_MODULE, KIND_FUNCTION, KIND_STREAM, KIND_EVENT, KIND_LIBRARY, KIND_KERNEL, KIND_LINK,
	KIND_GRAPH, KIND_GRAPH_NODE, KIND_GRAPH_EXEC, KIND_USER_OBJECT, KIND_ARRAY, KIND_MIPMAP, KIND_TEXTURE, KIND_MEMORY, KIND_REFERENCE, KIND_GREEN, KIND_RESOURCE_DESC,
	KIND_EXTERNAL };

struct object {
	uint64_t id, context;
	enum kind kind;
	int refs; /* guarded by the table's lock; the table has one reference */
	struct object *next;
	void (*destroy)(struct object *); /* frees what the object owns; may be NULL */
};

/* Allocates n consecutive handles and returns the first. */
uint64_t object_ids(uint64_t n);
/* Allocates a handle for a stream, or for a context, which contains a stream. It selects a lane
 * (channel.h) that no other stream uses, as long as there are lanes. The object's destroy
 * releases the lane; code that creates no object calls object_stream_end. */
uint64_t object_stream_id(void);
void object_stream_end(uint64_t id);
void object_stream_gone(struct object *o);
/* Allocates an object of size bytes, which is not in the table yet. Returns NULL if there is no
 * memory. */
void *object_new(size_t size, enum kind kind, uint64_t id, uint64_t context);
void object_add(void *o);
/* Returns a new reference to an object, or NULL if the handle is not one of that kind. */
void *object_get(const void *handle, enum kind kind);
/* Adds a reference to an object to which the caller already has one. */
void object_get_more(void *o);
void object_put(void *o);
/* Removes an object from the table. Returns false if it was not in it. */
bool object_remove(uint64_t id, enum kind kind);
/* Removes a context and all its objects from the table. */
void object_remove_context(uint64_t context);
/* Stores at most max handles of a kind, and returns the number of all. */
size_t object_list(enum kind kind, uint64_t *ids, size_t max);
/* In a forked child: removes all objects. */
void objects_abandon(void);

static inline void *handle_of(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

/* coredump.c: the settings of a context or of the program; only that file uses them. */
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
	_Atomic unsigned int attached; /* calls of cuCtxAttach without cuCtxDetach */
	_Atomic uint64_t limits[8];
	_Atomic int cache_config, shared_config;
	_Atomic int fault;        /* its asynchronous error, once it is known */
	_Atomic uint32_t no_fault_at; /* the count of failed contexts when it was last known to have no error */
	_Atomic uint32_t output_shown_at; /* the header's count of output up to which its output was printed */
	_Atomic uint64_t drained; /* one more than the work_count up to which its work is done; 0: never drained */
	_Atomic uint64_t drained_staged; /* the same for staged_count */
	_Atomic uint64_t gate; /* the stream that new streams wait for (context_events.c), or 0 */
	struct coredump coredump; /* guarded by coredump.c's lock */
};
struct stream {
	struct object o;
	unsigned int flags;
	int priority;
	uint64_t green; /* its green context, or 0 */
	bool gate;	/* it is the gate of a context (context_events.c) */
};
struct event {
	struct object o;
	unsigned int flags;
	_Atomic bool recorded;
	_Atomic bool shared; /* shared with other processes (ipc.c) */
	_Atomic uint64_t captured; /* the capture in which it was last recorded; 0: none */
	struct handle_list *fork;  /* the nodes that it stands for there; guarded by graph_lock */
};
struct function {
	struct object o;
	uint64_t module;
	struct function_info info;
	_Atomic int cluster[2];	/* the values set for attributes 14 and 15, which the worker does not report */
	_Atomic bool loaded; /* the attributes in info, and whether it is refused, are known */
	uint32_t param_bytes;
	struct launch_state *state; /* state of launch_state.c, or NULL */
};
struct module {
	struct object o;
	uint64_t first_function;
	uint64_t managed; /* address of its managed variables, if it does not share them */
	bool lazy;	  /* its functions may have to be loaded */
	struct module_info info; /* names and params of functions are moved to the function objects */
	char **names;
};

/* current.c */
int context_current(uint64_t *context);
int context_object(struct context **c); /* the current one; the caller calls object_put */
/* Returns the context of a handle, or of a green context's handle, or NULL. The caller calls
 * object_put. */
struct context *context_get(const void *h);
int current_push(uint64_t context);
/* Pops a context off the stack, if it is on top. */
void current_leave(uint64_t context);
/* Sets the function that is called for a default stream that ends with its thread. */
void default_streams_tell(void (*gone)(uint64_t stream));
/* fault.c: returns the asynchronous error of a context, or 0. */
int context_fault(uint64_t context);
/* resolve.c: like context_current, for a call that enqueues work in the context. */
int context_working(uint64_t *context);

/* Finds the protocol's ID of a program's stream, and its context. *blocking becomes true if the
 * stream and the context's default stream wait for each other. */
int stream_find(CUstream h, uint64_t *stream, uint64_t *context, bool *blocking);
/* resolve.c: the same for a call that enqueues work in the stream or waits for it. Returns an
 * error if the context has failed. */
int stream_resolve(CUstream h, uint64_t *stream, uint64_t *context);
/* Finds or creates the calling thread's own default stream in a context. */
int stream_per_thread(uint64_t context, uint64_t *stream);
/* context.c */
/* Returns the context for memory that the program creates: the current one or, if there is none,
 * the primary context, another one, or one that the program's next context becomes. */
int context_of_memory(uint64_t *context);
int primary_retain(CUcontext *c);
/* Waits until all work of the context is done. */
int context_drain(struct session *s, struct context *c);
/* Reports whether no work is running in the context whose completion the program can observe. */
bool context_quiet(struct session *s, struct context *c);
/* Reports whether no work at all is running in the context. */
bool context_untouched(struct session *s, struct context *c);
void primary_abandon(void);
int primary_release(void);
bool primary_active(void);

/* callback.c: waits until no host function precedes the next work of the stream, or, for stream
 * 0, of the context. Returns an error if it is called in a host function. */
int callbacks_wait(uint64_t stream, uint64_t context, bool blocking);
bool callbacks_pending(uint64_t stream, uint64_t context, bool blocking);
void callbacks_abandon(void);

/* Adds a host function of the program, of either kind. */
int callbacks_add(CUstream h, CUhostFn function, CUstreamCallback callback, void *data);
/* Calls run with the result when the stream has reached this point, before later work of the
 * stream. run is a function of this library, and must not call the API. */
int callbacks_run(uint64_t stream, uint64_t context, bool blocking, void (*run)(void *, int), void *data);
/* Calls run when all work of the context is done. For context 0 it calls it soon. */
int callbacks_after(uint64_t context, void (*run)(void *, int), void *data);

/* module.c: has the worker compile a function, and reads its information about it. */
int function_load(struct session *s, uint64_t function, struct module_info *info);
/* refused.c: returns 0, or CUDA_ERROR_NO_BINARY_FOR_GPU if the device cannot run the function.
 * Its attributes may be unknown before this call. */
int function_usable(struct function *f);

/* printf.c: writes the output of the context's kernels to this process's stdout, and failed
 * assertions to stderr. */
void output_show(struct session *s, uint64_t context);
/* The same for the context of a stream, at the end of a call that returns err. */
int output_after(CUstream h, int err);
/* Sets how many bytes of output are stored. *value becomes the actual number. */
int output_limit(uint64_t context, uint64_t *value);
void output_abandon(void);

/* parameters.c: writes a kernel's parameters in the layout of its parameter space. *n becomes
 * the number of bytes. */
int launch_parameters(struct function *f, void **params, void **extra, uint8_t *out, uint32_t *n);

/* module.c */
int module_load(const void *image, size_t size, unsigned int options, const CUjit_option *keys, void **values,
		CUmodule *out);
/* Memory for the managed variables of a library, whose modules share it. */
struct managed_variables {
	pthread_mutex_t lock; /* held while a module with managed variables is loaded */
	uint64_t address;     /* 0: no such module has been loaded */
};
/* Finds a managed variable of a module. */
int module_managed(CUmodule h, const char *name, CUdeviceptr *address, size_t *bytes);
/* The same as module_load, for a context that need not be the current one. shared is NULL if
 * the module does not share its variables. */
int module_load_into(uint64_t context, const void *image, size_t size, unsigned int options, const CUjit_option *keys,
		     void **values, struct managed_variables *shared, CUmodule *out);
/* Has the worker read the kernels of an image, without a context and without loading it. The
 * caller calls free_module_info. Returns CUDA_ERROR_NOT_SUPPORTED if the worker is too old. */
int image_read(const void *image, size_t size, struct module_info *info);
/* Reads the optimization level and the registers per thread in JIT options. */
void jit_numbers(unsigned int n, const CUjit_option *keys, void **values, uint32_t *opt_level, uint32_t *max_registers);
/* Empties the log buffers in JIT options, because a program reads them after any error. */
void jit_logs_begin(unsigned int n, const CUjit_option *keys, void **values);
/* Returns the size of an image that the program passed without it, or 0 if it is unknown.
 * *image becomes the image to send. If that had to be created, *made is the same pointer, else
 * NULL; the caller calls free(*made). */
size_t image_size(const void **image, void **made);
/* link.c: creates an image of several objects. The name of an object may be NULL. */
struct link;
struct link *link_begin(void); /* the caller calls object_put */
int link_add(struct link *l, uint32_t type, const void *data, size_t size, const char *name);
size_t link_end(struct link *l, void **image); /* returns 0 if there is no memory or it is too large */
/* Checks the beginning of an image of that size. Returns 0 or CUDA_ERROR_INVALID_IMAGE. */
int image_check(const void *image, size_t size);
/* Reads a file, and adds a NUL. The caller calls free(*bytes). */
int read_file(const char *name, void **bytes, size_t *size);
int function_resolve(CUfunction h, struct function **f);

/* function.c: finds one parameter of a kernel. The error is CUDA_ERROR_INVALID_VALUE. */
int param_info_of(const struct function_info *f, size_t index, size_t *offset, size_t *size);

/* library.c: called for a new context. Loads libraries into it if the program requests that. */
void libraries_enter(uint64_t context);

/* ranges.c: a range of memory. */
struct range {
	uint64_t address, size, context;
	unsigned int flags;
	struct region region; /* pinned host memory with a region of its own */
	bool owned;           /* host: allocated by us, not registered */
	bool mapped;          /* host: the device uses it at its address */
	uint64_t other;       /* host: where the program has registered memory that the device has at address (mapped is set), or the address that the device has for registered memory; 0: none */
	bool managed;         /* host: from cuMemAllocManaged, or managed variables; mapped is set too */
	bool variables;       /* host: variables of a module, or of a library if context is 0 */
	uint64_t pool;        /* device: the pool that it counts in, or 0 */
	bool graph;           /* device: it belongs to a graph (graph_memory.c) */
	bool exported;	      /* device: other processes may open it (ipc.c) */
	bool opened;	      /* device: memory of another process, from cuIpcOpenMemHandle */
	bool sync;            /* copies and memsets of it are always synchronous */
	uint64_t memory;      /* device: the memory that is mapped here (mapping.c), or 0 */
	uint32_t access;      /* with memory: CUmemAccess_flags */
};
enum space { SPACE_DEVICE, SPACE_HOST };
/* Sets the session's address window, and the part of it for host memory. It is called before
 * any range is added. */
void ranges_window(const struct window *w, const struct window *host);
/* Reports whether any of n bytes from address on is in the window. If so, they are not the
 * program's own memory. */
bool in_window(uint64_t address, uint64_t n);
/* Reserves pages outside of the window for device addresses that the program requests. Returns
 * false if something is mapped there. outside_release reverts it. */
bool outside_reserve(uint64_t address, uint64_t size);
void outside_release(uint64_t address);
int range_add(enum space space, const struct range *r);
bool range_find(enum space space, uint64_t address, struct range *r);
/* Reports whether n bytes from address on are in one range of host memory that the device uses
 * at its address. */
bool host_range(uint64_t address, uint64_t n);
/* Sets the device's address of the host range that starts at address. */
void range_set_other(uint64_t address, uint64_t other);
/* Sets or clears the sync of a range. Returns false if there is no range at the address. */
bool range_sync(uint64_t address, bool set, struct range *r);
/* Reports whether it is set. */
bool range_synced(uint64_t address);
/* Returns the address of a range of managed variables of a context, or 0 if there is none. */
uint64_t range_variables(uint64_t context);
/* Records that other processes may open the range that starts at address. Returns false if
 * there is no such range. */
bool range_export(uint64_t address);
/* Removes the range that starts at address. */
bool range_take(enum space space, uint64_t address, struct range *r);
/* Sets the access of all mappings in a range. */
void ranges_access(uint64_t address, uint64_t size, uint32_t access);
/* Removes all ranges of a context, and calls gone for each while the table is locked. */
void ranges_drop_context(uint64_t context, void (*gone)(const struct range *r));
void ranges_abandon(void);

/* mapping.c. Finds the reservation that contains an address. */
bool reservation_find(uint64_t address, uint64_t *base, uint64_t *size);
/* Called for a range whose context is being destroyed. */
void mapping_ended(const struct range *r);
void mappings_abandon(void);

/* external.c. Frees a buffer of external memory. Returns CUDA_ERROR_INVALID_VALUE if there is
 * none at the address. */
int external_free(uint64_t address);
void external_abandon(void);

enum { IPC_EVENT_SUPPORTED = 125 }; /* CUdevice_attribute */
/* ipc.c. Reports whether a range of device memory can be shared with other processes. */
bool ipc_capable(const struct range *r);
/* Creates a file that contains the token of an answer, and reads the token of such a file. */
enum token_kind { TOKEN_MEMORY = 1, TOKEN_EVENT = 2, TOKEN_MAPPED = 3, TOKEN_POOL = 4, TOKEN_POINTER = 5 };
int token_file(const struct answer *a, enum token_kind kind, int *fd);
int token_read(int fd, enum token_kind kind, uint64_t *half0, uint64_t *half1);
/* Shares the memory at an address, which begins a range; the answer has its token. */
struct answer ipc_share(struct session *s, uint64_t address);
/* Opens memory that another process has shared, and closes it. It counts in the pool, if that
 * is not 0. With pooled, an address of memory of a pool is wanted, else one of other memory. */
int ipc_open(struct session *s, struct bslt_mem_open *args, uint64_t pool, CUdeviceptr *out);
int ipc_close(struct session *s, CUdeviceptr address, bool pooled);
/* Makes a stream wait for the latest record of a shared event, by any process. */
int ipc_stream_wait(struct session *s, CUstream h, const struct event *e);
void ipc_abandon(void);

/* memory.c. Allocates memory of a graph. */
int graph_allocate(struct session *s, uint64_t context, uint64_t size, CUdeviceptr *out);
/* graph_memory.c. Called when the program frees memory of a graph. */
int graph_memory_free(uint64_t address);
void graph_memory_drop_context(uint64_t context);
/* graph_condition.c */
void conditions_drop_context(uint64_t context);

/* kept.c. Stores a range of device memory that nothing can use any more. Returns false if it is
 * not stored and must be freed. */
bool kept_put(struct session *s, const struct range *r);
/* Returns stored memory of exactly that size in the context. */
bool kept_take(struct session *s, uint64_t context, uint64_t size, uint64_t *address);
/* Removes the memory of a context that is being destroyed. It is no longer in the table of
 * objects. */
void kept_drop_context(struct session *s, uint64_t context);
void kept_abandon(void);

/* pool.c. Counts size bytes in a pool before they are allocated. NULL is the device's current
 * pool. */
int pool_take(CUmemoryPool h, uint64_t size, uint64_t *id);
/* Called after the allocation, to update the maximum in use. */
void pool_taken(uint64_t id);
/* Subtracts a range's bytes, because they are not in use any more, or were not allocated. */
void pool_give(const struct range *r);
/* Adds size bytes to a pool, which are those of memory that another process has exported. */
void pool_opened(uint64_t id, uint64_t size);
/* Returns the token of a pool that other processes may open or, with imported, that another
 * process has exported. The error is CUDA_ERROR_INVALID_VALUE. */
int pool_token(uint64_t id, bool imported, uint64_t token[2]);
/* Creates a pool for memory that another process exports from the pool of that token. */
int pool_import(const uint64_t token[2], CUmemoryPool *out);
void pools_abandon(void);

/* memory.c: device memory of a context; cuMemFree and cuMemFreeAsync free it. */
int device_allocate(struct session *s, uint64_t context, uint64_t pool, size_t size, CUdeviceptr *out);

/* array.c: an array, a level of one, or a whole one with levels. */
struct array {
	struct object o; /* KIND_ARRAY or KIND_MIPMAP */
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t wire; /* ID of the worker's array, which it is a level of */
	uint32_t level, levels;
	uint64_t first; /* KIND_MIPMAP: the handle of its first level; those of the others follow */
};

/* texture.c: returns the bytes of one channel of a CUarray_format, or 0 if no vGPU supports it. */
uint64_t channel_bytes(int format);

/* copy_array.c: makes a copy with an array on one side or both. */
int copy_array(const CUDA_MEMCPY3D *c, CUstream h, bool wait);

/* copy_rect.c: a side of a copy that is not an array, and where it begins. */
struct side {
	uint64_t address, pitch;
	bool host;
};
int copy_side(struct side *out, unsigned int type, const void *host, CUdeviceptr dev, uint64_t offset, size_t pitch);
/* Copies rows of width bytes from src to dst. */
int copy_rows(CUstream h, struct side dst, struct side src, size_t width, size_t height, bool wait);

/* copy.c. stream is the program's handle. */
int copy_to_device(CUstream h, CUdeviceptr dst, const void *src, size_t n, bool wait);
int copy_from_device(CUstream h, void *dst, CUdeviceptr src, size_t n, bool wait);
int copy_on_device(CUstream h, CUdeviceptr dst, CUdeviceptr src, size_t n);
/* Enqueues the first bytes of a copy from the program's memory in a stream, which is given by
 * its ID in the protocol. *staged becomes their number. With wait, if these are all bytes, it
 * waits until they are on the device. */
int copy_stage(struct session *s, uint64_t stream, uint64_t dst, const void *src, size_t n, bool wait, size_t *staged);
/* Makes a copy whose direction depends on the kind of the addresses. */
int copy_any(CUstream h, uint64_t dst, uint64_t src, size_t n, bool wait);
int stream_wait(CUstream h);
/* Reports whether n bytes from address on are in one range of device memory, or in adjacent
 * mappings with access. */
bool device_range(CUdeviceptr address, size_t n);
/* Ends a call that is synchronous for the program. The host cannot observe writes to device
 * memory, so it waits only if n bytes at an address are host memory, or in a range whose calls
 * have to wait (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). */
int settle(CUstream h, uint64_t address, uint64_t n, int err);
int memset_device(CUstream h, CUdeviceptr dst, uint32_t value, uint32_t width, uint64_t count);

/* stream_memory.c. Checks a batch of memory operations (cuStreamBatchMemOp), and enqueues one
 * that was checked in a stream, which is given by its ID in the protocol. */
int memory_operations_check(const CUstreamBatchMemOpParams *p, unsigned int count, unsigned int flags);
int memory_operations_put(struct session *s, uint64_t stream, const CUstreamBatchMemOpParams *p, unsigned int count);

/* host_memory.c. Allocates the host range r, whose size and flags are set. With reached, the
 * device must be able to access it. */
int host_allocate(struct session *s, struct range *r, bool reached);
/* Frees memory of host_allocate, when no work can use it any more. */
int host_release(struct session *s, uint64_t address, bool managed);

/* managed.c. Reports whether n bytes from address on are in one range of managed memory. */
bool managed_range(uint64_t address, size_t n);
/* Converts a CUmemLocation to a device, or to CU_DEVICE_INVALID if it does not exist. All NUMA
 * nodes stand for the processor. */
int device_at(CUmemLocation l);
/* Frees managed memory that the program has allocated. */
int managed_free(struct session *s, uint64_t address);
/* Allocates memory for managed variables of a context, or of all contexts if it is 0. */
int managed_variables_allocate(struct session *s, uint64_t context, uint64_t size, uint64_t *address);
int managed_variables_free(struct session *s, uint64_t address);
/* Frees the managed variables of a context that was destroyed. */
void managed_variables_drop(struct session *s, uint64_t context);

/* advice.c: the program's advice about pages of managed memory. */
struct advice {
	bool read_mostly, by_device, by_host;
	int preferred, prefetched; /* devices; CU_DEVICE_INVALID: none */
};
/* Records a CUmem_advise for the addresses from up to to, which is excluded. */
int advice_set(uint64_t from, uint64_t to, int advice, int device);
int advice_prefetched(uint64_t from, uint64_t to, int device);
/* Returns the advice that all these addresses have in common. */
void advice_get(uint64_t from, uint64_t to, struct advice *a);
void advice_forget(uint64_t from, uint64_t to);
void advice_abandon(void);

#endif
