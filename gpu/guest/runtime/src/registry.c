/* The fatbins, kernels and variables that the program's code registers before main. They are
 * found by the address of their host side. A fatbin is loaded into a context when something of
 * it is first used there. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver_calls.h"
#include "runtime.h"

#define BUCKETS 16384

/* The wrapper in which compilers put a fatbin. */
struct wrapper {
	unsigned int magic, version; /* 1: data is a fatbin; 2: for the linker of device code */
	const void *data, *more;
};
#define WRAPPER_MAGIC 0x466243b1

struct loaded {
	void *context, *module;
	struct loaded *next;
};

struct fatbin {
	struct wrapper *wrapper;
	pthread_mutex_t lock; /* guards the members below */
	struct loaded *loaded;
	void *library; /* CUlibrary, for requests of a cudaKernel_t */
	struct symbol *symbols;
};

/* A function in one context. It is published once, and freed with the symbol. */
struct found {
	void *context, *function;
	struct found *next;
};

struct symbol {
	const void *host;
	struct fatbin *fatbin;
	char *name;
	size_t size;    /* size of a variable */
	void **managed; /* the program's variable for the address of a managed variable */
	enum { NO_REFERENCE, TEXTURE, SURFACE } reference;
	bool normalized; /* of a texture: integers are read as numbers from 0 to 1 */
	_Atomic(struct found *) found;
	_Atomic(void *) kernel;
	struct symbol *next_in_bucket, *next_in_fatbin;
};

static pthread_rwlock_t registry = PTHREAD_RWLOCK_INITIALIZER; /* guards buckets and fatbins */
static struct symbol *buckets[BUCKETS];
static struct fatbin *fatbins[4096];
static unsigned int fatbin_count;

static unsigned int bucket(const void *host)
{
	uint64_t h = (uintptr_t)host;

	return (unsigned int)((h * 0x9e3779b97f4a7c15ull) >> 32) % BUCKETS;
}

/* Finds the newest symbol of a host address, or of a kernel handle that was returned before. */
static struct symbol *find(const void *host)
{
	struct symbol *s = buckets[bucket(host)];

	if (!host)
		return NULL;
	while (s && s->host != host)
		s = s->next_in_bucket;
	for (unsigned int i = 0; !s && i < fatbin_count; i++)
		for (struct symbol *k = fatbins[i]->library ? fatbins[i]->symbols : NULL; k && !s; k = k->next_in_fatbin)
			if (atomic_load(&k->kernel) == host)
				s = k;
	return s;
}

void *registry_add_fatbin(const void *wrapper)
{
	struct fatbin *f;

	if (!wrapper || ((const struct wrapper *)wrapper)->magic != WRAPPER_MAGIC || !(f = calloc(1, sizeof *f)))
		return NULL;
	f->wrapper = (struct wrapper *)wrapper;
	pthread_mutex_init(&f->lock, NULL);
	pthread_rwlock_wrlock(&registry);
	if (fatbin_count < sizeof fatbins / sizeof *fatbins)
		fatbins[fatbin_count++] = f;
	else
		free(f), f = NULL;
	pthread_rwlock_unlock(&registry);
	return f;
}

/* Reports whether a fatbin is registered. The registry is locked for writing. */
static bool is_registered(const struct fatbin *f)
{
	for (unsigned int i = 0; i < fatbin_count; i++)
		if (fatbins[i] == f)
			return true;
	return false;
}

static void add(struct fatbin *f, const struct symbol *like, const char *name)
{
	struct symbol *s;

	if (!f || !like->host || !name || !(s = calloc(1, sizeof *s)))
		return;
	*s = *like;
	s->fatbin = f;
	pthread_rwlock_wrlock(&registry);
	if (!is_registered(f) || !(s->name = strdup(name))) {
		free(s);
	} else {
		s->next_in_bucket = buckets[bucket(s->host)];
		buckets[bucket(s->host)] = s;
		s->next_in_fatbin = f->symbols;
		f->symbols = s;
	}
	pthread_rwlock_unlock(&registry);
}

void registry_add_function(void *fatbin, const void *host, const char *name)
{
	add(fatbin, &(struct symbol){.host = host}, name);
}

void registry_add_variable(void *fatbin, const void *host, const char *name, size_t size, void **managed)
{
	add(fatbin, &(struct symbol){.host = host, .size = size, .managed = managed}, name);
}

void registry_add_reference(void *fatbin, const void *host, const char *name, bool surface, bool normalized)
{
	add(fatbin, &(struct symbol){.host = host, .reference = surface ? SURFACE : TEXTURE, .normalized = normalized}, name);
}

/* Stores the addresses of managed variables, which are the same for host and device, in the
 * program's variables. */
static void set_managed(struct fatbin *f, void *module)
{
	for (struct symbol *s = f->symbols; s; s = s->next_in_fatbin) {
		CUdeviceptr p = 0;
		size_t n = 0;

		if (s->managed && call_cuModuleGetGlobal_v2(&p, &n, module, s->name) == 0)
			*s->managed = (void *)(uintptr_t)p;
	}
}

