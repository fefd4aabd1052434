/* Every function of libnvidia-ml, called with arguments of three kinds. */
#ifndef BASALT_NVML_EVERY_H
#define BASALT_NVML_EVERY_H

#include <stdint.h>

#include "nvml.h"

struct every {
	const char *name;
	nvmlReturn_t (*nothing)(void), (*rubbish)(void), (*good)(void);
	/* What they answer; -1: written by hand, any code that there is. */
	int want_nothing, want_rubbish, want_good;
};
extern const struct every every[];

#define RUBBISH 0x5eadbeefu
extern nvmlDevice_t the_device;

/* Memory that is large enough for anything, zero but for its first word. */
void *scratch(unsigned int first);

#endif
