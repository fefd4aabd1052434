/* The unfinished operations of streams, as far as the program has learned of their end, and
 * kernels that take time: an event is not ready before the earlier kernels would be done. */
#include <stdlib.h>
#include <time.h>

#include "strict.h"

int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int64_t kernel_nanos(void)
{
	static int64_t nanos = -1;
	const char *s;

	if (nanos < 0)
		nanos = (s = getenv("STRICT_KERNEL_MICROS")) ? strtoll(s, NULL, 10) * 1000 : 0;
	return nanos;
}

#define NON_BLOCKING 1u

struct order {
	struct object *of;
	int64_t latest;
};

/* The legacy default stream and those that block on it wait for each other. */
static void implicit(struct object *x, void *arg)
{
	struct order *o = arg;

	if (x != o->of && !(x->flags & NON_BLOCKING) && (x->kind == CONTEXT || o->of->kind == CONTEXT) && x->ready > o->latest)
		o->latest = x->ready;
}

void put(struct object *stream, unsigned int kernels)
{
	stream->put++;
	if (kernels)
		stream->kernel = stream->put;
	if (kernel_nanos()) {
		struct order o = {stream, stream->ready};
		int64_t t = now();

		if (stream->kind == CONTEXT || !(stream->flags & NON_BLOCKING))
			each_stream(stream->context, implicit, &o);
		stream->ready = (o.latest > t ? o.latest : t) + kernels * kernel_nanos();
	}
}

static uint64_t hash(const void *p, size_t size)
{
	const uint64_t *w = p;
	uint64_t h = size;

	for (size_t i = 0; i < size / 8; i++)
		h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull;
	for (size_t i = size & ~7ul; i < size; i++)
		h = (h ^ ((const uint8_t *)p)[i]) * 0x9e3779b97f4a7c15ull;
	return h;
}

void put_copy(struct object *stream, const void *host, size_t size)
{
	struct copy *c = malloc(sizeof *c);

	put(stream, 0);
	*c = (struct copy){stream->put, hash(host, size), host, size, stream->copies};
	stream->copies = c;
}

/* The operations up to upto are over, and the program knows it. */
void over(struct object *stream, uint64_t upto)
{
	struct copy **p = &stream->copies, *c;

	if (upto > stream->over)
		stream->over = upto;
	while ((c = *p)) {
		if (c->sequence > upto) {
			p = &c->next;
			continue;
		}
		if (hash(c->host, c->size) != c->hash)
			broken("cuMemcpyHtoDAsync", "%zu bytes at %p were changed before the copy from there was over", c->size, c->host);
		*p = c->next;
		free(c);
	}
}

static void still_runs(struct object *stream, void *function)
{
	if (stream->over < stream->kernel)
		broken(function, "it waits for kernels, and stream %#zx has one that is not known to be over (%zu of %zu)",
		       stream->handle, (size_t)stream->kernel, (size_t)stream->over);
}

/* A function that waits for all running work must be called when no kernel is running,
 * because its caller has other work to do in the meantime. */
void nothing_runs(const char *function, u context)
{
	if (!object_find(function, context, CONTEXT)->failed)
		each_stream(context, still_runs, (void *)function);
}
