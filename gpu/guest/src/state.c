/* The process's one session. */
#include <stdio.h>
#include <stdlib.h>

#include "query.h"
#include "state.h"

struct device_info device;
_Atomic unsigned generation = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct session *) session; /* set under lock, once */

struct session *state_abandon(void)
{
	struct session *s = atomic_load(&session);

	pthread_mutex_init(&lock, NULL);
	if (s) {
		atomic_fetch_add(&generation, 1);
		atomic_store(&session, NULL);
		device = (struct device_info){0};
	}
	return s;
}

/* The worker is too old to use host memory in place. */
static void no_host_memory(void)
{
	static const uint32_t promises[] = {19, 83, 89}; /* see attribute.c */

	for (size_t i = 0; i < sizeof promises / sizeof promises[0]; i++)
		if (promises[i] < device.attribute_count)
			device.attributes[promises[i]] = 0;
}

static int start(struct session **out)
{
	char why[BSLT_ERROR_TEXT_SIZE];
	struct session *s;
	int err = session_open(&s, true, why);

	if (err == 0 && (err = query_device(s, &device)) != 0) {
		snprintf(why, sizeof why, "the vGPU's worker does not describe its device");
		session_close(s);
	}
	if (err) {
		const char *v = getenv("BASALT_VERBOSE");

		if (v && *v)
			fprintf(stderr, "basalt: no vGPU (CUDA error %d) %s\n", err, why);
		return err;
	}
	ranges_window(&s->window, &s->host);
	if (!s->host.size)
		no_host_memory();
	*out = s;
	return 0;
}

int library_init(void)
{
	struct session *s = NULL;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!atomic_load(&session) && (err = start(&s)) == 0)
		atomic_store(&session, s);
	pthread_mutex_unlock(&lock);
	return err;
}

int library_session(struct session **s)
{
	*s = atomic_load_explicit(&session, memory_order_acquire);
	if (!*s)
		return CUDA_ERROR_NOT_INITIALIZED;
	return atomic_load_explicit(&(*s)->dead, memory_order_relaxed);
}
