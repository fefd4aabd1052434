/* Libraries: images that are loaded into a context when it first needs them. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define CONTEXTS 16

struct library {
	struct object o;
	void *image;
	size_t size;
	CUjit_option keys[2]; /* those that change the code, for every load */
	void *values[2];
	unsigned int options;
	pthread_mutex_t lock; /* guards what follows */
	struct {
		uint64_t context;
		CUmodule module;
	} loaded[CONTEXTS];
	uint64_t kernels[256]; /* made by cuLibraryGetKernel, to be removed */
	unsigned int kernel_count;
};

struct kernel {
	struct object o;
	uint64_t library;
	char *name;
};

static void library_destroy(struct object *o)
{
	struct library *l = (struct library *)o;

	free(l->image);
	pthread_mutex_destroy(&l->lock);
}

static void kernel_destroy(struct object *o)
{
	free(((struct kernel *)o)->name);
}

/* The library's module in the current context; loads it the first time. */
static int library_module(struct library *l, unsigned int options, const CUjit_option *keys, void **values, CUmodule *out)
{
	uint64_t context;
	int err = CUDA_ERROR_OUT_OF_MEMORY, place = -1;

	TRY(context_current(&context));
	pthread_mutex_lock(&l->lock);
	for (int i = 0; i < CONTEXTS; i++) {
		void *c;

		if (l->loaded[i].context == context) {
			*out = l->loaded[i].module;
			pthread_mutex_unlock(&l->lock);
			return 0;
		}
		c = l->loaded[i].context ? object_get(handle_of(l->loaded[i].context), KIND_CONTEXT) : NULL;
		if (!c && place < 0)
			place = i;
		object_put(c);
	}
	if (place >= 0 && (err = module_load(l->image, l->size, options, keys, values, out)) == 0) {
		l->loaded[place].context = context;
		l->loaded[place].module = *out;
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

static int module_now(struct library *l, CUmodule *out)
{
	return library_module(l, l->options, l->keys, l->values, out);
}

/* Whether the program wants to be told something of the compilation. */
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

/* The image is compiled when a context first needs it; at once if there is one
 * and the program wants the log, whose buffers are good only during this call. */
static int library_load(CUlibrary *out, const void *code, size_t size, unsigned int n, const CUjit_option *keys, void **values)
{
	struct library *l;
	uint64_t context;
	CUmodule m;
	int err = 0;

	if (size == 0 || size > BSLT_MAX_MODULE_IMAGE)
		return CUDA_ERROR_INVALID_IMAGE;
	if (!(l = object_new(sizeof *l, KIND_LIBRARY, object_ids(1), 0)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&l->lock, NULL);
	l->o.destroy = library_destroy;
	l->size = size;
	keep_options(l, n, keys, values);
	if (!(l->image = malloc(size)))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	else
		memcpy(l->image, code, size);
	if (err == 0 && wants_log(n, keys) && context_current(&context) == 0)
		err = library_module(l, n, keys, values, &m);
	if (err) {
		object_put(l);
		return err;
	}
	object_add(l);
	*out = handle_of(l->o.id);
	return 0;
}

CUDA_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
				    void **jitOptionsValues, unsigned int numJitOptions, int *libraryOptions,
				    void **libraryOptionValues, unsigned int numLibraryOptions)
{
	size_t size;

	SESSION(s);
	(void)s;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions; /* hints */
	if (!library || !code || (numJitOptions && (!jitOptions || !jitOptionsValues)))
		return CUDA_ERROR_INVALID_VALUE;
	size = image_size(&code);
	return library_load(library, code, size, numJitOptions, jitOptions, jitOptionsValues);
}

CUDA_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
					void **jitOptionsValues, unsigned int numJitOptions, int *libraryOptions,
					void **libraryOptionValues, unsigned int numLibraryOptions)
{
	void *bytes;
	size_t size;
	int err;

	SESSION(s);
	(void)s;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	if (!library || !fileName || (numJitOptions && (!jitOptions || !jitOptionsValues)))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(read_file(fileName, &bytes, &size));
	err = library_load(library, bytes, size, numJitOptions, jitOptions, jitOptionsValues);
	free(bytes);
	return err;
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
	err = module_now(l, pMod);
	object_put(l);
	return err;
}

CUDA_API CUresult cuLibraryUnload(CUlibrary library)
{
	struct library *l;

	SESSION(s);
	(void)s;
	if (!(l = object_get(library, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!object_remove(l->o.id, KIND_LIBRARY)) {
		object_put(l);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	for (int i = 0; i < CONTEXTS; i++)
		if (l->loaded[i].context)
			(void)cuModuleUnload(l->loaded[i].module);
	for (unsigned int i = 0; i < l->kernel_count; i++)
		(void)object_remove(l->kernels[i], KIND_KERNEL);
	object_put(l);
	return 0;
}

CUDA_API CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	struct kernel *k = NULL;
	struct library *l;
	CUfunction f;
	CUmodule m;
	int err;

	SESSION(s);
	(void)s;
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(library, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	if ((err = module_now(l, &m)) != 0 || (err = cuModuleGetFunction(&f, m, name)) != 0)
		goto out;
	pthread_mutex_lock(&l->lock);
	err = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < l->kernel_count && err; i++) {
		if ((k = object_get(handle_of(l->kernels[i]), KIND_KERNEL)) && strcmp(k->name, name) == 0) {
			*pKernel = handle_of(k->o.id);
			err = 0;
		}
		object_put(k);
	}
	if (err && l->kernel_count < 256 && (k = object_new(sizeof *k, KIND_KERNEL, object_ids(1), 0)) != NULL) {
		k->o.destroy = kernel_destroy;
		k->library = l->o.id;
		if ((k->name = strdup(name)) != NULL) {
			object_add(k);
			l->kernels[l->kernel_count++] = k->o.id;
			*pKernel = handle_of(k->o.id);
			err = 0;
		} else {
			object_put(k);
		}
	}
	pthread_mutex_unlock(&l->lock);
out:
	object_put(l);
	return err;
}

CUDA_API CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct kernel *k;
	CUmodule m;
	int err;

	SESSION(s);
	(void)s;
	if (!pFunc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(k = object_get(kernel, KIND_KERNEL)))
		return CUDA_ERROR_INVALID_HANDLE;
	if ((err = cuLibraryGetModule(&m, handle_of(k->library))) == 0)
		err = cuModuleGetFunction(pFunc, m, k->name);
	object_put(k);
	return err;
}

CUDA_API CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUmodule m;

	TRY(cuLibraryGetModule(&m, library));
	return cuModuleGetGlobal_v2(dptr, bytes, m, name);
}

CUDA_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	CUmodule m;

	TRY(cuLibraryGetModule(&m, lib));
	return cuModuleGetFunctionCount(count, m);
}

/* A launch may name a kernel of a library instead of a function. */
int function_resolve(CUfunction h, struct function **f)
{
	CUfunction inner;

	if ((*f = object_get(h, KIND_FUNCTION)) != NULL)
		return 0;
	if (cuKernelGetFunction(&inner, (CUkernel)(void *)h) == 0 && (*f = object_get(inner, KIND_FUNCTION)) != NULL)
		return 0;
	return CUDA_ERROR_INVALID_HANDLE;
}
