/* The session of the process. There is only one. */
#include <stdio.h>
#include <stdlib.h>

#include "query.h"
#include "state.h"

struct device_info device;
_Atomic unsigned generation = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct session *) session; /* set under lock, once */
static struct session *early;             /* opened before cuInit, for the version; guarded by lock */
static bool asked;                        /* the version was queried, which is done once; guarded by lock */

struct session *state_abandon(void)
{
	struct session *s = atomic_load(&session);

	pthread_mutex_init(&lock, NULL);
	asked = false;
	if (s) {
		atomic_fetch_add(&generation, 1);
		atomic_store(&session, NULL);
	} else {
		s = early;
		early = NULL;
	}
	if (s)
		device = (struct device_info){0};
	return s;
}

/* Sets attributes to 0, because the worker is too old for them (attribute.c). */
static void deny(const uint32_t *attributes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (attributes[i] < device.attribute_count)
			device.attributes[attributes[i]] = 0;
}

static void deny_what_is_newer(const struct session *s)
{
	static const uint32_t host_memory[] = {19, 83, 89}, waits[] = {92, 93, 94, 122, 123}, mappings[] = {102}, descriptors[] = {103};

	if (!s->host.size)
		deny(host_memory, sizeof host_memory / sizeof host_memory[0]);
	if (worker_minor(s) < 4)
		deny(waits, sizeof waits / sizeof waits[0]);
	if (IPC_EVENT_SUPPORTED < device.attribute_count)
		device.attributes[IPC_EVENT_SUPPORTED] = worker_minor(s) >= 8;
	if (worker_minor(s) < 8)
		deny(descriptors, sizeof descriptors / sizeof descriptors[0]);
	if (worker_minor(s) < 7)
		deny(mappings, sizeof mappings / sizeof mappings[0]);
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
		session_report_failure(err, why);
		return err;
	}
	ranges_window(&s->window, &s->host);
	deny_what_is_newer(s);
	*out = s;
	return 0;
}

int library_init(void)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (early && session_check(early)) { /* its worker has ended in the meantime */
		session_close(early);
		early = NULL;
	}
	if (!atomic_load(&session) && (early || (err = start(&early)) == 0)) {
		atomic_store(&session, early);
		early = NULL;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

uint32_t library_version(void)
{
	uint32_t version;

	pthread_mutex_lock(&lock);
	if (!atomic_load(&session) && !asked) {
		asked = true;
		(void)start(&early);
	}
	version = device.cuda_version;
	pthread_mutex_unlock(&lock);
	return version;
}

int library_session(struct session **s)
{
	*s = atomic_load_explicit(&session, memory_order_acquire);
	if (!*s)
		return CUDA_ERROR_NOT_INITIALIZED;
	return atomic_load_explicit(&(*s)->dead, memory_order_relaxed);
}
