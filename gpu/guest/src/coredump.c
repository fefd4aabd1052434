/* Settings of dumps of the device's state (CUDA driver API, "Coredump Attributes Control
 * API"). A vGPU does not write such dumps: settings that would enable them are not permitted.
 * The others are stored, for the program and for each context. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

enum { NOT_SET, KEPT };
#define TEXT sizeof(((struct coredump *)NULL)->file)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coredump program; /* guarded by lock, like those of contexts */
static char pipe_name[TEXT];	/* guarded by lock; for the program only; "" is the default */

static const struct setting {
	const char *variable; /* environment variable, which always has precedence */
	size_t size;
} settings[] = {
	[CU_COREDUMP_ENABLE_ON_EXCEPTION] = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", sizeof(bool)},
	[CU_COREDUMP_TRIGGER_HOST] = {"CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", sizeof(bool)},
	[CU_COREDUMP_LIGHTWEIGHT] = {"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", sizeof(bool)},
	[CU_COREDUMP_ENABLE_USER_TRIGGER] = {"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", sizeof(bool)},
	[CU_COREDUMP_FILE] = {"CUDA_COREDUMP_FILE", TEXT},
	[CU_COREDUMP_PIPE] = {"CUDA_COREDUMP_PIPE", TEXT},
	[CU_COREDUMP_GENERATION_FLAGS] = {NULL, sizeof(int)},
};

static const struct setting *setting_of(int attrib)
{
	return attrib > 0 && (size_t)attrib < sizeof settings / sizeof *settings ? &settings[attrib] : NULL;
}

/* Returns the value of the setting's environment variable, or NULL. */
static const char *from_environment(int attrib)
{
	const char *v = settings[attrib].variable ? getenv(settings[attrib].variable) : NULL;

	return v && *v ? v : NULL;
}

static int text_out(const char *text, const char *prefix, char *out, size_t room)
{
	char name[TEXT], host[256] = "";
	int n;

	if (!text || !*text) {
		(void)gethostname(host, sizeof host - 1);
		n = snprintf(name, sizeof name, "%s.%s.%d", prefix, host, (int)getpid());
		text = name;
	} else {
		n = (int)strnlen(text, TEXT - 1);
	}
	if (n < 0 || (size_t)n >= room)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(out, text, (size_t)n);
	out[n] = 0;
	return 0;
}

/* Returns the setting of a context, or of the program if c is NULL. The caller holds lock. */
static int get(const struct coredump *c, int attrib, void *value, size_t room)
{
	const struct coredump *host = c && c->trigger_host.state ? c : &program, *light = c && c->lightweight.state ? c : &program;
	const struct coredump *flags = c && c->flags.state ? c : &program, *file = c && *c->file ? c : &program;
	const char *env = from_environment(attrib);
	bool yes = false; /* dumps are never written */
	int number;

	switch (attrib) {
	case CU_COREDUMP_FILE: return text_out(env ? env : file->file, "core.cuda", value, room);
	case CU_COREDUMP_PIPE: return text_out(env ? env : pipe_name, "corepipe.cuda", value, room);
	case CU_COREDUMP_GENERATION_FLAGS:
		number = flags->flags.state ? flags->flags.value : CU_COREDUMP_DEFAULT_FLAGS;
		memcpy(value, &number, sizeof number);
		return 0;
	case CU_COREDUMP_TRIGGER_HOST: yes = env ? *env != '0' : !host->trigger_host.state || host->trigger_host.value; break;
	case CU_COREDUMP_LIGHTWEIGHT: yes = env ? *env != '0' : light->lightweight.value; break;
	}
	memcpy(value, &yes, sizeof yes);
	return 0;
}

static int set_number(struct coredump *c, int attrib, int number)
{
	const int known = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT | CU_COREDUMP_SKIP_CONSTBANK_MEMORY |
			  CU_COREDUMP_GZIP_COMPRESS | CU_COREDUMP_FAULTED_CONTEXTS_ONLY;

	switch (attrib) {
	case CU_COREDUMP_GENERATION_FLAGS:
		if (number & ~known)
			return CUDA_ERROR_INVALID_VALUE;
		c->flags.state = KEPT, c->flags.value = number;
		return 0;
	case CU_COREDUMP_TRIGGER_HOST: c->trigger_host.state = KEPT, c->trigger_host.value = number; return 0;
	case CU_COREDUMP_LIGHTWEIGHT: c->lightweight.state = KEPT, c->lightweight.value = number; return 0;
	}
	return number ? CUDA_ERROR_NOT_PERMITTED : 0; /* the setting would enable dumps */
}

/* Stores a setting. The caller holds lock. */
static int set(struct coredump *c, int attrib, const void *value, size_t size)
{
	char *text = attrib == CU_COREDUMP_FILE ? c->file : attrib == CU_COREDUMP_PIPE ? pipe_name : NULL;
	bool yes;
	int number;

	if (text) {
		size_t n = strnlen(value, size);

		if (n >= TEXT)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(text, value, n);
		text[n] = 0;
		return 0;
	}
	if (attrib == CU_COREDUMP_GENERATION_FLAGS) {
		memcpy(&number, value, sizeof number);
	} else {
		memcpy(&yes, value, sizeof yes);
		number = yes;
	}
	return set_number(c, attrib, number);
}

/* Checks the arguments of a call. Without a value the call only queries the setting's size,
 * and *done is set. */
static int enter(int attrib, const void *value, size_t *size, bool *done)
{
	const struct setting *s = setting_of(attrib);

	if (!s || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if ((*done = value == NULL))
		*size = s->size;
	return 0;
}

/* Reads a setting of a context, or of the program if c is NULL. */
static int read_setting(const struct coredump *c, int attrib, void *value, size_t *size)
{
	bool done, text = attrib == CU_COREDUMP_FILE || attrib == CU_COREDUMP_PIPE;
	int err;

	TRY(enter(attrib, value, size, &done));
	if (done)
		return 0;
	if (!text && *size < settings[attrib].size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	err = get(c, attrib, value, *size);
	pthread_mutex_unlock(&lock);
	return err;
}

static int change(struct coredump *c, int attrib, const void *value, size_t *size)
{
	bool done, text = attrib == CU_COREDUMP_FILE || attrib == CU_COREDUMP_PIPE;
	int err;

	TRY(enter(attrib, value, size, &done));
	if (done)
		return 0;
	if (text ? *size == 0 : *size < settings[attrib].size)
		return CUDA_ERROR_INVALID_VALUE;
	if (from_environment(attrib))
		return CUDA_ERROR_NOT_PERMITTED;
	pthread_mutex_lock(&lock);
	err = set(c, attrib, value, *size);
	pthread_mutex_unlock(&lock);
	return err;
}

CUDA_API CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct context *c;
	int err;

	SESSION(s);
	(void)s;
	TRY(context_object(&c));
	err = read_setting(&c->coredump, attrib, value, size);
	object_put(c);
	return err;
}

/* The pipe is a setting of the program only, not of contexts. */
CUDA_API CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct context *c;
	int err;

	SESSION(s);
	(void)s;
	TRY(context_object(&c));
	if (value && (attrib == CU_COREDUMP_PIPE || attrib == CU_COREDUMP_ENABLE_USER_TRIGGER))
		err = CUDA_ERROR_NOT_PERMITTED;
	else
		err = change(&c->coredump, attrib, value, size);
	object_put(c);
	return err;
}

CUDA_API CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	SESSION(s);
	(void)s;
	return read_setting(NULL, attrib, value, size);
}

CUDA_API CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	SESSION(s);
	(void)s;
	return change(&program, attrib, value, size);
}
