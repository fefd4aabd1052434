/* Modules: loading them, and finding their functions and variables. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query.h"
#include "reference.h"
#include "state.h"

#define INFO_SIZE (64u << 10)
#define FUNCTION_LIMIT (1u << 20)

_Static_assert(offsetof(struct bslt_module_load, out_zero) - offsetof(struct bslt_module_load, image_off) ==
		       offsetof(struct bslt_image_info, out_zero), "the same members in the same order");

struct jit {
	uint32_t opt_level, max_registers;
	int info, info_size, error, error_size, wall_time; /* indices, or -1 */
};

static struct jit jit_options(unsigned int n, const CUjit_option *keys, void **values)
{
	struct jit j = {4, 0, -1, -1, -1, -1, -1};

	for (unsigned int i = 0; i < n; i++) {
		switch (keys[i]) {
		case CU_JIT_MAX_REGISTERS: j.max_registers = (uint32_t)(uintptr_t)values[i]; break;
		case CU_JIT_OPTIMIZATION_LEVEL: j.opt_level = (uint32_t)(uintptr_t)values[i]; break;
		case CU_JIT_INFO_LOG_BUFFER: j.info = (int)i; break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: j.info_size = (int)i; break;
		case CU_JIT_ERROR_LOG_BUFFER: j.error = (int)i; break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: j.error_size = (int)i; break;
		case CU_JIT_WALL_TIME: j.wall_time = (int)i; break;
		default: break; /* hints that do not change results */
		}
	}
	return j;
}

void jit_numbers(unsigned int n, const CUjit_option *keys, void **values, uint32_t *opt_level, uint32_t *max_registers)
{
	struct jit j = jit_options(n, keys, values);

	*opt_level = j.opt_level;
	*max_registers = j.max_registers;
}

void jit_logs_begin(unsigned int n, const CUjit_option *keys, void **values)
{
	struct jit j = jit_options(n, keys, values);
	const int buffers[][2] = {{j.info, j.info_size}, {j.error, j.error_size}};

	for (int i = 0; i < 2; i++)
		if (buffers[i][0] >= 0 && buffers[i][1] >= 0 && values[buffers[i][0]] && (unsigned int)(uintptr_t)values[buffers[i][1]])
			*(char *)values[buffers[i][0]] = 0;
}

/* Fills a log buffer of the program, and stores the number of bytes used. */
static void give_log(int buffer, int size, void **values, const char *text)
{
	size_t room, n;

	if (buffer < 0 || size < 0 || !values[buffer])
		return;
	room = (size_t)(unsigned int)(uintptr_t)values[size];
	if (room == 0)
		return;
	n = text ? strlen(text) : 0;
	if (n > room - 1)
		n = room - 1;
	memcpy(values[buffer], text ? text : "", n);
	((char *)values[buffer])[n] = 0;
	values[size] = (void *)(n ? n + 1 : 0);
}

/* Sets the position of the record that a command writes: out_off, out_len and out_region of its
 * arguments. */
static void place_record(void *args, const struct piece *out)
{
	struct bslt_func_load a = {.out_off = out->off, .out_len = out->len, .out_region = out->number};

	memcpy(args, &a.out_off, sizeof a - offsetof(struct bslt_func_load, out_off));
}

/* Makes a call with a buffer for a record, whose position is at an offset of the arguments. It
 * reads the record into info, even if the command fails. */
static int call_with_record(struct session *s, uint16_t op, void *args, uint32_t args_len, size_t offset, struct module_info *info)
{
	struct piece out;
	struct answer r = {0, 0, 0};
	uint64_t room = INFO_SIZE;

	for (int attempt = 0; attempt < 3; attempt++) {
		if ((r.result = piece_get(s, room, &out)) != 0)
			break;
		memset(out.bytes, 0, 8); /* so that a failure without a record does not return an old one */
		place_record((uint8_t *)args + offset, &out);
		r = call(s, op, args, args_len);
		if (r.result == RES_INVALID_VALUE && r.value0 > out.len && r.value0 <= BSLT_MAX_MODULE_IMAGE) {
			room = r.value0;
			piece_put(s, &out);
			continue;
		}
		uint8_t *copy = private_copy(&out, out.len);

		if (!copy)
			r.result = RES_OUT_OF_MEMORY;
		else if (decode_module_info(copy, out.len, info) != 0 && r.result == 0)
			r.result = RES_UNKNOWN;
		free(copy);
		piece_put(s, &out);
		break;
	}
	return r.result;
}

