/* The error log: messages for cuLogs…, for the callbacks that the program has registered, and
 * for the file that CUDA_LOG_FILE names. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define ROOM 25600u	/* maximum bytes of all messages; the oldest are removed first */
#define LONGEST 1024u /* maximum bytes of one message */
#define TRUNCATED "[older messages are gone]\n"

struct callback {
	uintptr_t handle;
	CUlogsCallback call;
	void *data;
	struct callback *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* no other lock is acquired while it is held */
static char lines[ROOM];				  /* guarded by lock, like used, first and next */
static size_t used;
static CUlogIterator first, next; /* numbers of the oldest message, and of the next one */

static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER; /* held while callbacks run */
static struct callback *callbacks;			    /* guarded by callback_lock */
static _Thread_local bool inside;			    /* this thread is in a callback, whose own messages are passed to no callback */

/* Returns the length of the line at an offset, with its newline. */
static size_t line_length(size_t at)
{
	return (size_t)((char *)memchr(lines + at, '\n', used - at) - (lines + at)) + 1;
}

static void store_line(const char *line, size_t n)
{
	pthread_mutex_lock(&lock);
	while (used + n > ROOM) {
		size_t gone = line_length(0);

		memmove(lines, lines + gone, used -= gone);
		first++;
	}
	memcpy(lines + used, line, n);
	used += n;
	next++;
	pthread_mutex_unlock(&lock);
}

static void write_out(const char *line)
{
	const char *path = secure_getenv("CUDA_LOG_FILE"); /* a program with another user's rights must not write files */
	FILE *f;

	if (!path || !*path)
		return;
	if (strcmp(path, "stdout") == 0 || strcmp(path, "stderr") == 0) {
		f = path[3] == 'o' ? stdout : stderr;
		fputs(line, f);
		fflush(f);
	} else if ((f = fopen(path, "ae")) != NULL) {
		fputs(line, f);
		fclose(f);
	}
}

static void run_callbacks(int level, char *message, size_t n)
{
	if (inside)
		return;
	inside = true;
	pthread_mutex_lock(&callback_lock);
	for (struct callback *c = callbacks; c; c = c->next)
		c->call(c->data, level, message, n);
	pthread_mutex_unlock(&callback_lock);
	inside = false;
}

void log_message(int level, const char *api, const char *format, ...)
{
	char line[LONGEST], *message;
	struct timespec now;
	struct tm local;
	va_list args;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	n = strftime(line, sizeof line, "[%H:%M:%S", &local);
	n += (size_t)snprintf(line + n, sizeof line - n, ".%03ld][%ld][CUDA][%c]%s%s%s ", now.tv_nsec / 1000000, (long)syscall(SYS_gettid),
			      level == CU_LOG_LEVEL_ERROR ? 'E' : 'W', api ? "[" : "", api ? api : "", api ? "]" : "");
	message = line + n;
	va_start(args, format);
	vsnprintf(message, sizeof line - n - 1, format, args); /* one byte is for the newline */
	va_end(args);
	for (char *c = message; *c; c++)
		if (*c == '\n')
			*c = ' ';
	n = strlen(line);
	memcpy(line + n, "\n", 2);
	store_line(line, n + 1);
	write_out(line);
	line[n] = 0;
	run_callbacks(level, message, n - (size_t)(message - line));
}

void logs_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&callback_lock, NULL);
	inside = false;
}

/* Copies as many whole messages as fit, from number *from on. *from becomes the number of the
 * next one. Returns the number of bytes. */
static size_t copy_out(CUlogIterator *from, char *to, size_t room)
{
	size_t at = 0, out = 0;

	if (*from < first && room >= sizeof TRUNCATED - 1) {
		memcpy(to, TRUNCATED, sizeof TRUNCATED - 1);
		out = sizeof TRUNCATED - 1;
	}
	if (*from < first)
		*from = first;
	for (CUlogIterator n = first; n < *from; n++)
		at += line_length(at);
	for (size_t length; *from < next && (length = line_length(at)) <= room - out; at += length, out += length, ++*from)
		memcpy(to + out, lines + at, length);
	return out;
}

CUDA_API CUresult cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
	if (!iterator_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*iterator_out = next;
	pthread_mutex_unlock(&lock);
	return 0;
}

CUDA_API CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	CUlogIterator from, was;
	int err = 0;

	if (!buffer || !size || !*size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	from = iterator ? *iterator : 0;
	was = from < first ? first : from;
	if (was >= next) {
		*size = 0;
	} else {
		*size = copy_out(&from, buffer, *size - 1);
		if (from == was) { /* not even one fits */
			*size = 0;
			err = CUDA_ERROR_INVALID_VALUE;
		} else if (iterator) {
			*iterator = from;
		}
	}
	pthread_mutex_unlock(&lock);
	buffer[*size] = 0;
	return err;
}

/* Appends to the file, so that a program can repeatedly dump the new messages. */
CUDA_API CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	CUlogIterator from;
	bool written;
	char *all;
	size_t n;
	FILE *f;

	if (!pathToFile || !*pathToFile || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(all = malloc(ROOM + sizeof TRUNCATED)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	from = iterator && *iterator < next ? *iterator : iterator ? next : 0;
	n = copy_out(&from, all, ROOM + sizeof TRUNCATED);
	pthread_mutex_unlock(&lock);
	written = (f = fopen(pathToFile, "ae")) != NULL && fwrite(all, 1, n, f) == n;
	if (f && fclose(f) != 0)
		written = false;
	free(all);
	if (!written)
		return CUDA_ERROR_INVALID_VALUE;
	if (iterator)
		*iterator = from;
	return 0;
}

CUDA_API CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
	static uintptr_t handles;
	struct callback *c;

	if (!callbackFunc)
		return CUDA_ERROR_INVALID_VALUE;
	if (inside)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!(c = malloc(sizeof *c)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&callback_lock);
	*c = (struct callback){++handles, callbackFunc, userData, callbacks};
	callbacks = c;
	if (callback_out)
		*callback_out = handle_of(c->handle);
	pthread_mutex_unlock(&callback_lock);
	return 0;
}

/* When it has returned, the callback is not running and is not called any more. */
CUDA_API CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	struct callback **at, *c;

	if (inside)
		return CUDA_ERROR_NOT_PERMITTED;
	pthread_mutex_lock(&callback_lock);
	for (at = &callbacks; *at && (*at)->handle != (uintptr_t)callback; at = &(*at)->next)
		;
	if ((c = *at) != NULL)
		*at = c->next;
	pthread_mutex_unlock(&callback_lock);
	free(c);
	return c ? 0 : CUDA_ERROR_INVALID_VALUE;
}
