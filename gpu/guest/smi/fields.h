/* The fields of a query: what names them, and where they come from. */
#ifndef BASALT_SMI_FIELDS_H
#define BASALT_SMI_FIELDS_H

#include "smi.h"

struct field {
	const char *name, *alias, *unit; /* "": there is none */
	getter *get;
};
/* Those of --query-gpu, up to one without a name. */
extern const struct field gpu_fields[];

#endif
