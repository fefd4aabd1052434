/* Kernels of libraries: each stands for a function in every context. */
#include <stdlib.h>
#include <string.h>

#include "library.h"

static void kernel_destroy(struct object *o)
{
	free(((struct kernel *)o)->name);
}

/* Finds or creates the library's kernel of a name that its module has. The caller holds the
 * lock. */
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

/* Returns the functions of the image, which the worker is asked for once. If several threads
 * ask at the same time, the first answer is stored. */
static int image_about(struct library *l, const struct module_info **about)
{
	struct module_info found = {0};
	bool have;

	pthread_mutex_lock(&l->lock);
	have = l->read;
	pthread_mutex_unlock(&l->lock);
	if (!have) {
		TRY(image_read(l->image, l->size, &found));
		pthread_mutex_lock(&l->lock);
		if (!l->read) {
			l->about = found;
			l->read = true;
			found = (struct module_info){0};
		}
		pthread_mutex_unlock(&l->lock);
		free_module_info(&found);
	}
	*about = &l->about;
	return 0;
}

/* The names of a library's kernels: from its module in the current context or, if there is no
 * current context, from its image. */
struct names {
	uint32_t count;
	struct module *module; /* the caller calls object_put; NULL: the names are the image's */
	const struct module_info *about;
};

static const char *name_at(const struct names *n, uint32_t i)
{
	return n->module ? n->module->names[i] : n->about->functions[i].name;
}

static int names_get(struct library *l, struct names *n)
{
	uint64_t context;
	int none = context_current(&context), err;
	CUmodule m;

	*n = (struct names){0};
	if (none) {
		if ((err = image_about(l, &n->about)) == CUDA_ERROR_NOT_SUPPORTED)
			return none; /* the worker is too old: the names are only known in a context */
		n->count = err ? 0 : n->about->function_count;
		return err;
	}
	TRY(library_module(l, &m));
	if (!(n->module = object_get(m, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	n->count = n->module->info.function_count;
	return 0;
}

/* Returns at most max of the library's kernels, or only the one named name if that is not
 * NULL. *count becomes their number. */
static int kernels_get(CUlibrary h, const char *name, CUkernel *kernels, unsigned int max, unsigned int *count)
{
	unsigned int found = 0;
	struct library *l;
	struct names n;
	int err;

	SESSION(s);
	(void)s;
	if (!(l = object_get(h, KIND_LIBRARY)))
		return CUDA_ERROR_INVALID_HANDLE;
	err = names_get(l, &n);
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; err == 0 && i < n.count && found < max; i++)
		if (!name || strcmp(name_at(&n, i), name) == 0)
			err = kernel_of(l, name_at(&n, i), &kernels[found++]);
	pthread_mutex_unlock(&l->lock);
	*count = name ? found : n.count;
	object_put(n.module);
	object_put(l);
	return err;
}

CUDA_API CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	unsigned int found;
	CUkernel k;

	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(kernels_get(library, name, &k, 1, &found));
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	*pKernel = k;
	return 0;
}

CUDA_API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	unsigned int count;

	return kernels ? kernels_get(lib, NULL, kernels, numKernels, &count) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	unsigned int n;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(kernels_get(lib, NULL, NULL, 0, &n));
	*count = n;
	return 0;
}

/* The name is valid as long as the library. */
CUDA_API CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	struct kernel *k;

	SESSION(s);
	(void)s;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(k = object_get(hfunc, KIND_KERNEL)))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = k->name;
	object_put(k);
	return 0;
}

CUDA_API CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	struct kernel *k;

	SESSION(s);
	(void)s;
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(k = object_get(kernel, KIND_KERNEL)))
		return CUDA_ERROR_INVALID_HANDLE;
	*pLib = handle_of(k->library);
	object_put(k);
	return 0;
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

/* Finds a kernel's parameter in the image. */
static int image_param(const struct kernel *k, size_t index, size_t *offset, size_t *size)
{
	struct library *l = object_get(handle_of(k->library), KIND_LIBRARY);
	const struct module_info *about;
	int err = l ? image_about(l, &about) : CUDA_ERROR_INVALID_HANDLE;
	uint32_t i = 0;

	if (err == 0) {
		while (i < about->function_count && strcmp(about->functions[i].name, k->name) != 0)
			i++;
		err = i < about->function_count ? param_info_of(&about->functions[i], index, offset, size) : CUDA_ERROR_NOT_FOUND;
	}
	object_put(l);
	return err;
}

CUDA_API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	uint64_t context;
	struct kernel *k;
	int none, err;

	SESSION(s);
	(void)s;
	if (!paramOffset)
		return CUDA_ERROR_INVALID_VALUE;
	if ((none = context_current(&context)) == 0)
		return cuFuncGetParamInfo((CUfunction)(void *)kernel, paramIndex, paramOffset, paramSize);
	if (!(k = object_get(kernel, KIND_KERNEL)))
		return CUDA_ERROR_INVALID_HANDLE;
	err = image_param(k, paramIndex, paramOffset, paramSize);
	object_put(k);
	return err == CUDA_ERROR_NOT_SUPPORTED ? none : err;
}

/* Finds the function of a launch, which may also be the kernel of a library. */
int function_resolve(CUfunction h, struct function **f)
{
	CUfunction inner;

	if ((*f = object_get(h, KIND_FUNCTION)) != NULL)
		return 0;
	TRY(cuKernelGetFunction(&inner, (CUkernel)(void *)h));
	return (*f = object_get(inner, KIND_FUNCTION)) ? 0 : CUDA_ERROR_INVALID_HANDLE;
}
