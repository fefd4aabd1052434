// A libcuda without a card: device memory is host memory, streams run at once,
// and kernels are recorded and not executed. It writes each call that a test
// checks to $DOUBLE_LOG and returns the results in $DOUBLE_SCRIPT (a file of
// "function result" lines, each used once). It is compiled by the tests.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef uintptr_t u;
#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread u current;
static u next_handle = 0x1000;

static void say(const char *line) {
	const char *path = getenv("DOUBLE_LOG");
	if (!path || !*path) return;
	pthread_mutex_lock(&lock);
	FILE *f = fopen(path, "a");
	if (f) { fprintf(f, "%s\n", line); fclose(f); }
	pthread_mutex_unlock(&lock);
}
#define SAY(...) do { char b[512]; snprintf(b, sizeof b, __VA_ARGS__); say(b); } while (0)

// The scripted result of a function: the first line with its name is used up.
static int scripted(const char *name) {
	const char *path = getenv("DOUBLE_SCRIPT");
	if (!path) return 0;
	int result = 0, used = 0;
	char out[4096] = "", word[128];
	int value;
	pthread_mutex_lock(&lock);
	FILE *f = fopen(path, "r");
	if (f) {
		while (fscanf(f, "%127s %d", word, &value) == 2) {
			if (!used && !strcmp(word, name)) { result = value; used = 1; continue; }
			size_t n = strlen(out);
			snprintf(out + n, sizeof out - n, "%s %d\n", word, value);
		}
		fclose(f);
		if (used && (f = fopen(path, "w"))) { fputs(out, f); fclose(f); }
	}
	pthread_mutex_unlock(&lock);
	return result;
}
#define PLAY(name) do { int r_ = scripted(#name); if (r_) { SAY(#name " = %d", r_); return r_; } } while (0)
#define NEEDS_CONTEXT do { if (!current) return 201; } while (0)

// A function that is passed on logs all its arguments as integers.
#define CALLED(...) do { char b[4096]; snprintf(b, sizeof b, __VA_ARGS__); say(b); } while (0)
#define M(type, p, offset) (*(type *)((char *)(p) + (offset)))
#define W(x) (unsigned long long)(x)

static size_t vram(void) { const char *s = getenv("DOUBLE_VRAM"); return s ? strtoull(s, 0, 10) : (size_t)1 << 33; }
static size_t used; // of memory from cuMemCreate

static u handle(void) { return __atomic_add_fetch(&next_handle, 16, __ATOMIC_RELAXED); }

EXPORT int cuInit(unsigned flags) { PLAY(cuInit); return flags ? 1 : 0; }
EXPORT int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
EXPORT int cuDeviceGetCount(int *n) { *n = 2; return 0; }
EXPORT int cuDeviceGet(int *d, int i) { *d = i; return 0; }
EXPORT int cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "Double %d", d); return 0; }
EXPORT int cuDeviceGetUuid_v2(char *uuid, int d) { memset(uuid, 0xa0 + d, 16); return 0; }
EXPORT int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = vram(); return 0; }
EXPORT int cuDeviceGetAttribute(int *v, int a, int d) {
	(void)d;
	if (a > 130) return 1;
#ifdef PINNED // a card without virtual memory
	if (a == 102) { *v = 0; return 0; }
#endif
	*v = a >= 1 && a <= 7 ? 1024 : a == 97 ? 49152 : a;
	return 0;
}
EXPORT int cuCtxCreate_v2(u *c, unsigned flags, int d) { PLAY(cuCtxCreate); *c = current = handle(); SAY("cuCtxCreate flags=%u device=%d", flags, d); return 0; }
static u registered[64][2]; // host memory, with its context
EXPORT int cuCtxDestroy_v2(u c) {
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 64; i++) if (registered[i][1] == c) registered[i][0] = registered[i][1] = 0;
	pthread_mutex_unlock(&lock);
	current = 0; SAY("cuCtxDestroy");
	return 0;
}
EXPORT int cuCtxSetCurrent(u c) { current = c; return 0; }
EXPORT int cuCtxSetLimit(int limit, size_t value) { NEEDS_CONTEXT; SAY("cuCtxSetLimit %d %zu", limit, value); return 0; }
EXPORT int cuCtxSynchronize(void) { NEEDS_CONTEXT; SAY("cuCtxSynchronize"); return 0; }

