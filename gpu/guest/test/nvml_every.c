/* Calls every function of libnvidia-ml before nvmlInit, after it and after nvmlShutdown, with
 * zeros and with invalid arguments. None may crash, and functions that are not supported or not
 * permitted must return that error. */
#include <stdio.h>
#include <string.h>

#include "nvml_every.h"

nvmlDevice_t the_device;

static int failed;

void *scratch(unsigned int first)
{
	static _Alignas(16) char memory[1 << 20];

	memset(memory, 0, sizeof memory);
	memcpy(memory, &first, sizeof first);
	return memory;
}

static void expect(const struct every *e, const char *with, int got, int want)
{
	int code = (got >= 0 && got <= 30) || got == NVML_ERROR_UNKNOWN;

	if (want == -1 ? !code : got != want) {
		fprintf(stderr, "%s with %s gives %d, want %d\n", e->name, with, got, want);
		failed = 1;
	}
}

/* Reports whether a function begins or ends the session, or needs none. */
static int special(const char *name)
{
	static const char *const names[] = {"nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlSystemGetNVMLVersion"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0)
			return 1;
	return 0;
}

static void uninitialized(void)
{
	for (const struct every *e = every; e->name; e++) {
		if (special(e->name))
			continue;
		expect(e, "nothing, uninitialized", e->nothing(), NVML_ERROR_UNINITIALIZED);
		expect(e, "rubbish, uninitialized", e->rubbish(), NVML_ERROR_UNINITIALIZED);
		expect(e, "good arguments, uninitialized", e->good(), NVML_ERROR_UNINITIALIZED);
	}
}

int main(void)
{
	uninitialized();
	if (nvmlInit_v2() != 0 || nvmlDeviceGetHandleByIndex_v2(0, &the_device) != 0) {
		fputs("no vGPU\n", stderr);
		return 1;
	}
	for (const struct every *e = every; e->name; e++) {
		if (special(e->name))
			continue;
		expect(e, "nothing", e->nothing(), e->want_nothing);
		expect(e, "rubbish", e->rubbish(), e->want_rubbish);
		expect(e, "good arguments", e->good(), e->want_good);
	}
	if (nvmlInitWithFlags(RUBBISH) != NVML_ERROR_INVALID_ARGUMENT || nvmlSystemGetNVMLVersion(NULL, 80) != NVML_ERROR_INVALID_ARGUMENT || nvmlShutdown() != 0) {
		fputs("the special ones\n", stderr);
		failed = 1;
	}
	uninitialized();
	return failed;
}