/* Sends the image with a command whose arguments have the members of bslt_image_info at an
 * offset. It fills info even if a load fails. */
static int send_image(struct session *s, uint16_t op, void *args, uint32_t args_len, size_t offset, const void *image, size_t size,
		      struct module_info *info)
{
	struct bslt_image_info a = {0};
	struct piece in;
	int err = piece_get(s, size, &in);

	if (err)
		return err;
	memcpy(in.bytes, image, size);
	a.image_off = in.off;
	a.image_len = size;
	a.image_region = in.number;
	memcpy((uint8_t *)args + offset, &a, sizeof a);
	err = call_with_record(s, op, args, args_len, offset + offsetof(struct bslt_image_info, out_off), info);
	piece_put(s, &in);
	return err;
}

int function_load(struct session *s, uint64_t function, struct module_info *info)
{
	struct bslt_func_load a = {.function = function};

	return call_with_record(s, BSLT_OP_FUNC_LOAD, &a, sizeof a, offsetof(struct bslt_func_load, out_off), info);
}

int image_read(const void *image, size_t size, struct module_info *info)
{
	struct bslt_image_info a;

	SESSION(s);
	return send_image(s, BSLT_OP_IMAGE_INFO, &a, sizeof a, 0, image, size, info);
}

static void module_destroy(struct object *o)
{
	struct module *m = (struct module *)o;

	for (uint32_t i = 0; m->names && i < m->info.function_count; i++)
		free(m->names[i]);
	free(m->names);
	free_module_info(&m->info);
}

static void function_destroy(struct object *o)
{
	struct function *f = (struct function *)o;

	free(f->info.name);
	free(f->info.params);
	free(f->state);
	free(f->info.refused);
}

/* Creates an object for each function, with the data of the record. */
static int make_functions(struct module *m)
{
	struct function **made = calloc(m->info.function_count + 1, sizeof *made);

	m->names = calloc(m->info.function_count + 1, sizeof *m->names);
	if (!m->names || !made) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (uint32_t i = 0; i < m->info.function_count; i++) {
		struct function_info *info = &m->info.functions[i];
		struct function *f = object_new(sizeof *f, KIND_FUNCTION, m->first_function + i, m->o.context);

		m->names[i] = strdup(info->name);
		if (!f || !m->names[i]) {
			object_put(f);
			for (uint32_t k = 0; k < i; k++)
				object_put(made[k]);
			free(made);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		f->o.destroy = function_destroy;
		f->module = m->o.id;
		f->info = *info;
		f->loaded = !m->lazy || info->refused || info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] != 0;
		*info = (struct function_info){0};
		for (uint32_t k = 0; k < f->info.param_count; k++) {
			const struct param_info *p = &f->info.params[k];

			if (p->size > BSLT_MAX_PARAM_BYTES || p->offset > BSLT_MAX_PARAM_BYTES - p->size)
				f->param_bytes = UINT32_MAX; /* cannot be launched */
			else if (f->param_bytes < p->offset + p->size)
				f->param_bytes = p->offset + p->size;
		}
		made[i] = f;
	}
	for (uint32_t i = 0; i < m->info.function_count; i++)
		object_add(made[i]);
	free(made);
	return 0;
}

/* Reports whether a variable is managed, so that it is recorded as host memory. */
static bool is_managed(const struct global_info *g)
{
	return host_range(g->address, 1);
}

static void drop_globals(const struct module *m, uint32_t n)
{
	struct range r;

	for (uint32_t i = 0; i < n; i++)
		if (!is_managed(&m->info.globals[i]))
			(void)range_take(SPACE_DEVICE, m->info.globals[i].address, &r);
}

