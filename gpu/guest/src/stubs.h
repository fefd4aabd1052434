/* Functions that the generated code (stubs_gen.c) calls. */
#ifndef BASALT_STUBS_H
#define BASALT_STUBS_H

#include <string.h>

#include "capture.h"
#include "log.h"

/* Returns the stream that a handle stands for in the forms for per-thread default streams. */
static inline CUstream per_thread(CUstream h)
{
	return h ? h : CU_STREAM_PER_THREAD;
}

/* Return the protocol's IDs of objects, for a call that enqueues work in their context. It is
 * an error if the context has failed. */
static inline int wire_function(CUfunction h, uint64_t *id)
{
	struct function *f;
	uint64_t context;

	TRY(function_resolve(h, &f));
	*id = f->o.id;
	context = f->o.context;
	object_put(f);
	return context_fault(context);
}
static inline int wire_event(CUevent h, uint64_t *id)
{
	struct event *e = object_get(h, KIND_EVENT);
	uint64_t context;
	bool captured;

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	*id = e->o.id;
	context = e->o.context;
	captured = e->captured;
	object_put(e);
	return captured ? CUDA_ERROR_CAPTURED_EVENT : context_fault(context);
}

static inline int wire_stream(CUstream h, uint64_t *id)
{
	uint64_t context;
	bool blocking;

	TRY(stream_find(h, id, &context, &blocking));
	return context_fault(context);
}

/* Copies n elements of size bytes from the program into an array of a command. */
static inline int put_array(const void *from, long n, void *to, size_t size, long max)
{
	if (n > max || (n > 0 && !from))
		return CUDA_ERROR_INVALID_VALUE;
	if (n > 0)
		memcpy(to, from, (size_t)n * size);
	return 0;
}

/* Reports whether reserved members of a struct are zero. */
static inline bool all_zero(const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		if (b[i])
			return false;
	return true;
}

/* Allocate shared memory for structs that the worker returns, and read them. */
static inline int record_open(struct session *s, size_t n, struct piece *p)
{
	TRY(piece_get(s, n, p));
	memset(p->bytes, 0, n);
	return 0;
}
static inline void record_close(struct session *s, struct piece *p, uint8_t *to, size_t n)
{
	memcpy(to, p->bytes, n);
	piece_put(s, p);
}

/* Returns a result that is a float. */
static inline float float_of(uint64_t value)
{
	uint32_t bits = (uint32_t)value;
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* Returns the error of a function that no vGPU supports. */
static inline int refuse(const char *api, int error)
{
	SESSION(s);
	(void)s;
	log_message(CU_LOG_LEVEL_ERROR, api, "a vGPU has no such function; the error is %d", error);
	return error;
}

#endif
