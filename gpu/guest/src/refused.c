/* Kernels that the device cannot run. They are in their module, as on a card that
 * compiles a kernel when it is first used; that use is the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* A program that tries a kernel again and again is told so often. */
#define MOST_LINES 16u

static void say(const struct function_info *f)
{
	static _Atomic unsigned int lines;
	const char *v = getenv("BASALT_VERBOSE");

	log_message(CU_LOG_LEVEL_ERROR, NULL, "kernel %s cannot run on this device: %s", f->name, f->refused);
	if (v && *v && atomic_fetch_add(&lines, 1) < MOST_LINES)
		fprintf(stderr, "basalt: kernel %s cannot run on this device: %s\n", f->name, f->refused);
}

/* What only FUNC_LOAD tells of a function: until then its attributes are 0. */
static int load(struct session *s, struct function *f)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct module_info info;
	int err = function_load(s, f->o.id, &info);

	if (err == CUDA_ERROR_NOT_SUPPORTED) { /* a device that has no more to tell */
		atomic_store(&f->loaded, true);
		return 0;
	}
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	if (!atomic_load(&f->loaded) && info.function_count == 1) {
		memcpy(f->info.attributes, info.functions[0].attributes, sizeof f->info.attributes);
		f->info.refused = info.functions[0].refused;
		info.functions[0].refused = NULL;
		atomic_store(&f->loaded, true);
	}
	pthread_mutex_unlock(&lock);
	free_module_info(&info);
	return atomic_load(&f->loaded) ? 0 : CUDA_ERROR_UNKNOWN;
}

int function_usable(struct function *f)
{
	SESSION(s);
	if (!atomic_load(&f->loaded))
		TRY(load(s, f));
	if (!f->info.refused)
		return 0;
	say(&f->info);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
