/* Replays the call sequences of testdata/sequences: the functions of the driver that NVIDIA's
 * libraries and their users call, in which order and how often.
 *
 *	player.c  reads a sequence, makes its calls and compares their codes
 *	lookup.c  finds functions as the recorded program did
 *	memory.c  tracks the expected content of each buffer
 *	image.c   the kernels, as PTX and in the containers of nvcc
 *	calls.c, context.c, data.c, tables.c
 *	          one small function for each recorded call: it passes sensible
 *	          arguments and checks the results */
#ifndef BASALT_TEST_REPLAY_H
#define BASALT_TEST_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASALT_CUDA_IMPLEMENTATION /* names are those of the symbols */
#include "basalt_cuda.h"

/* The call that is being made. */
struct step {
	const char *name, *how; /* how: the word after the count, or "" */
	void *address;
	unsigned int nth; /* number of earlier calls of this name */
	CUresult want;    /* the expected code; the call's function may set it */
	CUresult result;  /* the result of CALL */
};
extern struct step step;

struct call {
	const char *name;
	CUresult (*make)(void);
};
extern const struct call context_calls[], data_calls[], other_calls[], table_calls[]; /* the last has no name */

/* CALL makes the call of this step. ASIDE makes a call that is not in the sequence, and that
 * must succeed. */
#define CALL(f, ...) (step.result = ((__typeof__(&(f)))step.address)(__VA_ARGS__))
#define ASIDE(f, ...) aside(#f, ((__typeof__(&(f)))exported(#f))(__VA_ARGS__))
#define EXPECT(c)                                                                                                      \
	do {                                                                                                           \
		if (!(c))                                                                                              \
			wrong("expected %s; the code is %d", #c, step.result);                                           \
	} while (0)

/* Prints the current call and a message, and ends the program. */
__attribute__((noreturn, format(printf, 1, 2))) void wrong(const char *format, ...);
void aside(const char *name, CUresult result);

/* lookup.c */
enum lookup { BY_NAME, BY_RUNTIME, BY_RUNTIME_PER_THREAD };
void lookup_open(const char *requests, enum lookup way);
void *exported(const char *symbol);
void *lookup(const char *symbol);
CUresult lookup_request(void);

/* memory.c */
#define WORDS 20000u /* words of each buffer: more than fits into the ring */
enum kind { DEVICE, POOL, MANAGED };
struct buffer {
	CUdeviceptr at;
	enum kind kind;
	bool known; /* words is the content of the buffer */
	unsigned int words[WORDS];
};
void buffer_new(CUdeviceptr at, enum kind kind);
struct buffer *buffer_of(enum kind kind, unsigned int n); /* n modulo their number */
struct buffer *buffer_known(unsigned int n);
unsigned int buffers_known(void), buffers_of(enum kind kind);
void buffer_forget(struct buffer *b);
void written(struct buffer *b);
struct buffer *last_written(void);
void buffers_verify(void);
void compare(const char *what, const unsigned int *got, const unsigned int *want, unsigned int words);
void copy_pending(CUstream s, const struct buffer *from, unsigned int *to); /* an asynchronous copy to host memory */
void copies_done(CUstream s, bool all);
unsigned int copies_waiting(CUstream *s);

/* image.c */
extern const char kernels[];
#define TABLE_WORDS 4u /* size of the global variable "table" */
const void *image_fatbin(void), *image_wrapper(void);

/* calls.c */
CUstream stream_now(void);
bool stream_first(CUstream *s);
void function_found(const char *name, CUfunction f);
CUmodule module_now(void);
void module_found(CUmodule m);

/* context.c */
CUcontext context_now(void), context_primary(void);
void primary_retained(CUcontext c);

#endif
