#ifndef BASALT_SMI_H
#define BASALT_SMI_H

#include <stdio.h>

#include "nvml.h"

/* The exit status, or for the table NVML's result. */
nvmlReturn_t smi_table(nvmlDevice_t device);
int smi_query_gpu(nvmlDevice_t device, const char *fields, int header, int units);
int smi_query_apps(nvmlDevice_t device, const char *fields, int header, int units);
void smi_fields(FILE *out);

/* The compute processes; the caller frees *out. */
nvmlReturn_t smi_processes(nvmlDevice_t device, nvmlProcessInfo_t **out, unsigned int *n);

#endif
