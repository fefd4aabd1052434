/* Event sets. The host reports the critical errors (XID) of the vGPU's own contexts, whichever
 * process they are of. A wait also ends when the GPU is lost. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "state.h"

#define MAX_SETS 64
#define LOOK_EACH 100 /* interval in milliseconds at which the host is asked */
#define NO_INSTANCE 0xffffffffu
#define XID 8ull /* nvmlEventTypeXidCriticalError */

static struct nvmlEventSet_st {
	atomic_bool used, has_device;
	_Atomic(unsigned long long) types;
	_Atomic(uint64_t) seen; /* the time of the last event that was returned, or was earlier than the registration */
} sets[MAX_SETS];

static bool is_set(nvmlEventSet_t set)
{
	uintptr_t at = (uintptr_t)set - (uintptr_t)sets;

	return at < sizeof sets && at % sizeof sets[0] == 0 && atomic_load(&set->used);
}

NVML_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	TRY(nvml_ready());
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < MAX_SETS; i++) {
		bool unused = false;

		if (atomic_compare_exchange_strong(&sets[i].used, &unused, true)) {
			atomic_store(&sets[i].has_device, false);
			atomic_store(&sets[i].types, 0);
			*set = &sets[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

NVML_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	TRY(nvml_ready());
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	atomic_store(&set->used, false);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes)
{
	nvmlReturn_t r;

	DEVICE(device, eventTypes);
	r = nvml_reading(BSLT_READING_EVENT_TYPES, eventTypes);
	if (r == NVML_ERROR_NOT_SUPPORTED) { /* an older host, or none */
		*eventTypes = 0;
		r = NVML_SUCCESS;
	}
	return r;
}

/* A set has the events after the first registration. */
NVML_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
	unsigned long long supported;
	struct vgpu_status v;

	TRY(nvml_handle(device));
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	TRY(nvmlDeviceGetSupportedEventTypes(device, &supported));
	if (eventTypes & ~supported)
		return NVML_ERROR_NOT_SUPPORTED;
	TRY(nvml_status(&v));
	if (!atomic_load(&set->has_device))
		atomic_store(&set->seen, v.event_count ? v.events[v.event_count - 1].at : 0);
	free_vgpu_status(&v);
	atomic_fetch_or(&set->types, eventTypes);
	atomic_store(&set->has_device, true);
	return NVML_SUCCESS;
}

/* Takes the next event of a set. Threads that wait for the same set get different events. */
static bool next_event(struct nvmlEventSet_st *set, const struct vgpu_status *v, nvmlEventData_t *data)
{
	uint64_t seen = atomic_load(&set->seen);

	for (uint32_t i = 0; i < v->event_count && atomic_load(&set->types) & XID; i++) {
		const struct gpu_event *e = &v->events[i];

		if (e->at <= seen)
			continue;
		if (!atomic_compare_exchange_strong(&set->seen, &seen, e->at))
			continue; /* seen is now the event that another thread has taken */
		*data = (nvmlEventData_t){nvml_the_device(), XID, e->xid, NO_INSTANCE, NO_INSTANCE};
		return true;
	}
	return false;
}

static void sleep_for(unsigned int milliseconds)
{
	struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000l};

	while (nanosleep(&left, &left) != 0)
		; /* interrupted by a signal: sleep the rest of the time */
}

NVML_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
	TRY(nvml_ready());
	if (!is_set(set) || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (;;) {
		unsigned int slice = timeoutms < LOOK_EACH ? timeoutms : LOOK_EACH;
		struct vgpu_status v;
		bool found;

		if (atomic_load(&set->has_device)) {
			TRY(nvml_status(&v));
			found = next_event(set, &v, data);
			free_vgpu_status(&v);
			if (found)
				return NVML_SUCCESS;
		}
		if (slice == 0)
			return NVML_ERROR_TIMEOUT;
		sleep_for(slice);
		timeoutms -= slice;
	}
}
