/* Host functions in streams. The GPU cannot call into this process, so a thread of this
 * library waits until the stream has reached the function, and calls it. Later work of the
 * stream is held back in this process: a call that enqueues work behind a function waits
 * until the function has returned. So a function must not wait for something that the
 * program does only after such a call. CUDA allows that, but few programs use it. */
#include <signal.h>
#include <stdlib.h>

#include "state.h"

/* The minimum stack of a program's function: musl's default for a thread is 128 KiB. */
#define STACK_BYTES (1u << 20)

struct job {
	struct job *next;
	struct session *session;
	uint64_t stream, context;
	bool blocking; /* the stream and the context's default stream wait for each other */
	uint32_t slot; /* completed when the stream has reached the job */
	CUhostFn function;
	CUstreamCallback callback; /* if function is NULL */
	void (*run)(void *, int);  /* a function of this library, in place of both */
	CUstream handle;
	void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first; /* first is the one that is running */
static bool running;                       /* the thread exists */
static _Atomic unsigned int pending;       /* number of jobs; written with lock held */
static __thread bool calling;              /* this thread is the one that calls functions */

static void perform(const struct job *j)
{
	int err = j->slot == BSLT_NO_SLOT ? 0 : slot_wait(j->session, j->slot).result;

	if (!j->run && j->slot != BSLT_NO_SLOT)
		output_show(j->session, j->context);
	if (j->run)
		j->run(j->data, err);
	else if (!j->function)
		j->callback(j->handle, err, j->data);
	else if (err == 0) /* functions are not called after their context has failed */
		j->function(j->data);
}

static void *serve(void *unused)
{
	(void)unused;
	calling = true;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct job *j;

		while (!first)
			pthread_cond_wait(&changed, &lock);
		j = first;
		pthread_mutex_unlock(&lock);
		perform(j);
		pthread_mutex_lock(&lock);
		if ((first = j->next) == NULL)
			last = &first;
		atomic_fetch_sub(&pending, 1);
		pthread_cond_broadcast(&changed);
		free(j);
	}
	return NULL;
}

/* Starts the thread with all signals blocked, so that the program's signal handlers run on
 * its own threads. The caller holds lock. */
static int start(void)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	size_t stack;
	pthread_t t;
	int err;

	if (running)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < STACK_BYTES)
		(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	err = pthread_create(&t, &attributes, serve, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_detach(t);
	running = true;
	return 0;
}

/* Reports whether work that is enqueued in a stream now comes after j. Stream 0 stands for
 * all streams of the context. */
static bool after(const struct job *j, uint64_t stream, uint64_t context, bool blocking)
{
	if (j->context != context)
		return false;
	return stream == 0 || j->stream == stream || (stream == context && j->blocking) || (j->stream == context && blocking);
}

static bool conflict(uint64_t stream, uint64_t context, bool blocking)
{
	for (const struct job *j = first; j; j = j->next)
		if (after(j, stream, context, blocking))
			return true;
	return false;
}

int callbacks_wait(uint64_t stream, uint64_t context, bool blocking)
{
	if (atomic_load_explicit(&pending, memory_order_acquire) == 0)
		return 0;
	if (calling)
		return CUDA_ERROR_NOT_PERMITTED; /* as CUDA documents; here it would also wait for itself */
	pthread_mutex_lock(&lock);
	while (conflict(stream, context, blocking))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

bool callbacks_pending(uint64_t stream, uint64_t context, bool blocking)
{
	bool found;

	if (atomic_load_explicit(&pending, memory_order_acquire) == 0)
		return false;
	pthread_mutex_lock(&lock);
	found = conflict(stream, context, blocking);
	pthread_mutex_unlock(&lock);
	return found;
}

void callbacks_abandon(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	first = NULL;
	last = &first;
	running = false;
	calling = false;
	atomic_store(&pending, 0);
}

/* Appends *j, and enqueues the command that completes its slot. Frees *j if that fails. */
static int append(struct job *j, uint16_t op, const void *args, uint32_t args_len)
{
	int err;

	pthread_mutex_lock(&lock);
	if ((err = start()) == 0 &&
	    (j->slot == BSLT_NO_SLOT || (err = ring_put(j->session, op, 0, j->slot, args, args_len, NULL, 0)) == 0)) {
		*last = j;
		last = &j->next;
		atomic_fetch_add(&pending, 1);
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	if (err) {
		if (j->slot != BSLT_NO_SLOT)
			slot_give(j->session, j->slot);
		free(j);
	}
	return err;
}

int callbacks_add(CUstream h, CUhostFn function, CUstreamCallback callback, void *data)
{
	struct bslt_stream_synchronize a;
	struct job *j;
	int err;

	SESSION(s);
	if (!(j = calloc(1, sizeof *j)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*j = (struct job){.session = s, .function = function, .callback = callback, .handle = h, .data = data};
	if ((err = stream_find(h, &j->stream, &j->context, &j->blocking)) != 0 ||
	    (err = callbacks_wait(j->stream, j->context, j->blocking)) != 0 ||
	    (err = stream_enter(s, j->stream, 1)) != 0 || (err = slot_take(s, &j->slot)) != 0) {
		free(j);
		return err;
	}
	a.stream = j->stream;
	return append(j, BSLT_OP_STREAM_SYNCHRONIZE, &a, sizeof a);
}

int callbacks_run(uint64_t stream, uint64_t context, bool blocking, void (*run)(void *, int), void *data)
{
	struct bslt_stream_synchronize a = {stream};
	struct job *j;
	int err;

	SESSION(s);
	if (!(j = calloc(1, sizeof *j)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*j = (struct job){.session = s, .stream = stream, .context = context, .blocking = blocking, .run = run, .data = data};
	if ((err = slot_take(s, &j->slot)) != 0) {
		free(j);
		return err;
	}
	return append(j, BSLT_OP_STREAM_SYNCHRONIZE, &a, sizeof a);
}

/* Runs a function of this library when all work of a context is done. Streams do not wait
 * for it. */
int callbacks_after(uint64_t context, void (*run)(void *, int), void *data)
{
	struct bslt_ctx_synchronize a = {context};
	struct job *j;
	int err;

	SESSION(s);
	if (!(j = calloc(1, sizeof *j)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*j = (struct job){.session = s, .stream = UINT64_MAX, .context = context, .slot = BSLT_NO_SLOT, .run = run, .data = data};
	if (context && (err = slot_take(s, &j->slot)) != 0) {
		free(j);
		return err;
	}
	return append(j, BSLT_OP_CTX_SYNCHRONIZE, &a, sizeof a);
}
