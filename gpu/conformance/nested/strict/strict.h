/* A libcuda between gpu/cuda and the guest library that enforces the rules of the CUDA
 * driver API for gpu/cuda. A violated rule is reported on stderr and ends the process,
 * because the failure of a test that continued would not be noticed.
 *
 *   call_*.c  the functions that gpu/cuda calls, and the rules of each
 *   object.c  handles: kinds, owners, lifetimes
 *   memory.c  device memory and pinned host memory
 *   mapped.c  virtual memory management: reservations, memory, mappings
 *   flight.c  unfinished operations of streams; kernels that take time
 *
 * Environment: STRICT_LIBRARY, the libcuda that it calls; STRICT_KERNEL_MICROS, the minimum
 * duration of each kernel (0: its real duration).
 *
 * Sources of the rules: CUDA Driver API reference, the pages of the functions named in
 * each report; CUDA C++ Programming Guide, "Asynchronous Concurrent Execution". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t u;

enum kind { CONTEXT = 1, STREAM, EVENT, MODULE, FUNCTION, LINK, ARRAY, MIPMAP, TEXTURE, SURFACE, REFERENCE };

/* copy is an unfinished asynchronous copy from host memory, which must not be written. */
struct copy {
	uint64_t sequence, hash;
	const void *host;
	size_t size;
	struct copy *next;
};

/* object is the object of a handle. A context is also its own legacy default stream. */
struct object {
	u handle, context, owner; /* owner: a function's or a reference's module, a level's mip-map */
	enum kind kind;
	bool alive, failed;	  /* failed: the context has a sticky error */
	unsigned int flags;
	uint64_t put, over;	  /* stream: operations enqueued, and known to be over */
	uint64_t kernel;	  /* stream: the latest of them that is a kernel */
	int64_t ready;		  /* stream, event: when its work may be over, in nanoseconds */
	struct copy *copies;
	uint64_t covers;	  /* event: operations of its stream before it */
	u stream;		  /* event: the stream of its record; a context for its default stream */
	bool recorded;
	struct object *next;
};

extern __thread u current; /* context */

#define BROKEN(...) broken(__func__, __VA_ARGS__)
void broken(const char *function, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void *next_function(const char *name);

/* The following are called with the lock held. */
void acquire(void);
void release(void);
struct object *object_new(u handle, enum kind kind);
struct object *object_find(const char *function, u handle, enum kind kind);
struct object *object_current(const char *function, u handle, enum kind kind);
struct object *context_of(const char *function);
struct object *stream_find(const char *function, u handle);
void object_end(struct object *o);
void each_stream(u context, void (*f)(struct object *, void *), void *arg);

void memory_add(u address, size_t size, u context, u module, bool host);
void memory_remove(const char *function, u address, bool host);
void memory_check(const char *function, u address, size_t size, bool host);
void memory_drop(u context, u module); /* module 0: all of the context */

void mapped_granule(size_t minimum);
void reserve_check(const char *function, u address, size_t size, size_t alignment, unsigned long long flags);
void reserved_add(u address, size_t size);
void reserved_remove(const char *function, u address, size_t size);
void memory_size_check(const char *function, size_t size);
void memory_new(u handle, size_t size, unsigned int handles);
void memory_release(const char *function, u handle);
void memory_exports(const char *function, u handle, unsigned int type, unsigned long long flags);
void map_check(const char *function, u address, size_t size, size_t offset, u handle, unsigned long long flags);
void mapped_add(u address, size_t size, u handle);
void unmap_check(const char *function, u address, size_t size);
void mapped_remove(u address, size_t size);
void access_check(const char *function, u address, size_t size, const int *desc, size_t count);
void access_set(u address, size_t size, int access);
bool mapped_check(const char *function, u address, size_t size);
void mapped_left(const char *function, u context, bool failed);

int64_t now(void);
int64_t kernel_nanos(void); /* 0: kernels take their real time */
void put(struct object *stream, unsigned int kernels);
void put_copy(struct object *stream, const void *host, size_t size);
void over(struct object *stream, uint64_t upto);
void nothing_runs(const char *function, u context);
