/* Green contexts: a name for streams of the primary context, and the multiprocessors that
 * they are meant for. */
#ifndef BASALT_GREEN_H
#define BASALT_GREEN_H

#include "state.h"

struct green {
	struct object o; /* KIND_GREEN, of the primary context */
	struct CUdevResource sm;
	_Atomic uint64_t gate; /* as a context's */
};

/* context_events.c. Lets a new stream of a context, or of a green one (else 0), wait for the
 * events for which that has been told to wait. The context is current. */
int context_gate(CUstream h, uint64_t context, uint64_t green);

bool is_green(const void *h);

/* current.c. The green context that is current; 0: none, or another kind. */
uint64_t green_current(void);

#endif
