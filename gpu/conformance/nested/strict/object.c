/* Handles: the object, owner and state of each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "strict.h"

__thread u current;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void acquire(void) { pthread_mutex_lock(&lock); }
void release(void) { pthread_mutex_unlock(&lock); }

#define BUCKETS 4096
static struct object *buckets[BUCKETS];

/* What the process had as stderr at first: later it may collect what libcuda writes. */
static int report;

__attribute__((constructor)) static void keep_stderr(void)
{
	report = fcntl(2, F_DUPFD_CLOEXEC, 3);
}

void broken(const char *function, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	dprintf(report, "strict: %s: %s\n", function, text);
	abort();
}

void *next_function(const char *name)
{
	static void *library;
	void *f;

	if (!__atomic_load_n(&library, __ATOMIC_ACQUIRE)) {
		const char *path = getenv("STRICT_LIBRARY");
		void *l = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

		if (!l)
			broken(name, "STRICT_LIBRARY is %s: %s", path ? path : "not set", path ? dlerror() : "want the libcuda behind");
		__atomic_store_n(&library, l, __ATOMIC_RELEASE);
	}
	if (!(f = dlsym(library, name)))
		broken(name, "the library behind has no such function");
	return f;
}

static struct object **bucket(u handle, enum kind kind)
{
	return &buckets[(handle * 0x9e3779b97f4a7c15ull >> 40 ^ (u)kind) % BUCKETS];
}

static struct object *lookup(u handle, enum kind kind)
{
	for (struct object *o = *bucket(handle, kind); o; o = o->next)
		if (o->handle == handle && o->kind == kind)
			return o;
	return NULL;
}

/* A handle may be used for a new object once the old one has been destroyed. */
struct object *object_new(u handle, enum kind kind)
{
	struct object *o = lookup(handle, kind), **b = bucket(handle, kind), *next;

	if (o && o->alive && kind != FUNCTION)
		broken("libcuda", "handle %#zx of kind %d was given twice", handle, kind);
	if (!o) {
		o = calloc(1, sizeof *o);
		o->next = *b;
		*b = o;
	}
	next = o->next;
	*o = (struct object){.handle = handle, .kind = kind, .context = kind == CONTEXT ? handle : current, .alive = true, .next = next};
	return o;
}

struct object *object_find(const char *function, u handle, enum kind kind)
{
	struct object *o = lookup(handle, kind);

	if (!o)
		broken(function, "%#zx is not a handle of kind %d", handle, kind);
	if (!o->alive)
		broken(function, "handle %#zx of kind %d has been destroyed", handle, kind);
	return o;
}

/* The same, in the current context. */
struct object *object_current(const char *function, u handle, enum kind kind)
{
	struct object *o = object_find(function, handle, kind);

	if (o->context != current)
		broken(function, "handle %#zx of kind %d is of context %#zx, and %#zx is current", handle, kind, o->context, current);
	return o;
}

struct object *context_of(const char *function)
{
	if (!current)
		broken(function, "no context is current on this thread");
	return object_find(function, current, CONTEXT);
}

struct object *stream_find(const char *function, u handle)
{
	return handle ? object_current(function, handle, STREAM) : context_of(function);
}

void object_end(struct object *o)
{
	o->alive = false;
	for (int i = 0; i < BUCKETS; i++) /* its objects are destroyed with it */
		for (struct object *x = buckets[i]; x; x = x->next)
			if (x->alive && ((o->kind == CONTEXT && x->context == o->handle) || (o->kind == MODULE && (x->kind == FUNCTION || x->kind == REFERENCE) && x->owner == o->handle) ||
					 (o->kind == MIPMAP && x->kind == ARRAY && x->owner == o->handle)))
				x->alive = false;
}

/* All streams of a context, including its default stream. */
void each_stream(u context, void (*f)(struct object *, void *), void *arg)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct object *x = buckets[i]; x; x = x->next)
			if (x->alive && x->context == context && (x->kind == STREAM || x->kind == CONTEXT))
				f(x, arg);
}
