/* The linker as programs like numba use it: one PTX goes in, and what comes
 * out is loaded as a module. The worker compiles it then, and before that once
 * more at cuLinkComplete if the program wants the log. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct link {
	struct object o;
	char *image;
	size_t size;
	unsigned int options;
	CUjit_option *keys; /* ours */
	void **values;      /* the program's: it keeps them until cuLinkDestroy */
};

static void link_destroy(struct object *o)
{
	free(((struct link *)o)->image);
	free(((struct link *)o)->keys);
}

CUDA_API CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	struct link *l;
	uint64_t context;

	SESSION(s);
	(void)s;
	if (!stateOut || (numOptions && (!options || !optionValues)))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(context_current(&context));
	if (!(l = object_new(sizeof *l, KIND_LINK, object_ids(1), context)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->o.destroy = link_destroy;
	if (numOptions) {
		if (!(l->keys = malloc(numOptions * sizeof *l->keys))) {
			object_put(l);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(l->keys, options, numOptions * sizeof *l->keys);
		l->values = optionValues;
		l->options = numOptions;
	}
	object_add(l);
	*stateOut = handle_of(l->o.id);
	return 0;
}

CUDA_API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
				   unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct link *l;
	int err = 0;

	SESSION(s);
	(void)s;
	(void)name, (void)numOptions, (void)options, (void)optionValues;
	if (!data || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > BSLT_MAX_MODULE_IMAGE)
		return CUDA_ERROR_INVALID_IMAGE;
	if (type < CU_JIT_INPUT_CUBIN || type > CU_JIT_INPUT_FATBINARY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(l = object_get(state, KIND_LINK)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (l->image)
		err = CUDA_ERROR_NOT_SUPPORTED; /* linking two needs a real linker */
	else if (!(l->image = malloc(size + 1)))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (!err) {
		memcpy(l->image, data, size);
		l->image[size] = 0;
		l->size = size;
	}
	object_put(l);
	return err;
}

CUDA_API CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned int numOptions,
				   CUjit_option *options, void **optionValues)
{
	void *bytes;
	size_t size;
	int err;

	SESSION(s);
	(void)s;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(read_file(path, &bytes, &size));
	err = cuLinkAddData_v2(state, type, bytes, size, path, numOptions, options, optionValues);
	free(bytes);
	return err;
}

/* Compiles and throws away: for the log, and for the error in its place. */
static int try_load(const struct link *l)
{
	bool log = false;
	CUmodule m;

	for (unsigned int i = 0; i < l->options; i++)
		log = log || l->keys[i] == CU_JIT_INFO_LOG_BUFFER || l->keys[i] == CU_JIT_ERROR_LOG_BUFFER;
	if (!log)
		return 0;
	TRY(module_load(l->image, l->size, l->options, l->keys, l->values, &m));
	return cuModuleUnload(m);
}

CUDA_API CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	struct link *l;
	int err = 0;

	SESSION(s);
	(void)s;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(state, KIND_LINK)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!l->image) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if ((err = try_load(l)) == 0) {
		*cubinOut = l->image; /* good until cuLinkDestroy */
		if (sizeOut)
			*sizeOut = l->size + 1;
	}
	object_put(l);
	return err;
}

CUDA_API CUresult cuLinkDestroy(CUlinkState state)
{
	SESSION(s);
	(void)s;
	return object_remove((uintptr_t)state, KIND_LINK) ? 0 : CUDA_ERROR_INVALID_HANDLE;
}
