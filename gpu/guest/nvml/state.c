#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct device_info nvml_device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct session *session; /* guarded by lock, like the next */
static unsigned int users;
struct nvmlDevice_st {
	int only;
};
static struct nvmlDevice_st the_device;

static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	if (session)
		session_abandon(session);
	session = NULL;
	users = 0;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static nvmlReturn_t translate(int result)
{
	switch (result) {
	case RES_SUCCESS: return NVML_SUCCESS;
	case RES_NO_DEVICE: return NVML_ERROR_DRIVER_NOT_LOADED;
	case RES_OUT_OF_MEMORY: return NVML_ERROR_MEMORY;
	case RES_UNAVAILABLE: return NVML_ERROR_GPU_IS_LOST;
	case RES_DRIVER_MISMATCH: return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	default: return NVML_ERROR_UNKNOWN;
	}
}

static int start(void)
{
	char why[BSLT_ERROR_TEXT_SIZE];
	int err = session_open(&session, false, why);

	if (err == 0 && (err = query_device(session, &nvml_device)) != 0) {
		snprintf(why, sizeof why, "the vGPU's worker does not describe its device");
		session_close(session);
	}
	if (err) {
		session = NULL;
		session_report_failure(err, why);
	}
	return err;
}

NVML_API nvmlReturn_t nvmlInit_v2(void)
{
	int err = 0;

	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&lock);
	if (users == 0)
		err = start();
	if (err == 0)
		users++;
	pthread_mutex_unlock(&lock);
	return translate(err);
}

/* The flags allow that there is no GPU, and that none is attached. They have no effect here. */
NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	if (flags & ~(unsigned int)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvmlInit_v2();
}

NVML_API nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (users == 0) {
		r = NVML_ERROR_UNINITIALIZED;
	} else if (--users == 0) {
		session_close(session);
		session = NULL;
		free_device_info(&nvml_device);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

nvmlReturn_t nvml_ready(void)
{
	nvmlReturn_t r;

	pthread_mutex_lock(&lock);
	r = session ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&lock);
	return r;
}

nvmlReturn_t nvml_handle(nvmlDevice_t device)
{
	nvmlReturn_t r = nvml_ready();

	return r ? r : device == &the_device ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlDevice_t nvml_the_device(void)
{
	return &the_device;
}

nvmlReturn_t nvml_status(struct vgpu_status *out)
{
	int err = -1;

	pthread_mutex_lock(&lock); /* acquired so that nvmlShutdown waits */
	if (session)
		err = query_status(session, out);
	pthread_mutex_unlock(&lock);
	return err < 0 ? NVML_ERROR_UNINITIALIZED : translate(err);
}

nvmlReturn_t nvml_reading(unsigned int key, unsigned long long *value)
{
	struct vgpu_status v;
	nvmlReturn_t r = nvml_status(&v);

	if (r)
		return r;
	r = NVML_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < v.reading_count && r; i++) {
		if (v.readings[i].key == key) {
			*value = v.readings[i].value;
			r = NVML_SUCCESS;
		}
	}
	free_vgpu_status(&v);
	return r;
}

nvmlReturn_t nvml_version(const void *with_version, const unsigned int *versions, int n)
{
	unsigned int version;

	if (!with_version)
		return NVML_ERROR_INVALID_ARGUMENT;
	memcpy(&version, with_version, sizeof version);
	for (int i = 0; i < n; i++)
		if (version == versions[i])
			return NVML_SUCCESS;
	return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

long long nvml_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

int nvml_attribute(int a)
{
	return (uint32_t)a < nvml_device.attribute_count ? nvml_device.attributes[a] : 0;
}

nvmlReturn_t nvml_text(char *out, unsigned int length, const char *text)
{
	size_t n = strlen(text);

	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (n >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, n + 1);
	return NVML_SUCCESS;
}
