/* Libraries: images that are loaded into a context when it first needs something of them or,
 * with CUDA_MODULE_LOADING=EAGER, into every context at once. */
#include "library.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONTEXT_LIMIT 128 /* more than a worker creates for one program */
#define LIBRARY_LIMIT 4096

static bool eager; /* from CUDA_MODULE_LOADING, which is read once */

static void read_mode(void)
{
	const char *mode = getenv("CUDA_MODULE_LOADING");

	eager = mode && strcasecmp(mode, "EAGER") == 0;
}

static bool loads_eagerly(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_mode);
	return eager;
}

CUDA_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SESSION(s);
	(void)s;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = loads_eagerly() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return 0;
}

static void library_destroy(struct object *o)
{
	struct library *l = (struct library *)o;

	for (size_t i = 0; i < l->kernel_count; i++)
		object_put(l->kernels[i]);
	free(l->kernels);
	free_module_info(&l->about);
	free(l->loaded);
	free(l->copy);
	pthread_cond_destroy(&l->loads);
	pthread_mutex_destroy(&l->managed.lock);
	pthread_mutex_destroy(&l->lock);
}

static bool context_lives(uint64_t context)
{
	void *c = object_get(handle_of(context), KIND_CONTEXT);

	object_put(c);
	return c != NULL;
}

/* Returns the index of a context's module, and sets *found. If there is none, it returns a free
 * index, if necessary that of a destroyed context, or SIZE_MAX. The caller holds the lock. */
static size_t place_of(struct library *l, uint64_t context, bool *found)
{
	size_t free_place = SIZE_MAX;
	struct loaded *more;

	for (size_t i = 0; i < l->count; i++) {
		struct loaded *p = &l->loaded[i];

		if (p->context == context) {
			*found = true;
			return i;
		}
		if (free_place == SIZE_MAX && !p->loading && (!p->context || !context_lives(p->context)))
			free_place = i;
	}
	*found = false;
	if (free_place != SIZE_MAX || l->count == CONTEXT_LIMIT)
		return free_place;
	if (!(more = realloc(l->loaded, (l->count + 1) * sizeof *more)))
		return SIZE_MAX;
	l->loaded = more;
	more[l->count] = (struct loaded){0};
	return l->count++;
}

/* Loads the library into a context, if that has not been done. Other threads that load it into
 * the same context wait for this; threads that load it into another context do not. */
static int load_into(struct library *l, uint64_t context, unsigned int options, const CUjit_option *keys, void **values, CUmodule *out)
{
	bool found;
	size_t i;
	int err;

	pthread_mutex_lock(&l->lock);
	while (!l->gone && (i = place_of(l, context, &found)) != SIZE_MAX && found && l->loaded[i].loading)
		pthread_cond_wait(&l->loads, &l->lock);
	if (l->gone || i == SIZE_MAX || found) {
		err = l->gone ? CUDA_ERROR_INVALID_HANDLE : i == SIZE_MAX ? CUDA_ERROR_OUT_OF_MEMORY : 0;
		if (err == 0)
			*out = l->loaded[i].module;
		pthread_mutex_unlock(&l->lock);
		return err;
	}
	l->loaded[i] = (struct loaded){.context = context, .loading = true};
	pthread_mutex_unlock(&l->lock);
	err = module_load_into(context, l->image, l->size, options, keys, values, &l->managed, out);
	pthread_mutex_lock(&l->lock);
	l->loaded[i] = err ? (struct loaded){0} : (struct loaded){.context = context, .module = *out};
	pthread_cond_broadcast(&l->loads);
	pthread_mutex_unlock(&l->lock);
	return err;
}

int library_module(struct library *l, CUmodule *out)
{
	uint64_t context;

	TRY(context_current(&context));
	return load_into(l, context, l->options, l->keys, l->values, out);
}