/* Records the module's variables as device memory. */
static int add_globals(const struct module *m)
{
	for (uint32_t i = 0; i < m->info.global_count; i++) {
		const struct global_info *g = &m->info.globals[i];
		struct range r = {.address = g->address, .size = g->size, .context = m->o.context};

		if (g->size && !is_managed(g) && range_add(SPACE_DEVICE, &r) != 0) {
			drop_globals(m, i);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	return 0;
}

/* Adds the module's functions and variables to the tables, or nothing if that fails. */
static int module_enter(struct module *m)
{
	int err;

	TRY(add_globals(m));
	if ((err = make_functions(m)) != 0)
		drop_globals(m, m->info.global_count);
	return err;
}

static int unload(struct session *s, const struct module *m)
{
	struct bslt_module_unload a = {m->o.id};
	int err = call(s, BSLT_OP_MODULE_UNLOAD, &a, sizeof a).result;

	if (m->managed)
		(void)managed_variables_free(s, m->managed);
	return err;
}

/* Returns the size of all managed variables of a module. */
static uint64_t managed_size(const struct module_info *info)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < info->global_count; i++) {
		uint64_t size = info->globals[i].size;

		if (size > BSLT_MAX_REGION_SIZE || n > BSLT_MAX_REGION_SIZE)
			return UINT64_MAX;
		n = (n + size + BSLT_MANAGED_ALIGN - 1) & ~(uint64_t)(BSLT_MANAGED_ALIGN - 1);
	}
	return n;
}

/* Repeats the load, with memory for the managed variables in m->info. */
static int load_managed(struct session *s, struct module *m, const struct bslt_module_load *load, const void *image, size_t size,
			bool own, uint64_t *address)
{
	struct bslt_module_load_managed a = {.ctx = load->ctx, .module = load->module, .first_function = load->first_function,
					     .opt_level = load->opt_level, .max_registers = load->max_registers};
	int err;

	a.managed_len = managed_size(&m->info);
	a.fresh = *address == 0;
	if (a.fresh)
		TRY(managed_variables_allocate(s, own ? load->ctx : 0, a.managed_len, address));
	a.managed = *address;
	free_module_info(&m->info);
	err = send_image(s, BSLT_OP_MODULE_LOAD_MANAGED, &a, sizeof a, offsetof(struct bslt_module_load_managed, image_off), image, size,
			 &m->info);
	if (err && a.fresh) {
		(void)managed_variables_free(s, *address);
		*address = 0;
	}
	return err;
}

/* Loads the module in the worker, and a second time if it has managed variables. */
static int load(struct session *s, struct module *m, struct bslt_module_load *a, const void *image, size_t size,
		struct managed_variables *shared)
{
	int err = send_image(s, BSLT_OP_MODULE_LOAD, a, sizeof *a, offsetof(struct bslt_module_load, image_off), image, size, &m->info);

	if (err != CUDA_ERROR_NOT_SUPPORTED || m->info.global_count == 0)
		return err;
	if (!shared)
		return load_managed(s, m, a, image, size, true, &m->managed);
	pthread_mutex_lock(&shared->lock);
	err = load_managed(s, m, a, image, size, false, &shared->address);
	pthread_mutex_unlock(&shared->lock);
	return err;
}