static const char *kernels[5] = {"first", "second", "store", "delay", "fault"};
static char loaded[8]; // which functions are loaded: those that cuModuleGetFunction returned, and cuFuncLoad's
static u poisoned; // the context that had a fault
static int conformance(u m) { return m & 1; }
EXPORT int cuModuleLoadDataEx(u *m, const char *image, unsigned n, int *options, void **values) {
	NEEDS_CONTEXT; PLAY(cuModuleLoadDataEx);
	memset(loaded, 0, sizeof loaded);
	int known = !!strstr(image, "double:") || !memcmp(image, "\x7f" "ELF", 4) || !memcmp(image, "\x50\xed\x55\xba", 4); // other images are broken
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == 3) strcpy(values[i], "double: info");
		if (options[i] == 5 && !known) strcpy(values[i], "double: line 1: broken");
		if (options[i] == 0) SAY("jit max registers %d", (int)(u)values[i]);
	}
	if (!known) return 218;
	*m = handle() + !!strstr(image, "conformance");
	SAY("cuModuleLoadDataEx");
	return 0;
}
// The linker: the concatenated objects are the cubin. The logs are kept until the
// end, like a program's buffers.
struct link { char *image; size_t size; unsigned n; int *options; void **values; };
EXPORT int cuLinkCreate_v2(unsigned n, int *options, void **values, struct link **out) {
	NEEDS_CONTEXT; PLAY(cuLinkCreate);
	struct link l = {calloc(1, 1), 0, n, options, values};
	*out = malloc(sizeof l);
	**out = l;
	for (unsigned i = 0; i < n; i++) if (options[i] == 0) SAY("link max registers %d", (int)(u)values[i]);
	return 0;
}
EXPORT int cuLinkAddData_v2(struct link *l, int type, const char *data, size_t size, const char *name, unsigned n, void *options, void *values) {
	(void)options, (void)values;
	NEEDS_CONTEXT; PLAY(cuLinkAddData);
	SAY("cuLinkAddData %s type %d, %zu bytes, %u options", name, type, size, n);
	if (!strstr(data, "double:")) {
		for (unsigned i = 0; i < l->n; i++) if (l->options[i] == 5) sprintf(l->values[i], "double: %s: broken", name);
		return 218;
	}
	l->image = realloc(l->image, l->size + size + 1);
	memcpy(l->image + l->size, data, size);
	l->size += size - (type == 1); // without the NUL of PTX
	l->image[l->size] = 0;
	return 0;
}
EXPORT int cuLinkComplete(struct link *l, void **image, size_t *size) {
	NEEDS_CONTEXT; PLAY(cuLinkComplete);
	*image = l->image; *size = l->size;
	for (unsigned i = 0; i < l->n; i++) if (l->options[i] == 3) strcpy(l->values[i], "double: linked");
	return 0;
}
EXPORT int cuLinkDestroy(struct link *l) { NEEDS_CONTEXT; free(l->image); free(l); SAY("cuLinkDestroy"); return 0; }
EXPORT int cuModuleUnload(u m) { (void)m; NEEDS_CONTEXT; SAY("cuModuleUnload"); return 0; }
EXPORT int cuModuleGetFunction(u *f, u m, const char *name) {
	(void)m;
	for (int i = 0; i < 2; i++) if (!strcmp(name, kernels[i])) { loaded[*f = i + 1] = 1; return 0; }
	return 500;
}
EXPORT int cuModuleGetGlobal_v2(u *p, size_t *n, u m, const char *name) {
	(void)m;
	if (!strcmp(name, "v")) { *p = 0x78000; *n = 24; return 0; } // the variable of gpu/fatbin/fatbintest
	if (!strcmp(name, "shared_with_host")) { *p = 0x79000; *n = 4; return 0; } // a managed variable
	if (strcmp(name, "counter")) return 500;
	*p = 0x77000; *n = 12;
	return 0;
}
EXPORT int cuPointerGetAttribute(unsigned *v, int a, u p) { if (a != 8) return 1; *v = p == 0x79000; return 0; }
EXPORT int cuFuncGetAttribute(int *v, int a, u f) {
	if ((a == 0 || a == 8) && !loaded[f]) return 913; // FUNCTION_NOT_LOADED
	*v = (int)(f * 100 + a);
	return 0;
}
EXPORT int cuFuncSetAttribute(u f, int a, int v) { SAY("cuFuncSetAttribute %s %d %d", kernels[f - 1], a, v); return 0; }
#ifndef OLD // a driver before CUDA 12.4
EXPORT int cuModuleGetFunctionCount(unsigned *n, u m) { *n = conformance(m) ? 3 : 2; return 0; }
EXPORT int cuModuleEnumerateFunctions(u *f, unsigned n, u m) { for (unsigned i = 0; i < n; i++) f[i] = i + 1 + 2 * conformance(m); return 0; }
EXPORT int cuFuncLoad(u f) { loaded[f] = 1; return 0; }
EXPORT int cuFuncGetName(const char **s, u f) { *s = kernels[f - 1]; return 0; }
EXPORT int cuFuncGetParamInfo(u f, size_t i, size_t *offset, size_t *size) {
	if (i >= f || f > 2) return 1;
	*offset = 8 * i; *size = i ? 4 : 8;
	return 0;
}
#endif

