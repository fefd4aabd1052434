/* Kernels that the device cannot run. Their module can be loaded, as with a driver that
 * compiles a kernel at its first use; using such a kernel is the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* Maximum number of messages, for programs that try such kernels repeatedly. */
#define MOST_LINES 16u

static void report(const struct function_info *f)
{
	static _Atomic unsigned int lines;
	const char *v = getenv("BASALT_VERBOSE");

	log_message(CU_LOG_LEVEL_ERROR, NULL, "kernel %s cannot run on this device: %s", f->name, f->refused);
	if (v && *v && atomic_fetch_add(&lines, 1) < MOST_LINES)
		fprintf(stderr, "basalt: kernel %s cannot run on this device: %s\n", f->name, f->refused);
}

/* Gets the attributes of a function that only FUNC_LOAD returns. They are 0 before. */
static int load(struct session *s, struct function *f)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct module_info info;
	int err = function_load(s, f->o.id, &info);

	if (err == CUDA_ERROR_NOT_SUPPORTED) { /* the device has no more information */
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
	report(&f->info);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
