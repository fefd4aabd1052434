/* A driver that computes nothing and records its calls, which translate.c compares. It is for
 * calls that no vGPU supports yet. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long address;

static char text[4096];

const char *fake_log(void);

/* Returns the calls that were recorded since the last call of this function. */
const char *fake_log(void)
{
	static char given[sizeof text];

	strcpy(given, text);
	text[0] = 0;
	return given;
}

static int note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int note(const char *format, ...)
{
	size_t n = strlen(text);
	va_list list;

	va_start(list, format);
	vsnprintf(text + n, sizeof text - n, format, list);
	va_end(list);
	return 0;
}

#define HANDLE(n) ((void *)(size_t)(n))
#define API(name, ...) \
	int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

static void *current;

API(cuInit, unsigned int flags) { return (int)flags; }
API(cuDeviceGetCount, int *n) { *n = 2; return 0; }
API(cuCtxGetCurrent, void **c) { *c = current; return 0; }
API(cuCtxSetCurrent, void *c) { current = c; return 0; }
API(cuCtxGetDevice, int *d) { *d = (int)(size_t)current - 100; return 0; }
API(cuDevicePrimaryCtxRetain, void **c, int d) { *c = HANDLE(100 + d); return 0; }
API(cuDevicePrimaryCtxRelease_v2, int d) { return d < 0; }
API(cuModuleLoadData, void **m, const void *image) { *m = HANDLE(200); return note("load %s\n", (const char *)image); }
API(cuModuleUnload, void *m) { return note("unload %zu\n", (size_t)m); }
API(cuModuleGetFunction, void **f, void *m, const char *name) { *f = HANDLE(300); return note("function %zu %s\n", (size_t)m, name); }

struct side {
	size_t x, y, z, lod;
	unsigned int type;
	const void *host;
	address device;
	void *array, *context;
	size_t pitch, height;
};
struct box {
	struct side src, dst;
	size_t width, height, depth;
};

static int note_side(const char *name, const struct side *s)
{
	return note(" %s %zu,%zu,%zu type %u host %zu device %llu array %zu context %zu pitch %zu height %zu", name, s->x, s->y, s->z,
		    s->type, (size_t)s->host, s->device, (size_t)s->array, (size_t)s->context, s->pitch, s->height);
}

static int note_box(const char *name, const struct box *b)
{
	note("%s", name);
	note_side("from", &b->src);
	note_side("to", &b->dst);
	return note(" size %zux%zux%zu\n", b->width, b->height, b->depth);
}

API(cuMemcpy3D_v2, const struct box *b) { return note_box("copy", b); }
API(cuMemcpy3DPeer, const struct box *b) { return note_box("peer copy", b); }
API(cuMemcpyPeer, address d, void *dc, address s, void *sc, size_t n)
{
	return note("peer %llu in %zu from %llu in %zu, %zu\n", d, (size_t)dc, s, (size_t)sc, n);
}

struct array {
	size_t width, height, depth;
	int format;
	unsigned int channels, flags;
};
static struct array last_array;

API(cuArray3DCreate_v2, void **out, const struct array *a)
{
	*out = HANDLE(400);
	last_array = *a;
	return note("array %zux%zux%zu format %d channels %u flags %u\n", a->width, a->height, a->depth, a->format, a->channels, a->flags);
}
API(cuArray3DGetDescriptor_v2, struct array *a, void *h) { *a = last_array; return h != HANDLE(400); }
API(cuArrayDestroy, void *h) { return note("destroy %zu\n", (size_t)h); }

struct resource {
	int type;
	union {
		void *handle;
		struct { address p; int format; unsigned int channels; size_t size; } linear;
		struct { address p; int format; unsigned int channels; size_t w, h, pitch; } pitch;
		int reserved[32];
	} u;
	unsigned int flags;
};
struct texture {
	int mode[3], filter;
	unsigned int flags, anisotropy;
	int mip_filter;
	float bias, least, most, border[4];
	int reserved[12];
};