EXPORT int cuMemAlloc_v2(u *p, size_t n) {
	NEEDS_CONTEXT; PLAY(cuMemAlloc);
	if (n > (size_t)1 << 33) return 2;
	char *m = aligned_alloc(256, (n + 255) / 256 * 256);
	if (!m) return 2;
	memset(m, 0xee, n); // another guest's data
	*p = (u)m;
	return 0;
}
EXPORT int cuMemFree_v2(u p) { NEEDS_CONTEXT; free((void *)p); SAY("cuMemFree"); return 0; }

// Virtual memory: device memory is a memfd, and an access to unmapped addresses
// faults.
#define GRANULE ((size_t)2 << 20)
struct location { int type, id; };
struct prop { int type, handles; struct location location; void *windows; uint8_t compression, rdma; uint16_t usage; char reserved[4]; };
struct access { struct location location; int flags; };
EXPORT int cuMemGetAllocationGranularity(size_t *n, const struct prop *p, int option) {
	(void)option;
	*n = GRANULE;
	return p->type != 1 || p->location.type != 1;
}
static int moves(void) { // whether the next hint is ignored
	static int done;
	const char *s = getenv("DOUBLE_MOVES");
	if (!s) return done = 0;
	return __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED) <= atoi(s);
}
EXPORT int cuMemAddressReserve(u *p, size_t n, size_t align, u at, unsigned long long flags) {
	PLAY(cuMemAddressReserve);
	if (n % GRANULE || align || at % GRANULE || flags) return 1;
	void *m = MAP_FAILED;
	// As in libcuda, the address is a hint, which is used if nothing is mapped
	// there. DOUBLE_MOVES is the number of times that the hint is ignored.
	if (at && !moves())
		m = mmap((void *)at, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (m == MAP_FAILED) {
		m = mmap(0, n + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (m == MAP_FAILED) return 2;
		u aligned = ((u)m + GRANULE - 1) / GRANULE * GRANULE;
		if (aligned > (u)m) munmap(m, aligned - (u)m);
		munmap((void *)(aligned + n), (u)m + GRANULE - aligned);
		m = (void *)aligned;
	}
	SAY("cuMemAddressReserve %zu%s", n, at == (u)m ? "" : " elsewhere");
	*p = (u)m;
	return 0;
}
EXPORT int cuMemAddressFree(u p, size_t n) { SAY("cuMemAddressFree"); return munmap((void *)p, n) ? 1 : 0; }
EXPORT int cuMemCreate(u *h, size_t n, const struct prop *p, unsigned long long flags) {
	PLAY(cuMemCreate);
	if (n % GRANULE || p->type != 1 || p->location.type != 1 || flags) return 1;
	if (__atomic_add_fetch(&used, n, __ATOMIC_RELAXED) > vram()) { __atomic_sub_fetch(&used, n, __ATOMIC_RELAXED); return 2; }
	int fd = memfd_create("double", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, n)) return 2;
	char another[4096]; // another guest's data
	memset(another, 0xee, sizeof another);
	for (size_t at = 0; at < n; at += GRANULE) if (pwrite(fd, another, sizeof another, at) != sizeof another) return 2;
	size_t *x = malloc(3 * sizeof *x);
	x[0] = fd; x[1] = n; x[2] = p->handles == 1;
	*h = (u)x;
	SAY("cuMemCreate %zu", n);
	return 0;
}
EXPORT int cuMemRelease(u h) { size_t *x = (size_t *)h; close(x[0]); __atomic_sub_fetch(&used, x[1], __ATOMIC_RELAXED); free(x); SAY("cuMemRelease"); return 0; }
EXPORT int cuMemMap(u p, size_t n, size_t offset, u h, unsigned long long flags) {
	PLAY(cuMemMap);
	size_t *x = (size_t *)h;
	if (n > x[1] || n % GRANULE || offset || flags) return 1;
	SAY("cuMemMap %zu", n);
	return mmap((void *)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, x[0], 0) == MAP_FAILED ? 1 : 0;
}
EXPORT int cuMemSetAccess(u p, size_t n, const struct access *a, size_t count) {
	PLAY(cuMemSetAccess);
	if (count != 1 || a->location.type != 1) return 1;
	return mprotect((void *)p, n, a->flags == 3 ? PROT_READ | PROT_WRITE : a->flags == 1 ? PROT_READ : PROT_NONE) ? 1 : 0;
}
EXPORT int cuMemUnmap(u p, size_t n) {
	PLAY(cuMemUnmap);
	SAY("cuMemUnmap %zu", n);
	return mmap((void *)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED ? 1 : 0;
}
// Exported memory is the memfd of memory that was created for it.
EXPORT int cuMemExportToShareableHandle(int *fd, u h, int type, unsigned long long flags) {
	PLAY(cuMemExportToShareableHandle);
	size_t *x = (size_t *)h;
	if (type != 1 || flags || !x[2]) return 1;
	SAY("export %zu", x[1]);
	return (*fd = fcntl(x[0], F_DUPFD_CLOEXEC, 3)) < 0;
}
EXPORT int cuMemImportFromShareableHandle(u *h, void *os, int type) {
	PLAY(cuMemImportFromShareableHandle);
	char name[64], path[64];
	ssize_t n = 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", (int)(u)os);
	if (type != 1 || (n = readlink(path, name, sizeof name - 1)) < 0) return 1;
	name[n] = 0;
	int fd = strstr(name, "memfd:double") ? fcntl((int)(u)os, F_DUPFD_CLOEXEC, 3) : -1;
	if (fd < 0) return 1;
	size_t *x = calloc(3, sizeof *x);
	x[0] = fd; x[1] = lseek(fd, 0, SEEK_END);
	__atomic_add_fetch(&used, x[1], __ATOMIC_RELAXED); // until cuMemRelease
	*h = (u)x;
	SAY("import %zu", x[1]);
	return 0;
}
EXPORT int cuMemHostAlloc(void **p, size_t n, unsigned flags) { (void)flags; return (*p = malloc(n)) ? 0 : 2; }
EXPORT int cuMemFreeHost(void *p) { free(p); return 0; }
// Host memory: pages that are registered once. A card sees them at their own
// address, or with DOUBLE_HOST_ELSEWHERE at another one.
#ifndef OLD
EXPORT int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
	NEEDS_CONTEXT; PLAY(cuMemHostRegister);
	int free_at = -1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 64; i++) {
		if (registered[i][0] == (u)p) { pthread_mutex_unlock(&lock); return 712; }
		if (!registered[i][0]) free_at = i;
	}
	if (free_at >= 0) registered[free_at][0] = (u)p, registered[free_at][1] = current;
	pthread_mutex_unlock(&lock);
	if (free_at < 0 || (u)p % 4096 || n % 4096) return 1;
	(void)*(volatile char *)p;
	SAY("cuMemHostRegister %zu flags %u", n, flags);
	return 0;
}
EXPORT int cuMemHostUnregister(void *p) {
	NEEDS_CONTEXT; PLAY(cuMemHostUnregister);
	int result = 713;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 64; i++) if (registered[i][0] == (u)p) { registered[i][0] = registered[i][1] = 0; result = 0; }
	pthread_mutex_unlock(&lock);
	if (!result) { (void)*(volatile char *)p; SAY("cuMemHostUnregister"); } // still mapped
	return result;
}
EXPORT int cuMemHostGetDevicePointer_v2(u *d, void *p, unsigned flags) {
	NEEDS_CONTEXT;
	*d = (u)p + (getenv("DOUBLE_HOST_ELSEWHERE") ? 4096 : 0);
	return flags ? 1 : 0;
}
#endif
EXPORT int cuMemcpyHtoDAsync_v2(u d, const void *s, size_t n, u st) { NEEDS_CONTEXT; PLAY(cuMemcpyHtoDAsync); memcpy((void *)d, s, n); SAY("HtoD %zu stream %d", n, st != 0); return 0; }
EXPORT int cuMemcpyDtoHAsync_v2(void *d, u s, size_t n, u st) { NEEDS_CONTEXT; PLAY(cuMemcpyDtoHAsync); memcpy(d, (void *)s, n); SAY("DtoH %zu stream %d", n, st != 0); return 0; }
EXPORT int cuMemcpyDtoDAsync_v2(u d, u s, size_t n, u st) { NEEDS_CONTEXT; (void)st; memmove((void *)d, (void *)s, n); SAY("DtoD %zu", n); return 0; }
// A memset is not done while the file $DOUBLE_HOLD exists.
EXPORT int cuMemsetD8Async(u d, unsigned char v, size_t n, u st) {
	NEEDS_CONTEXT; (void)st;
	const char *hold = getenv("DOUBLE_HOLD");
	if (hold && !access(hold, F_OK)) SAY("memset waits");
	while (hold && !access(hold, F_OK)) usleep(1000);
	memset((void *)d, v, n);
	return 0;
}
EXPORT int cuMemsetD16Async(u d, unsigned short v, size_t n, u st) { NEEDS_CONTEXT; (void)st; for (size_t i = 0; i < n; i++) ((uint16_t *)d)[i] = v; return 0; }
EXPORT int cuMemsetD32Async(u d, unsigned v, size_t n, u st) { NEEDS_CONTEXT; (void)st; for (size_t i = 0; i < n; i++) ((uint32_t *)d)[i] = v; return 0; }