/* Finds or loads the fatbin's module in a context. The fatbin is locked. */
static cudaError_t module_in(struct fatbin *f, void *context, void **module)
{
	struct loaded *l = f->loaded;
	cudaError_t err;

	while (l && l->context != context)
		l = l->next;
	if (!l) {
		if (!(l = calloc(1, sizeof *l)))
			return cudaErrorMemoryAllocation;
		err = from_driver(call_cuModuleLoadData(&l->module, f->wrapper->version == 1 ? f->wrapper->data : f->wrapper));
		if (err) {
			free(l);
			return err;
		}
		l->context = context;
		l->next = f->loaded;
		f->loaded = l;
		set_managed(f, l->module);
	}
	*module = l->module;
	return cudaSuccess;
}

static cudaError_t load_function(struct symbol *s, void *context, void **function)
{
	struct found *n;
	void *module;
	cudaError_t err;
	int result;

	if ((err = module_in(s->fatbin, context, &module)) != 0)
		return err;
	if ((result = call_cuModuleGetFunction(function, module, s->name)) != 0)
		return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : from_driver(result);
	if (!(n = calloc(1, sizeof *n)))
		return cudaErrorMemoryAllocation;
	n->context = context;
	n->function = *function;
	n->next = atomic_load(&s->found);
	atomic_store(&s->found, n);
	return cudaSuccess;
}

cudaError_t symbol_function(const void *host, void **function)
{
	cudaError_t err;
	struct symbol *s;
	struct found *n = NULL;
	void *context;

	if ((err = current_context(&context)) != 0)
		return err;
	pthread_rwlock_rdlock(&registry);
	if ((s = find(host)) != NULL)
		for (n = atomic_load(&s->found); n && n->context != context;)
			n = n->next;
	if (!s) {
		err = cudaErrorInvalidDeviceFunction;
	} else if (n) {
		*function = n->function;
	} else {
		pthread_mutex_lock(&s->fatbin->lock);
		err = load_function(s, context, function);
		pthread_mutex_unlock(&s->fatbin->lock);
	}
	pthread_rwlock_unlock(&registry);
	return err;
}

/* Finds the driver's kernel of a symbol. The fatbin is locked. */
static cudaError_t load_kernel(struct symbol *s)
{
	int keep = 1; /* CU_LIBRARY_BINARY_IS_PRESERVED: until the fatbin is unregistered */
	void *yes = (void *)1;
	struct fatbin *f = s->fatbin;
	void *kernel;
	cudaError_t err = cudaSuccess;

	if (!f->library)
		err = from_driver(call_cuLibraryLoadData(&f->library, f->wrapper, NULL, NULL, 0, &keep, &yes, 1));
	if (!err && (err = from_driver(call_cuLibraryGetKernel(&kernel, f->library, s->name))) == 0)
		atomic_store(&s->kernel, kernel);
	return err;
}

cudaError_t symbol_kernel(const void *host, void **kernel)
{
	cudaError_t err = cudaSuccess;
	struct symbol *s;

	pthread_rwlock_rdlock(&registry);
	if (!(s = find(host))) {
		err = cudaErrorInvalidDeviceFunction;
	} else {
		pthread_mutex_lock(&s->fatbin->lock);
		if (!atomic_load(&s->kernel))
			err = load_kernel(s);
		*kernel = atomic_load(&s->kernel);
		pthread_mutex_unlock(&s->fatbin->lock);
	}
	pthread_rwlock_unlock(&registry);
	return err;
}

static bool is_function(const struct symbol *s, const void *function)
{
	for (const struct found *n = atomic_load(&s->found); n; n = n->next)
		if (n->function == function)
			return true;
	return false;
}

const void *function_symbol(const void *function)
{
	const void *host = NULL;

	pthread_rwlock_rdlock(&registry);
	for (unsigned int i = 0; !host && i < fatbin_count; i++)
		for (const struct symbol *s = fatbins[i]->symbols; s && !host; s = s->next_in_fatbin)
			if (is_function(s, function))
				host = s->host;
	pthread_rwlock_unlock(&registry);
	return host;
}

/* The name is valid as long as the program's code that registered it is loaded. */
const char *symbol_name(const void *host)
{
	struct symbol *s;

	pthread_rwlock_rdlock(&registry);
	s = find(host);
	pthread_rwlock_unlock(&registry);
	return s ? s->name : NULL;
}

cudaError_t symbol_variable(const void *host, CUdeviceptr *address, size_t *size)
{
	void *context, *module;
	struct symbol *s;
	cudaError_t err;
	int result;

	if ((err = current_context(&context)) != 0)
		return err;
	pthread_rwlock_rdlock(&registry);
	if (!(s = find(host))) {
		err = cudaErrorInvalidSymbol;
	} else {
		pthread_mutex_lock(&s->fatbin->lock);
		if ((err = module_in(s->fatbin, context, &module)) == 0 &&
		    (result = call_cuModuleGetGlobal_v2(address, size, module, s->name)) != 0)
			err = result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : from_driver(result);
		pthread_mutex_unlock(&s->fatbin->lock);
	}
	pthread_rwlock_unlock(&registry);
	return err;
}