int module_load_into(uint64_t context, const void *image, size_t size, unsigned int options, const CUjit_option *keys,
		     void **values, struct managed_variables *shared, CUmodule *out)
{
	struct jit jit = jit_options(options, keys, values);
	struct bslt_module_load a = {.ctx = context, .opt_level = jit.opt_level, .max_registers = jit.max_registers};
	uint64_t start = now_nanos();
	struct module *m;
	int err;

	SESSION(s);
	if (size == 0 || size > BSLT_MAX_MODULE_IMAGE)
		return CUDA_ERROR_INVALID_IMAGE;
	output_show(s, context);
	a.module = object_ids(1);
	a.first_function = object_ids(FUNCTION_LIMIT); /* the number of functions is not known yet */
	if (!(m = object_new(sizeof *m, KIND_MODULE, a.module, a.ctx)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->o.destroy = module_destroy;
	m->first_function = a.first_function;
	m->lazy = worker_minor(s) >= 6;
	if (m->lazy)
		a.opt_level |= BSLT_LOAD_LAZY;
	err = load(s, m, &a, image, size, shared);
	give_log(jit.info, jit.info_size, values, m->info.info_log);
	give_log(jit.error, jit.error_size, values, m->info.error_log);
	if (jit.wall_time >= 0) {
		float millis = (float)(now_nanos() - start) / 1e6f;

		memcpy(&values[jit.wall_time], &millis, sizeof millis);
	}
	if (err == 0 && (err = module_enter(m)) != 0)
		(void)unload(s, m);
	if (err) {
		object_put(m);
		return err;
	}
	object_add(m);
	*out = handle_of(a.module);
	return 0;
}

int module_load(const void *image, size_t size, unsigned int options, const CUjit_option *keys, void **values, CUmodule *out)
{
	uint64_t context;

	TRY(context_current(&context));
	return module_load_into(context, image, size, options, keys, values, NULL, out);
}

CUDA_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
				     void **optionValues)
{
	void *made;
	size_t size;
	int err;

	if (!module || !image || (numOptions && (!options || !optionValues)))
		return CUDA_ERROR_INVALID_VALUE;
	size = image_size(&image, &made);
	err = module_load(image, size, numOptions, options, optionValues, module);
	free(made);
	return err;
}

CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUDA_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

int read_file(const char *name, void **bytes, size_t *size)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC), err = CUDA_ERROR_FILE_NOT_FOUND;
	off_t end;

	if (fd < 0)
		return err;
	/* The size is valid for files only. A folder may have one too, but cannot be read. */
	end = lseek(fd, 0, SEEK_END);
	if (end > 0 && (uint64_t)end <= BSLT_MAX_MODULE_IMAGE && lseek(fd, 0, SEEK_SET) == 0) {
		size_t n = (size_t)end, have = 0;
		char *b = malloc(n + 1);
		ssize_t k = 1;

		while (b && have < n && (k = read(fd, b + have, n - have)) > 0)
			have += (size_t)k;
		if (b && have == n) {
			b[n] = 0;
			*bytes = b;
			*size = n;
			err = 0;
		} else {
			free(b);
		}
	}
	close(fd);
	return err;
}

CUDA_API CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	void *bytes;
	size_t size;
	int err;

	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(read_file(fname, &bytes, &size));
	err = module_load(bytes, size, 0, NULL, NULL, module);
	free(bytes);
	return err;
}

CUDA_API CUresult cuModuleUnload(CUmodule hmod)
{
	struct module *m;
	int err;

	SESSION(s);
	if (!(m = object_get(hmod, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!object_remove(m->o.id, KIND_MODULE)) {
		object_put(m);
		return CUDA_ERROR_INVALID_HANDLE; /* another thread has unloaded it */
	}
	output_show(s, m->o.context);
	for (uint32_t i = 0; i < m->info.function_count; i++)
		(void)object_remove(m->first_function + i, KIND_FUNCTION);
	drop_globals(m, m->info.global_count);
	references_end(m->o.id);
	err = unload(s, m);
	object_put(m);
	return err;
}

CUDA_API CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct module *m;
	int err = CUDA_ERROR_NOT_FOUND;

	SESSION(s);
	(void)s;
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(m = object_get(hmod, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; i < m->info.function_count; i++) {
		if (strcmp(m->names[i], name) == 0) {
			*hfunc = handle_of(m->first_function + i);
			err = 0;
			break;
		}
	}
	object_put(m);
	return err;
}

CUDA_API CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct module *m;

	SESSION(s);
	(void)s;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(m = object_get(mod, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = m->info.function_count;
	object_put(m);
	return 0;
}

CUDA_API CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct module *m;

	SESSION(s);
	(void)s;
	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(m = object_get(mod, KIND_MODULE)))
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; i < numFunctions && i < m->info.function_count; i++)
		functions[i] = handle_of(m->first_function + i);
	object_put(m);
	return 0;
}

static int find_global(CUmodule h, const char *name, bool managed, CUdeviceptr *address, size_t *bytes)
{
	struct module *m = object_get(h, KIND_MODULE);
	int err = CUDA_ERROR_NOT_FOUND;

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; i < m->info.global_count; i++) {
		const struct global_info *g = &m->info.globals[i];

		if (strcmp(g->name, name) != 0 || (managed && !is_managed(g)))
			continue;
		if (address)
			*address = g->address;
		if (bytes)
			*bytes = g->size;
		err = 0;
		break;
	}
	object_put(m);
	return err;
}

CUDA_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	SESSION(s);
	(void)s;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return find_global(hmod, name, false, dptr, bytes);
}

int module_managed(CUmodule h, const char *name, CUdeviceptr *address, size_t *bytes)
{
	return find_global(h, name, true, address, bytes);
}