EXPORT int cuLaunchKernel(u f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, u st, void **params, void **extra) {
	NEEDS_CONTEXT; PLAY(cuLaunchKernel);
	char hex[128] = "";
	if (params) return 1;
	if (extra) {
		if ((u)extra[0] != 1 || (u)extra[2] != 2 || extra[4]) return 1;
		size_t n = *(size_t *)extra[3];
		for (size_t i = 0; i < n && i < 48; i++) sprintf(hex + 2 * i, "%02x", ((unsigned char *)extra[1])[i]);
	}
	u *p = extra ? (u *)extra[1] : 0;
	if (f == 5) poisoned = current;
	if (poisoned && poisoned == current) return 0;
	if (f == 4) nanosleep(&(struct timespec){0, 1000000}, 0);
	if (f == 3 || f == 4) { *(u *)p[0] = p[1]; return 0; }
	SAY("launch %s grid %u %u %u block %u %u %u shared %u stream %d params %s", kernels[f - 1], gx, gy, gz, bx, by, bz, shared, st != 0, hex);
	return 0;
}
struct policy { u base, bytes; float ratio; int hit, miss; };
struct attribute { int id; char pad[4]; union { char bytes[64]; int number; unsigned cluster[3]; struct policy policy; } value; };
struct config {
	unsigned grid[3], block[3], shared;
	u stream;
	const struct attribute *attributes;
	unsigned count;
};
EXPORT int cuLaunchKernelEx(const struct config *c, u f, void **params, void **extra) {
	for (unsigned i = 0; i < c->count; i++) {
		const struct attribute *a = &c->attributes[i];
		const struct policy *p = &a->value.policy;
		switch (a->id) {
		case 1: SAY("window of %llu bytes, hit %.2f %d miss %d", (unsigned long long)p->bytes, p->ratio, p->hit, p->miss); break;
		case 2: if (a->value.number != 1) return 1; SAY("cooperative"); break;
		case 4: SAY("cluster %u %u %u", a->value.cluster[0], a->value.cluster[1], a->value.cluster[2]); break;
		case 8: SAY("priority %d", a->value.number); break;
		default: return 1;
		}
	}
	return cuLaunchKernel(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared, c->stream, params, extra);
}
EXPORT int cuStreamCreateWithPriority(u *s, unsigned flags, int priority) { NEEDS_CONTEXT; *s = handle(); SAY("stream flags %u priority %d", flags, priority); return 0; }
EXPORT int cuStreamDestroy_v2(u s) { (void)s; SAY("cuStreamDestroy"); return 0; }
EXPORT int cuStreamSynchronize(u s) { (void)s; return 0; }
EXPORT int cuStreamWaitEvent(u s, u e, unsigned flags) { (void)s; (void)e; SAY("wait flags %u", flags); return 0; }

