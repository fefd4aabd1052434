/* Kernels of libraries: names that stand for a function in each context. */
#include <stdlib.h>
#include <string.h>

#include "library.h"

static void kernel_destroy(struct object *o)
{
	free(((struct kernel *)o)->name);
}

/* The library's kernel of that name, which is in its module; called with the lock. */
static int kernel_of(struct library *l, const char *name, CUkernel *out)
{
	struct kernel **more, *k;

	if (l->gone)
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < l->kernel_count; i++) {
		if (strcmp(l->kernels[i]->name, name) == 0) {
			*out = handle_of(l->kernels[i]->o.id);
			return 0;
		}
	}
	if (!(more = realloc(l->kernels, (l->kernel_count + 1) * sizeof *more)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->kernels = more;
	if (!(k = object_new(sizeof *k, KIND_KERNEL, object_ids(1), 0)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	k->o.destroy = kernel_destroy;
	k->library = l->o.id;
	if (!(k->name = strdup(name))) {
		object_put(k);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	object_get_more(k);
	object_add(k);
	more[l->kernel_count++] = k;
	*out = handle_of(k->o.id);
	return 0;
}

void kernels_remove(struct library *l)
{
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->kernel_count; i++)
		(void)object_remove(l->kernels[i]->o.id, KIND_KERNEL);
	pthread_mutex_unlock(&l->lock);
}

CUDA_API CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
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
	if ((err = library_module(l, &m)) == 0 && (err = cuModuleGetFunction(&f, m, name)) == 0) {
		pthread_mutex_lock(&l->lock);
		err = kernel_of(l, name, pKernel);
		pthread_mutex_unlock(&l->lock);
	}
	object_put(l);
	return err;
}

/* At most n of the library's kernels, in the order of its module. */
static int enumerate(struct library *l, CUkernel *kernels, unsigned int n)
{
	struct module *object;
	CUmodule m;
	int err = 0;

	TRY(library_module(l, &m));
	if (!(object = object_get(m, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; err == 0 && i < n && i < object->info.function_count; i++)
		err = kernel_of(l, object->names[i], &kernels[i]);
	pthread_mutex_unlock(&l->lock);
	object_put(object);
	return err;
}

CUDA_API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct library *l;
	int err;

	SESSION(s);
	(void)s;
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(lib, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	err = enumerate(l, kernels, numKernels);
	object_put(l);
	return err;
}

CUDA_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	CUmodule m;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuLibraryGetModule(&m, lib));
	return cuModuleGetFunctionCount(count, m);
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
