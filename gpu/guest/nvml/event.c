/* Event sets. The host does not report events of a GPU to guests, so a wait ends with its timeout,
 * or when the GPU is lost. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "state.h"

#define MAX_SETS 64
#define LOOK_EACH 1000 /* interval in milliseconds of checks whether the GPU is lost */

static struct nvmlEventSet_st {
	atomic_bool used, has_device;
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
	DEVICE(device, eventTypes);
	*eventTypes = 0;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
	TRY(nvml_handle(device));
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (eventTypes)
		return NVML_ERROR_NOT_SUPPORTED; /* none of them is supported */
	atomic_store(&set->has_device, true);
	return NVML_SUCCESS;
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

		if (atomic_load(&set->has_device)) {
			TRY(nvml_status(&v));
			free_vgpu_status(&v);
		}
		if (slice == 0)
			return NVML_ERROR_TIMEOUT;
		sleep_for(slice);
		timeoutms -= slice;
	}
}
