/* nvidia-smi: declarations that its parts share. */
#ifndef BASALT_SMI_H
#define BASALT_SMI_H

#include <stdbool.h>
#include <stdio.h>

#include "nvml.h"

/* Exit statuses that nvidia-smi documents. Others are NVML's return codes. */
enum { EXIT_ARGUMENT = 2, EXIT_PERMISSION = 4, EXIT_NOT_FOUND = 6, EXIT_NO_DRIVER = 9, EXIT_OTHER = 255 };

/* A value of the device, as text. */
struct value {
	char text[128]; /* empty if unknown */
};
typedef void getter(nvmlDevice_t, struct value *);

/* The getters of the values of queries and -q, in value.c. */
getter v_timestamp, v_driver, v_cuda, v_count, v_index, v_name, v_brand, v_architecture, v_uuid, v_minor, v_capability;
getter v_bus_id, v_domain, v_bus, v_device, v_device_id, v_sub_device_id, v_base_class, v_sub_class;
getter v_persistence, v_compute_mode, v_display_mode, v_display_active, v_virtualization, v_multi_gpu, v_pstate, v_cores;
getter v_memory_total, v_memory_reserved, v_memory_used, v_memory_free, v_gpu, v_memory;
getter v_link_gen, v_max_link_gen, v_link_width, v_max_link_width, v_link_lanes, v_max_link_lanes;
getter v_temperature, v_slowdown, v_shutdown, v_power, v_power_limit, v_fan;
getter v_clock_graphics, v_clock_sm, v_clock_memory, v_clock_video, v_max_graphics, v_max_sm, v_max_memory, v_max_video;
getter v_reasons, v_reason_idle, v_reason_applications, v_reason_power_cap, v_reason_slowdown, v_reason_sync_boost;
getter v_reason_sw_thermal, v_reason_hw_thermal, v_reason_power_brake, v_reason_display;
getter v_ecc, v_ecc_pending, v_ecc_uncorrected, v_accounting, v_accounting_size, v_none;

/* Prints an error for the result of a call, and returns the exit status for it. */
int smi_fail(const char *what, nvmlReturn_t r);

/* Each writes to out and returns the exit status. */
int smi_table(FILE *out, nvmlDevice_t device);
int smi_list(FILE *out, nvmlDevice_t device);
int smi_topology(FILE *out, int argc, char **argv);
int smi_version(FILE *out);

/* A query as CSV. */
enum subject { QUERY_GPU, QUERY_COMPUTE_APPS, QUERY_ACCOUNTED_APPS, SUBJECTS };
struct query {
	enum subject subject;
	const char *fields; /* as on the command line */
	bool header, units;
};
int smi_query_check(const struct query *q);
int smi_query(FILE *out, nvmlDevice_t device, const struct query *q, bool first);
void smi_query_help(FILE *out, enum subject subject);

/* The arguments of -q: the sections as bits, and text or XML. */
struct report {
	unsigned int sections; /* 0: all */
	bool xml;
};
int smi_sections(const char *names, unsigned int *bits);
int smi_report(FILE *out, nvmlDevice_t device, const struct report *what);

/* dmon and pmon, with the arguments after that word. */
int smi_monitor(const char *which, int argc, char **argv);

/* Finds the GPU for an index, a UUID or a PCI address. NULL stands for the only one. */
int smi_device(const char *id, nvmlDevice_t *device);

/* Returns the compute processes. The caller frees *out. */
nvmlReturn_t smi_processes(nvmlDevice_t device, nvmlProcessInfo_t **out, unsigned int *n);

/* Parses a decimal number from least to most. Returns -1 if it is not one. */
long smi_number(const char *text, long least, long most);
void smi_sleep(long milliseconds);

/* Begin and end the session, and print errors. */
int smi_open(void);
void smi_close(void);

#endif
