/* The fields of a query: their names, and the functions that get their values. */
#ifndef BASALT_SMI_FIELDS_H
#define BASALT_SMI_FIELDS_H

#include "smi.h"

struct field {
	const char *name, *alias, *unit; /* "" if it does not exist */
	getter *get;
};
/* The fields of --query-gpu. The last has no name. */
extern const struct field gpu_fields[];

#endif