/* Withdraws the library: it cannot be loaded any more, and its modules are unloaded. */
static void withdraw(struct library *l)
{
	struct session *s;
	bool busy;

	pthread_mutex_lock(&l->lock);
	l->gone = true;
	do {
		busy = false;
		for (size_t i = 0; i < l->count; i++)
			busy = busy || l->loaded[i].loading;
		if (busy)
			pthread_cond_wait(&l->loads, &l->lock);
	} while (busy);
	pthread_cond_broadcast(&l->loads); /* wakes the threads that wait for this load */
	pthread_mutex_unlock(&l->lock);
	for (size_t i = 0; i < l->count; i++)
		if (l->loaded[i].context)
			(void)cuModuleUnload(l->loaded[i].module); /* fails if the context was destroyed */
	kernels_remove(l);
	if (l->managed.address && library_session(&s) == 0)
		(void)managed_variables_free(s, l->managed.address);
}

/* With EAGER, loads the library into every existing context. */
static int load_everywhere(struct library *l)
{
	uint64_t contexts[CONTEXT_LIMIT];
	size_t n = object_list(KIND_CONTEXT, contexts, CONTEXT_LIMIT);
	CUmodule m;

	for (size_t i = 0; i < n && i < CONTEXT_LIMIT; i++) {
		int err = load_into(l, contexts[i], l->options, l->keys, l->values, &m);

		if (err && context_lives(contexts[i]))
			return err;
	}
	return 0;
}

/* Errors are ignored: the load fails again, and is reported, when the program uses the
 * library. */
void libraries_enter(uint64_t context)
{
	uint64_t *libraries;
	CUmodule m;
	size_t n;

	if (!loads_eagerly() || !(libraries = malloc(LIBRARY_LIMIT * sizeof *libraries)))
		return;
	n = object_list(KIND_LIBRARY, libraries, LIBRARY_LIMIT);
	for (size_t i = 0; i < n && i < LIBRARY_LIMIT; i++) {
		struct library *l = object_get(handle_of(libraries[i]), KIND_LIBRARY);

		if (l)
			(void)load_into(l, context, l->options, l->keys, l->values, &m);
		object_put(l);
	}
	free(libraries);
}

/* Reports whether the program requests a log or the time of the compilation. */
static bool wants_log(unsigned int n, const CUjit_option *keys)
{
	for (unsigned int i = 0; i < n; i++)
		if (keys[i] == CU_JIT_INFO_LOG_BUFFER || keys[i] == CU_JIT_ERROR_LOG_BUFFER || keys[i] == CU_JIT_WALL_TIME)
			return true;
	return false;
}

static void keep_options(struct library *l, unsigned int n, const CUjit_option *keys, void **values)
{
	for (unsigned int i = 0; i < n && l->options < 2; i++) {
		if (keys[i] != CU_JIT_MAX_REGISTERS && keys[i] != CU_JIT_OPTIMIZATION_LEVEL)
			continue;
		l->keys[l->options] = keys[i];
		l->values[l->options++] = values[i];
	}
}

/* Creates a library whose handle is not valid yet. copy is the image if this library has
 * allocated it; the new library owns it, even if this function fails. */
static int library_new(struct library **out, const void *image, void *copy, size_t size)
{
	struct library *l;
	int err = size == 0 || size > BSLT_MAX_MODULE_IMAGE ? CUDA_ERROR_INVALID_IMAGE : image_check(image, size);

	if (err == 0 && !(l = object_new(sizeof *l, KIND_LIBRARY, object_ids(1), 0)))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (err) {
		free(copy);
		return err;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->loads, NULL);
	pthread_mutex_init(&l->managed.lock, NULL);
	l->o.destroy = library_destroy;
	l->image = image;
	l->copy = copy;
	l->size = size;
	*out = l;
	return 0;
}

/* Returns the library to the program. If the program requests a log, the library is loaded at
 * once into the current context, if there is one, because the buffers are only valid during
 * this call. */
static int library_give(CUlibrary *out, struct library *l, unsigned int n, const CUjit_option *keys, void **values)
{
	uint64_t context;
	CUmodule m;
	int err = 0;

	keep_options(l, n, keys, values);
	if (wants_log(n, keys) && context_current(&context) == 0)
		err = load_into(l, context, n, keys, values, &m);
	if (err) {
		object_put(l);
		return err;
	}
	object_get_more(l);
	object_add(l); /* contexts that are created from now on find it */
	if (loads_eagerly() && (err = load_everywhere(l)) != 0 && object_remove(l->o.id, KIND_LIBRARY))
		withdraw(l);
	else
		*out = handle_of(l->o.id);
	object_put(l);
	return err;
}

