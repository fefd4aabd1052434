/* Libraries: images that are loaded into a context when it first needs them. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define CONTEXTS 16

struct library {
	struct object o;
	void *image;
	size_t size;
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

CUDA_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
				    void **jitOptionsValues, unsigned int numJitOptions, int *libraryOptions,
				    void **libraryOptionValues, unsigned int numLibraryOptions)
{
	struct library *l;

	SESSION(s);
	(void)s;
	(void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_new(sizeof *l, KIND_LIBRARY, object_ids(1), 0)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&l->lock, NULL);
	l->o.destroy = library_destroy;
	l->size = image_size(&code);
	if (l->size == 0 || l->size > BSLT_MAX_MODULE_IMAGE || !(l->image = malloc(l->size))) {
		int err = l->size == 0 || l->size > BSLT_MAX_MODULE_IMAGE ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_OUT_OF_MEMORY;

		object_put(l);
		return err;
	}
	memcpy(l->image, code, l->size);
	object_add(l);
	*library = handle_of(l->o.id);
	return 0;
}

/* The library's module in the current context; loads it the first time. */
static int library_module(struct library *l, CUmodule *out)
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
	if (place >= 0 && (err = module_load(l->image, l->size, 0, NULL, NULL, out)) == 0) {
		l->loaded[place].context = context;
		l->loaded[place].module = *out;
	}
	pthread_mutex_unlock(&l->lock);
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
	err = library_module(l, pMod);
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
	if ((err = library_module(l, &m)) != 0 || (err = cuModuleGetFunction(&f, m, name)) != 0)
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