API(cuTexObjectCreate, address *out, const struct resource *r, const struct texture *t, const void *view)
{
	*out = 500;
	if (r->type == 2)
		note("linear %llu format %d channels %u size %zu", r->u.linear.p, r->u.linear.format, r->u.linear.channels, r->u.linear.size);
	else if (r->type == 3)
		note("pitch %llu %zux%zu pitch %zu", r->u.pitch.p, r->u.pitch.w, r->u.pitch.h, r->u.pitch.pitch);
	else
		note("resource %d of %zu", r->type, (size_t)r->u.handle);
	return note(" modes %d %d %d filter %d flags %u border %g view %d\n", t->mode[0], t->mode[1], t->mode[2], t->filter, t->flags,
		    (double)t->border[3], view != NULL);
}

struct kernel {
	void *function;
	unsigned int gx, gy, gz, bx, by, bz, shared;
	void **params, **extra, *kernel, *context;
};

API(cuGraphAddKernelNode_v2, void **out, void *graph, void *const *after, size_t n, const struct kernel *k)
{
	*out = HANDLE(600);
	return note("kernel node %zu after %zu (%zu): %zu grid %u,%u,%u block %u,%u,%u shared %u argument %d extra %d kernel %d\n",
		    (size_t)graph, n, n ? (size_t)after[0] : 0, (size_t)k->function, k->gx, k->gy, k->gz, k->bx, k->by, k->bz, k->shared,
		    *(int *)k->params[0], k->extra != NULL, k->kernel != NULL);
}
API(cuGraphAddMemcpyNode, void **out, void *graph, void *const *after, size_t n, const struct box *b, void *context)
{
	(void)after;
	*out = HANDLE(601);
	note("node %zu after %zu in %zu: ", (size_t)graph, n, (size_t)context);
	return note_box("copy", b);
}
struct set {
	address p;
	size_t pitch;
	unsigned int value, element;
	size_t width, height;
};
API(cuGraphAddMemsetNode, void **out, void *graph, void *const *after, size_t n, const struct set *s, void *context)
{
	(void)after;
	*out = HANDLE(602);
	return note("set node %zu after %zu in %zu: %llu pitch %zu value %u of %u, %zux%zu\n", (size_t)graph, n, (size_t)context, s->p, s->pitch,
		    s->value, s->element, s->width, s->height);
}
API(cuGraphInstantiateWithFlags, void **out, void *graph, address flags)
{
	*out = HANDLE(700);
	return note("instantiate %zu %llu\n", (size_t)graph, flags);
}
API(cuGraphLaunch, void *e, void *stream) { return note("launch graph %zu in %zu\n", (size_t)e, (size_t)stream); }

struct pool {
	int type, handles, location_type, location;
	void *security;
	size_t most;
};
API(cuMemPoolCreate, void **out, const struct pool *p)
{
	*out = HANDLE(800);
	return note("pool %d %d on %d:%d most %zu\n", p->type, p->handles, p->location_type, p->location, p->most);
}
API(cuMemAllocFromPoolAsync, address *out, size_t n, void *pool, void *stream)
{
	*out = 12345;
	return note("from pool %zu: %zu in %zu\n", (size_t)pool, n, (size_t)stream);
}
struct location { int type, id; };
API(cuMemPrefetchAsync_v2, address p, size_t n, struct location l, unsigned int flags, void *stream)
{
	return note("prefetch %llu %zu to %d:%d flags %u in %zu\n", p, n, l.type, l.id, flags, (size_t)stream);
}
struct handle { char bytes[64]; };
API(cuIpcOpenMemHandle_v2, address *p, struct handle h, unsigned int flags)
{
	*p = 777;
	return note("open handle %s flags %u\n", h.bytes, flags);
}
struct config {
	unsigned int gx, gy, gz, bx, by, bz, shared;
	void *stream, *attributes;
	unsigned int count;
};
API(cuLaunchKernelEx, const struct config *c, void *f, void **params, void **extra)
{
	return note("launch %zu %u,%u,%u %u,%u,%u shared %u in %zu, %u attributes, first %d, argument %d, extra %d\n", (size_t)f, c->gx, c->gy, c->gz,
		    c->bx, c->by, c->bz, c->shared, (size_t)c->stream, c->count, c->count ? *(int *)c->attributes : -1, *(int *)params[0],
		    extra != NULL);
}