static bool is_reference(const struct symbol *s, bool surface)
{
	return s && s->reference == (surface ? SURFACE : TEXTURE);
}

bool symbol_is_reference(const void *host, bool surface)
{
	bool is;

	pthread_rwlock_rdlock(&registry);
	is = is_reference(find(host), surface);
	pthread_rwlock_unlock(&registry);
	return is;
}

cudaError_t symbol_reference(const void *host, bool surface, bool *normalized, void **reference)
{
	const cudaError_t none = surface ? cudaErrorInvalidSurface : cudaErrorInvalidTexture;
	void *context, *module;
	struct symbol *s;
	cudaError_t err;
	int result;

	if ((err = current_context(&context)) != 0)
		return err;
	pthread_rwlock_rdlock(&registry);
	if (!is_reference(s = find(host), surface)) {
		err = none;
	} else {
		if (normalized)
			*normalized = s->normalized;
		pthread_mutex_lock(&s->fatbin->lock);
		if ((err = module_in(s->fatbin, context, &module)) == 0 &&
		    (result = surface ? call_cuModuleGetSurfRef(reference, module, s->name) : call_cuModuleGetTexRef(reference, module, s->name)) != 0)
			err = result == CUDA_ERROR_NOT_FOUND ? none : from_driver(result);
		pthread_mutex_unlock(&s->fatbin->lock);
	}
	pthread_rwlock_unlock(&registry);
	return err;
}

static bool has_managed(const struct fatbin *f)
{
	for (const struct symbol *s = f->symbols; s; s = s->next_in_fatbin)
		if (s->managed)
			return true;
	return false;
}

/* Loads a fatbin with managed variables, because the program may read their addresses at any
 * time without a call. */
void registry_load_managed(void *fatbin)
{
	struct fatbin *f = fatbin;
	void *context, *module;

	if (!f || !has_managed(f) || enter() != 0 || current_context(&context) != 0)
		return;
	pthread_rwlock_rdlock(&registry);
	pthread_mutex_lock(&f->lock);
	(void)module_in(f, context, &module);
	pthread_mutex_unlock(&f->lock);
	pthread_rwlock_unlock(&registry);
}

static void drop_found(struct symbol *s, const void *context)
{
	struct found *n = atomic_exchange(&s->found, NULL), *kept = NULL;

	while (n) {
		struct found *next = n->next;

		if (!context || n->context == context) {
			free(n);
		} else {
			n->next = kept;
			kept = n;
		}
		n = next;
	}
	atomic_store(&s->found, kept);
}

/* Removes the modules of a context (NULL: of all contexts), which are unloaded with it. */
static void drop_loaded(struct fatbin *f, const void *context)
{
	for (struct loaded **l = &f->loaded; *l;) {
		struct loaded *gone = *l;

		if (context && gone->context != context) {
			l = &gone->next;
			continue;
		}
		*l = gone->next;
		free(gone);
	}
	for (struct symbol *s = f->symbols; s; s = s->next_in_fatbin)
		drop_found(s, context);
}

void registry_forget_context(void *context)
{
	pthread_rwlock_wrlock(&registry);
	for (unsigned int i = 0; i < fatbin_count; i++)
		drop_loaded(fatbins[i], context);
	pthread_rwlock_unlock(&registry);
}

/* Resets the locks in a child of fork. It has only the thread that forked, which holds none of
 * them. */
void registry_after_fork(void)
{
	pthread_rwlock_init(&registry, NULL);
	for (unsigned int i = 0; i < fatbin_count; i++) {
		struct fatbin *f = fatbins[i];

		pthread_mutex_init(&f->lock, NULL);
		drop_loaded(f, NULL);
		f->library = NULL;
		for (struct symbol *s = f->symbols; s; s = s->next_in_fatbin)
			atomic_store(&s->kernel, NULL);
	}
}

static void unlink_symbol(struct symbol *s)
{
	struct symbol **at = &buckets[bucket(s->host)];

	while (*at != s)
		at = &(*at)->next_in_bucket;
	*at = s->next_in_bucket;
	drop_found(s, NULL);
	free(s->name);
	free(s);
}

/* Called at the end of the program or of a shared object, in any order. It has no effect if it is
 * called twice, or for something that was never registered. */
void registry_remove_fatbin(void *fatbin)
{
	struct fatbin *f = fatbin;
	bool there;

	pthread_rwlock_wrlock(&registry);
	if ((there = is_registered(f))) {
		for (unsigned int i = 0; i < fatbin_count; i++)
			if (fatbins[i] == f)
				fatbins[i] = fatbins[--fatbin_count];
		for (struct loaded *l = f->loaded; l; l = l->next)
			(void)call_cuModuleUnload(l->module);
		if (f->library)
			(void)call_cuLibraryUnload(f->library);
		drop_loaded(f, NULL);
		for (struct symbol *s = f->symbols, *next; s; s = next) {
			next = s->next_in_fatbin;
			unlink_symbol(s);
		}
	}
	pthread_rwlock_unlock(&registry);
	if (there) {
		pthread_mutex_destroy(&f->lock);
		free(f);
	}
}