struct event { struct timespec at; int asked; };
EXPORT int cuEventCreate(u *e, unsigned flags) { NEEDS_CONTEXT; (void)flags; *e = (u)calloc(1, sizeof(struct event)); return 0; }
EXPORT int cuEventDestroy_v2(u e) { free((void *)e); SAY("cuEventDestroy"); return 0; }
EXPORT int cuEventRecord(u e, u s) { NEEDS_CONTEXT; (void)s; clock_gettime(CLOCK_MONOTONIC, &((struct event *)e)->at); return 0; }
EXPORT int cuEventQuery(u e) { NEEDS_CONTEXT; PLAY(cuEventQuery); (void)e; return poisoned == current ? 700 : 0; }
EXPORT int cuEventSynchronize(u e) { NEEDS_CONTEXT; PLAY(cuEventSynchronize); (void)e; SAY("cuEventSynchronize"); return poisoned == current ? 700 : 0; }
EXPORT int cuEventElapsedTime(float *ms, u a, u b) {
	struct event *x = (struct event *)a, *y = (struct event *)b;
	*ms = (float)((y->at.tv_sec - x->at.tv_sec) * 1e3 + (y->at.tv_nsec - x->at.tv_nsec) / 1e6);
	return 0;
}
EXPORT int cuStreamWriteValue32_v2(u stream, u addr, uint32_t value, unsigned flags) {
	NEEDS_CONTEXT;
	CALLED("cuStreamWriteValue32_v2 stream=%llu addr=%llu value=%llu flags=%llu", W(stream), W(addr), W(value), W(flags));
	*(uint32_t *)addr = value;
	return 0;
}
EXPORT int cuStreamWriteValue64_v2(u stream, u addr, uint64_t value, unsigned flags) {
	NEEDS_CONTEXT;
	CALLED("cuStreamWriteValue64_v2 stream=%llu addr=%llu value=%llu flags=%llu", W(stream), W(addr), W(value), W(flags));
	*(uint64_t *)addr = value;
	return 0;
}
#include "double_gen.c"

