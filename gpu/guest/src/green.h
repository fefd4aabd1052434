/* Green contexts: a group of streams of the primary context, and the multiprocessors that
 * they are meant for. */
#ifndef BASALT_GREEN_H
#define BASALT_GREEN_H

#include "state.h"

struct green {
	struct object o; /* KIND_GREEN, in the primary context */
	struct CUdevResource sm;
	_Atomic uint64_t gate; /* as in struct context */
};

/* context_events.c. Makes a new stream of a context, and of a green context if green is not 0,
 * wait for the events that the context waits for. The context is current. */
int context_gate(CUstream h, uint64_t context, uint64_t green);

bool is_green(const void *h);

/* current.c. Returns the current context if it is a green one, else 0. */
uint64_t green_current(void);

#endif
