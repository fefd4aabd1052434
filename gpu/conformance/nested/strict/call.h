/* What the functions of libcuda have in common, with their rules (call_*.c). A call that
 * fails changes nothing. */
#pragma once
#include "strict.h"

#define EXPORT __attribute__((visibility("default")))
#define CALL(name, ...) ended(((__typeof__(&name))next_function(#name))(__VA_ARGS__))
#define M(type, p, offset) (*(const type *)((const char *)(p) + (offset)))

enum { INVALID_VALUE = 1, NOT_READY = 600 };

/* Returns the result of a call. After a sticky error nothing is known to be over any more. */
int ended(int result);

/* The call requires that cuInit succeeded, */
void ready(const char *function);
/* a context, */
void in_context(const char *function);
/* and a handle of that context. */
void of_context(const char *function, u handle, enum kind kind);

/* The call has made a handle, */
void made(u handle, enum kind kind, unsigned int flags, u owner);
/* or ends one. */
void ends(const char *function, u handle, enum kind kind);
