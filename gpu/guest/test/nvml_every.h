/* Calls of every function of libnvidia-ml with three kinds of arguments. */
#ifndef BASALT_NVML_EVERY_H
#define BASALT_NVML_EVERY_H

#include <stdint.h>

#include "nvml.h"

struct every {
	const char *name;
	nvmlReturn_t (*nothing)(void), (*rubbish)(void), (*good)(void);
	/* The expected results; -1: the function is written by hand, and any code is valid. */
	int want_nothing, want_rubbish, want_good;
};
extern const struct every every[];

#define RUBBISH 0x5eadbeefu
extern nvmlDevice_t the_device;

/* Returns memory that is large enough for all arguments. It is zero except for its first
 * word. */
void *scratch(unsigned int first);

#endif