/* Reads the options. *preserved becomes true if the program keeps the image until it unloads
 * the library. */
static int library_options(unsigned int n, const CUlibraryOption *options, void **values, bool *preserved)
{
	*preserved = false;
	if (n && !options)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++) {
		switch (options[i]) {
		case CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE: break; /* for functions that host and device share, which are not supported */
		case CU_LIBRARY_BINARY_IS_PRESERVED: *preserved = values && values[i]; break;
		default: return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return 0;
}

CUDA_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
				    void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
				    void **libraryOptionValues, unsigned int numLibraryOptions)
{
	struct library *l;
	void *copy = NULL;
	bool preserved;
	size_t size;

	SESSION(s);
	(void)s;
	if (!library || !code || (numJitOptions && (!jitOptions || !jitOptionsValues)))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(library_options(numLibraryOptions, libraryOptions, libraryOptionValues, &preserved));
	size = image_size(&code, &copy);
	if (size == 0 || size > BSLT_MAX_MODULE_IMAGE) {
		free(copy);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (!copy && !preserved) {
		if (!(copy = malloc(size)))
			return CUDA_ERROR_OUT_OF_MEMORY;
		code = memcpy(copy, code, size);
	}
	TRY(library_new(&l, code, copy, size));
	return library_give(library, l, numJitOptions, jitOptions, jitOptionsValues);
}

CUDA_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
					void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
					void **libraryOptionValues, unsigned int numLibraryOptions)
{
	struct library *l;
	bool preserved;
	void *bytes;
	size_t size;

	SESSION(s);
	(void)s;
	if (!library || !fileName || (numJitOptions && (!jitOptions || !jitOptionsValues)))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(library_options(numLibraryOptions, libraryOptions, libraryOptionValues, &preserved));
	if (preserved)
		return CUDA_ERROR_INVALID_VALUE; /* the program does not have the bytes */
	TRY(read_file(fileName, &bytes, &size));
	TRY(library_new(&l, bytes, bytes, size));
	return library_give(library, l, numJitOptions, jitOptions, jitOptionsValues);
}

CUDA_API CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct library *l;
	int err;

	SESSION(s);
	(void)s;
	if (!pMod)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(library, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	err = library_module(l, pMod);
	object_put(l);
	return err;
}

CUDA_API CUresult cuLibraryUnload(CUlibrary library)
{
	struct library *l;
	bool ours;

	SESSION(s);
	(void)s;
	if (!(l = object_get(library, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	if ((ours = object_remove(l->o.id, KIND_LIBRARY)))
		withdraw(l);
	object_put(l);
	return ours ? 0 : CUDA_ERROR_INVALID_HANDLE; /* another thread has unloaded it */
}

CUDA_API CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUmodule m;

	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuLibraryGetModule(&m, library));
	return cuModuleGetGlobal_v2(dptr, bytes, m, name);
}

/* Finds the library's module in the current context or, without one, in any context. */
static int some_module(struct library *l, CUmodule *out)
{
	uint64_t context;
	int err = CUDA_ERROR_NOT_FOUND;

	if (context_current(&context) == 0)
		return library_module(l, out);
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->count && err; i++) {
		if (l->loaded[i].context && !l->loaded[i].loading && context_lives(l->loaded[i].context)) {
			*out = l->loaded[i].module;
			err = 0;
		}
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* As CUDA documents, managed variables exist when the library has been loaded into a
 * context. */
CUDA_API CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct library *l;
	CUmodule m;
	int err;

	SESSION(s);
	(void)s;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(library, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	if ((err = some_module(l, &m)) == 0)
		err = module_managed(m, name, dptr, bytes);
	object_put(l);
	return err;
}

/* Returns what a driver returns if no device has unified function pointers (attribute 129). */
CUDA_API CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	struct library *l;

	SESSION(s);
	(void)s;
	if (!fptr || !symbol)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(library, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	object_put(l);
	return CUDA_ERROR_NOT_FOUND;
}
