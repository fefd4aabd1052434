/* The linker. Objects are stored until cuLinkComplete. If there is only one, and a program can
 * load it, cuLinkComplete returns that. Otherwise it returns an image that contains all of them
 * (gpu/abi/link.go), which the program loads as a module. The worker links the objects when it
 * loads the image. It also does so once in cuLinkComplete, where a program expects the errors
 * and the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct part {
	uint32_t type;
	char name[BSLT_MAX_LINK_NAME];
	char *bytes; /* with a NUL behind them */
	size_t size;
};
struct link {
	struct object o;
	struct part *parts;
	unsigned int count;
	size_t total; /* bytes of all parts */
	char *image;  /* the result of cuLinkComplete, unless that is the only part */
	size_t size;
	unsigned int options;
	CUjit_option *keys; /* a copy */
	void **values;      /* the program's array, which it keeps until cuLinkDestroy */
};

static void link_destroy(struct object *o)
{
	struct link *l = (struct link *)o;

	for (unsigned int i = 0; i < l->count; i++)
		free(l->parts[i].bytes);
	free(l->parts);
	free(l->image);
	free(l->keys);
}

struct link *link_begin(void)
{
	struct link *l = object_new(sizeof *l, KIND_LINK, object_ids(1), 0);

	if (l)
		l->o.destroy = link_destroy;
	return l;
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
	if (!(l = link_begin()))
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->o.context = context;
	if (numOptions) {
		if (!(l->keys = malloc(numOptions * sizeof *l->keys))) {
			object_put(l);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(l->keys, options, numOptions * sizeof *l->keys);
		l->values = optionValues;
		l->options = numOptions;
		jit_logs_begin(numOptions, options, optionValues);
	}
	object_add(l);
	*stateOut = handle_of(l->o.id);
	return 0;
}

int link_add(struct link *l, uint32_t type, const void *data, size_t size, const char *name)
{
	struct part *p;

	if (l->image)
		return CUDA_ERROR_INVALID_VALUE; /* it is complete */
	if (l->count >= BSLT_MAX_LINK_OBJECTS || size > BSLT_MAX_MODULE_IMAGE / 2 - l->total)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!(p = realloc(l->parts, (l->count + 1) * sizeof *p)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->parts = p;
	p += l->count;
	if (!(p->bytes = malloc(size + 1)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(p->bytes, data, size);
	p->bytes[size] = 0;
	p->size = size;
	p->type = type;
	if (name && *name)
		snprintf(p->name, sizeof p->name, "%s", name);
	else
		snprintf(p->name, sizeof p->name, "object %u", l->count);
	l->count++;
	l->total += size;
	return 0;
}

CUDA_API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
				   unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct link *l;
	int err;

	SESSION(s);
	(void)s;
	(void)numOptions, (void)options, (void)optionValues;
	if (!data || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > BSLT_MAX_MODULE_IMAGE)
		return CUDA_ERROR_INVALID_IMAGE;
	if (type < CU_JIT_INPUT_CUBIN || type > CU_JIT_INPUT_LIBRARY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(l = object_get(state, KIND_LINK)))
		return CUDA_ERROR_INVALID_HANDLE;
	err = link_add(l, (uint32_t)type, data, size, name);
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

static char *put(char *at, const void *from, size_t n)
{
	memcpy(at, from, n);
	return at + n;
}

/* Creates the image of all parts. */
static int link_image(struct link *l)
{
	uint32_t head[2] = {BSLT_LINK_MAGIC, BSLT_LINK_VERSION}, tail[4] = {l->count};
	uint64_t size = BSLT_LINK_HEAD_SIZE;
	char *b, *at;

	jit_numbers(l->options, l->keys, l->values, &tail[1], &tail[2]);
	for (unsigned int i = 0; i < l->count; i++)
		size += (BSLT_LINK_OBJECT_SIZE + strlen(l->parts[i].name) + l->parts[i].size + 7) & ~(uint64_t)7;
	if (size > BSLT_MAX_MODULE_IMAGE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!(b = calloc(1, size + 1)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	at = put(b, head, sizeof head);
	at = put(at, &size, sizeof size);
	at = put(at, tail, sizeof tail);
	for (unsigned int i = 0; i < l->count; i++) {
		const struct part *p = &l->parts[i];
		uint32_t words[2] = {p->type, (uint32_t)strlen(p->name)};
		uint64_t bytes = p->size;

		at = put(at, words, sizeof words);
		at = put(at, &bytes, sizeof bytes);
		at = put(at, p->name, words[1]);
		at = put(at, p->bytes, p->size);
		at += -(at - b) & 7;
	}
	l->image = b;
	l->size = size;
	return 0;
}

size_t link_end(struct link *l, void **image)
{
	if (link_image(l) != 0)
		return 0;
	*image = l->image;
	l->image = NULL;
	return l->size;
}

static bool wants_log(const struct link *l)
{
	bool log = false;

	for (unsigned int i = 0; i < l->options; i++)
		log = log || l->keys[i] == CU_JIT_INFO_LOG_BUFFER || l->keys[i] == CU_JIT_ERROR_LOG_BUFFER;
	return log;
}

/* Reports whether the program gets the only part unchanged: it can be loaded as a module, and
 * the options that the program gave when it created the link do not matter. */
static bool passes_through(const struct link *l)
{
	uint32_t level, registers, default_level, no_registers;

	jit_numbers(l->options, l->keys, l->values, &level, &registers);
	jit_numbers(0, NULL, NULL, &default_level, &no_registers);
	return l->count == 1 && l->parts[0].type <= CU_JIT_INPUT_FATBINARY && level == default_level && registers == no_registers;
}

/* Links the parts, or compiles the only one, and discards the result. It exists for the error
 * and the log. */
static int try_load(const struct link *l, const void *image, size_t size)
{
	CUmodule m;

	if (passes_through(l) && !wants_log(l))
		return 0;
	TRY(module_load(image, size, l->options, l->keys, l->values, &m));
	return cuModuleUnload(m);
}

static int link_complete(struct link *l, void **image, size_t *size)
{
	if (l->count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (passes_through(l)) {
		*image = l->parts[0].bytes;
		*size = l->parts[0].size;
	} else {
		if (!l->image)
			TRY(link_image(l));
		*image = l->image;
		*size = l->size;
	}
	return try_load(l, *image, *size);
}

CUDA_API CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	struct link *l;
	void *image;
	size_t size;
	int err;

	SESSION(s);
	(void)s;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(l = object_get(state, KIND_LINK)))
		return CUDA_ERROR_INVALID_HANDLE;
	if ((err = link_complete(l, &image, &size)) == 0) {
		*cubinOut = image; /* valid until cuLinkDestroy */
		if (sizeOut)
			*sizeOut = size + 1;
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