// Arrays and textures log what was requested, in cuda.h's layout.
EXPORT int cuArray3DCreate_v2(u *h, const void *d) {
	NEEDS_CONTEXT; PLAY(cuArray3DCreate);
	SAY("cuArray3DCreate %llux%llux%llu format=%u channels=%u flags=%u", W(M(size_t, d, 0)), W(M(size_t, d, 8)), W(M(size_t, d, 16)), M(unsigned, d, 24), M(unsigned, d, 28), M(unsigned, d, 32));
	*h = 0xa1;
	return 0;
}
EXPORT int cuMipmappedArrayCreate(u *h, const void *d, unsigned levels) { NEEDS_CONTEXT; SAY("cuMipmappedArrayCreate %llux%llu levels=%u", W(M(size_t, d, 0)), W(M(size_t, d, 8)), levels); *h = 0xb0; return 0; }
EXPORT int cuMipmappedArrayGetLevel(u *h, u m, unsigned level) { NEEDS_CONTEXT; *h = m + 1 + level; return 0; }
EXPORT int cuArrayDestroy(u h) { NEEDS_CONTEXT; SAY("cuArrayDestroy %llx", W(h)); return 0; }
EXPORT int cuMipmappedArrayDestroy(u h) { NEEDS_CONTEXT; SAY("cuMipmappedArrayDestroy %llx", W(h)); return 0; }
EXPORT int cuMemcpy3DAsync_v2(const void *p, u st) {
	NEEDS_CONTEXT; PLAY(cuMemcpy3DAsync); (void)st;
	int src = M(unsigned, p, 32) == 3, dst = M(unsigned, p, 120) == 3;
	SAY("copy %llux%llux%llu from %s %llx at %llu,%llu,%llu to %s %llx at %llu,%llu,%llu", W(M(size_t, p, 176)), W(M(size_t, p, 184)), W(M(size_t, p, 192)),
	    src ? "array" : "memory", src ? W(M(u, p, 56)) : W(M(size_t, p, 72)), W(M(size_t, p, 0)), W(M(size_t, p, 8)), W(M(size_t, p, 16)),
	    dst ? "array" : "memory", dst ? W(M(u, p, 144)) : W(M(size_t, p, 160)), W(M(size_t, p, 88)), W(M(size_t, p, 96)), W(M(size_t, p, 104)));
	return 0;
}
// References: 0x7ef for the texture reference "picture", 0x5ef for the surface reference "face".
EXPORT int cuModuleGetTexRef(u *h, u m, const char *name) { NEEDS_CONTEXT; (void)m; *h = 0x7ef; return strcmp(name, "picture") ? 500 : 0; }
EXPORT int cuModuleGetSurfRef(u *h, u m, const char *name) { NEEDS_CONTEXT; (void)m; *h = 0x5ef; return strcmp(name, "face") ? 500 : 0; }
EXPORT int cuSurfRefSetArray(u h, u a, unsigned flags) { NEEDS_CONTEXT; SAY("cuSurfRefSetArray %llx array=%llx flags=%u", W(h), W(a), flags); return 0; }
EXPORT int cuTexRefSetArray(u h, u a, unsigned flags) { NEEDS_CONTEXT; SAY("cuTexRefSetArray %llx array=%llx flags=%u", W(h), W(a), flags); return 0; }
EXPORT int cuTexRefSetMipmappedArray(u h, u a, unsigned flags) { NEEDS_CONTEXT; SAY("cuTexRefSetMipmappedArray %llx array=%llx flags=%u", W(h), W(a), flags); return 0; }
EXPORT int cuTexRefSetFormat(u h, int format, int channels) { NEEDS_CONTEXT; PLAY(cuTexRefSetFormat); SAY("cuTexRefSetFormat %llx %d %d", W(h), format, channels); return 0; }
EXPORT int cuTexRefSetAddress_v2(size_t *offset, u h, u d, size_t n) { NEEDS_CONTEXT; SAY("cuTexRefSetAddress %llx %llu bytes", W(h), W(n)); *offset = d % 512; return 0; }
EXPORT int cuTexRefSetAddress2D_v3(u h, const void *d, u p, size_t pitch) {
	NEEDS_CONTEXT; (void)p;
	SAY("cuTexRefSetAddress2D %llx %llux%llu format=%u channels=%u pitch=%llu", W(h), W(M(size_t, d, 0)), W(M(size_t, d, 8)), M(unsigned, d, 16), M(unsigned, d, 20), W(pitch));
	return 0;
}
EXPORT int cuTexRefSetFlags(u h, unsigned f) { NEEDS_CONTEXT; SAY("cuTexRefSetFlags %llx %u", W(h), f); return 0; }
EXPORT int cuTexRefSetAddressMode(u h, int dim, int mode) { NEEDS_CONTEXT; SAY("cuTexRefSetAddressMode %llx %d %d", W(h), dim, mode); return 0; }
EXPORT int cuTexRefSetFilterMode(u h, int f) { NEEDS_CONTEXT; SAY("cuTexRefSetFilterMode %llx %d", W(h), f); return 0; }
EXPORT int cuTexRefSetMipmapFilterMode(u h, int f) { NEEDS_CONTEXT; SAY("cuTexRefSetMipmapFilterMode %llx %d", W(h), f); return 0; }
EXPORT int cuTexRefSetMipmapLevelBias(u h, float bias) { NEEDS_CONTEXT; SAY("cuTexRefSetMipmapLevelBias %llx %g", W(h), bias); return 0; }
EXPORT int cuTexRefSetMipmapLevelClamp(u h, float least, float most) { NEEDS_CONTEXT; SAY("cuTexRefSetMipmapLevelClamp %llx %g %g", W(h), least, most); return 0; }
EXPORT int cuTexRefSetMaxAnisotropy(u h, unsigned n) { NEEDS_CONTEXT; SAY("cuTexRefSetMaxAnisotropy %llx %u", W(h), n); return 0; }
EXPORT int cuTexRefSetBorderColor(u h, const float *c) { NEEDS_CONTEXT; SAY("cuTexRefSetBorderColor %llx %g,%g,%g,%g", W(h), c[0], c[1], c[2], c[3]); return 0; }
EXPORT int cuTexObjectCreate(unsigned long long *o, const void *r, const void *t, const void *v) {
	NEEDS_CONTEXT; PLAY(cuTexObjectCreate);
	SAY("cuTexObjectCreate type=%u base=%llx format=%u channels=%u %llu %llu %llu modes=%u,%u,%u filter=%u flags=%u aniso=%u mip=%u bias=%g levels=%g-%g border=%g,%g", M(unsigned, r, 0),
	    M(unsigned, r, 0) >= 2 ? 0 : W(M(u, r, 8)), M(unsigned, r, 16), M(unsigned, r, 20), W(M(size_t, r, 24)), W(M(size_t, r, 32)), W(M(size_t, r, 40)),
	    M(unsigned, t, 0), M(unsigned, t, 4), M(unsigned, t, 8), M(unsigned, t, 12), M(unsigned, t, 16), M(unsigned, t, 20), M(unsigned, t, 24),
	    M(float, t, 28), M(float, t, 32), M(float, t, 36), M(float, t, 40), M(float, t, 52));
	if (v) SAY("view format=%u %llux%llux%llu levels=%u-%u layers=%u-%u", M(unsigned, v, 0), W(M(size_t, v, 8)), W(M(size_t, v, 16)), W(M(size_t, v, 24)), M(unsigned, v, 32), M(unsigned, v, 36), M(unsigned, v, 40), M(unsigned, v, 44));
	*o = 0x7e0;
	return 0;
}
EXPORT int cuTexObjectDestroy(unsigned long long o) { NEEDS_CONTEXT; SAY("cuTexObjectDestroy %llx", o); return 0; }
EXPORT int cuSurfObjectCreate(unsigned long long *o, const void *r) { NEEDS_CONTEXT; SAY("cuSurfObjectCreate type=%u base=%llx", M(unsigned, r, 0), W(M(u, r, 8))); *o = 0x7e0; return 0; }
EXPORT int cuSurfObjectDestroy(unsigned long long o) { NEEDS_CONTEXT; SAY("cuSurfObjectDestroy %llx", o); return 0; }
