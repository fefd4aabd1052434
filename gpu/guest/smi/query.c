/* Queries as CSV: --query-gpu, --query-compute-apps, --query-accounted-apps. */
#include <stdlib.h>
#include <string.h>

#include "fields.h"

#define MOST 256 /* maximum number of fields of a query */

/* The process of a row. */
struct process {
	unsigned int pid;
	unsigned long long memory; /* bytes */
	nvmlAccountingStats_t stats;
};

static void number(struct value *v, unsigned long long n)
{
	snprintf(v->text, sizeof v->text, "%llu", n);
}

static void p_pid(const struct process *p, struct value *v) { number(v, p->pid); }
static void p_memory(const struct process *p, struct value *v) { number(v, p->memory >> 20); }
static void p_gpu(const struct process *p, struct value *v) { number(v, p->stats.gpuUtilization); }
static void p_peak(const struct process *p, struct value *v) { number(v, p->stats.maxMemoryUsage >> 20); }
static void p_time(const struct process *p, struct value *v) { number(v, p->stats.time); }
static void p_none(const struct process *p, struct value *v)
{
	(void)p;
	(void)v;
}

static void p_name(const struct process *p, struct value *v)
{
	if (nvmlSystemGetProcessName(p->pid, v->text, sizeof v->text) != 0)
		v->text[0] = 0; /* it has ended in the meantime */
}

/* Fields of processes. Those without a getter of their own are fields of the device. */
static const struct app_field {
	struct field device;
	void (*get)(const struct process *, struct value *);
} compute_apps[] = {
	{{"timestamp", "", "", v_timestamp}, NULL},
	{{"gpu_name", "", "", v_name}, NULL},
	{{"gpu_bus_id", "", "", v_bus_id}, NULL},
	{{"gpu_serial", "", "", v_none}, NULL},
	{{"gpu_uuid", "", "", v_uuid}, NULL},
	{{"pid", "", "", NULL}, p_pid},
	{{"process_name", "name", "", NULL}, p_name},
	{{"used_gpu_memory", "used_memory", "MiB", NULL}, p_memory},
	{{0}, NULL},
}, accounted_apps[] = {
	{{"timestamp", "", "", v_timestamp}, NULL},
	{{"gpu_name", "", "", v_name}, NULL},
	{{"gpu_bus_id", "", "", v_bus_id}, NULL},
	{{"gpu_serial", "", "", v_none}, NULL},
	{{"gpu_uuid", "", "", v_uuid}, NULL},
	{{"vgpu_instance", "", "", v_none}, NULL},
	{{"pid", "", "", NULL}, p_pid},
	{{"gpu_utilization", "gpu_util", "%", NULL}, p_gpu},
	{{"mem_utilization", "mem_util", "%", NULL}, p_none},
	{{"max_memory_usage", "max_memory", "MiB", NULL}, p_peak},
	{{"time", "", "ms", NULL}, p_time},
	{{0}, NULL},
};

static const char *const options[SUBJECTS] = {"--query-gpu", "--query-compute-apps", "--query-accounted-apps"};

/* Returns the field with an index, or NULL after the last. */
static const struct field *field(enum subject s, size_t i)
{
	const struct field *f = s == QUERY_GPU ? &gpu_fields[i] : s == QUERY_COMPUTE_APPS ? &compute_apps[i].device : &accounted_apps[i].device;

	return f->name ? f : NULL;
}

void smi_query_help(FILE *out, enum subject subject)
{
	const struct field *f;

	fprintf(out, "List of valid properties for %s:\n\n", options[subject]);
	for (size_t i = 0; (f = field(subject, i)) != NULL; i++)
		fprintf(out, *f->alias ? "\"%s\" or \"%s\"\n" : "\"%s\"\n", f->name, f->alias);
}

/* Finds the fields that the query names. Returns their number, or -1 after printing an error. */
static int choose(const struct query *q, size_t *chosen)
{
	char *copy = strdup(q->fields), *save = NULL;
	int n = 0;

	for (char *name = copy ? strtok_r(copy, ", ", &save) : NULL; name && n >= 0; name = strtok_r(NULL, ", ", &save)) {
		const struct field *f = NULL;
		size_t i = 0;

		while ((f = field(q->subject, i)) != NULL && strcmp(name, f->name) != 0 && (!*f->alias || strcmp(name, f->alias) != 0))
			i++;
		if (!f) {
			fprintf(stderr, "nvidia-smi: field \"%s\" of %s is not known; nvidia-smi --help-%s lists those that are\n", name, options[q->subject], options[q->subject] + 2);
			n = -1;
		} else if (n == MOST) {
			fprintf(stderr, "nvidia-smi: %s has more than %d fields\n", options[q->subject], MOST);
			n = -1;
		} else {
			chosen[n++] = i;
		}
	}
	free(copy);
	if (n == 0) {
		fprintf(stderr, "nvidia-smi: %s names no field; nvidia-smi --help-%s lists them\n", options[q->subject], options[q->subject] + 2);
		n = -1;
	}
	return n;
}

int smi_query_check(const struct query *q)
{
	size_t chosen[MOST];

	return choose(q, chosen) < 0 ? EXIT_ARGUMENT : 0;
}

static void header(FILE *out, const struct query *q, const size_t *chosen, int n)
{
	for (int i = 0; i < n; i++) {
		const struct field *f = field(q->subject, chosen[i]);

		fprintf(out, "%s%s", i ? ", " : "", f->name);
		if (*f->unit) /* even if the values have no units */
			fprintf(out, " [%s]", f->unit);
	}
	fputc('\n', out);
}

static void row(FILE *out, nvmlDevice_t device, const struct query *q, const size_t *chosen, int n, const struct process *p)
{
	for (int i = 0; i < n; i++) {
		const struct field *f = field(q->subject, chosen[i]);
		struct value v = {""};

		if (f->get)
			f->get(device, &v);
		else
			(q->subject == QUERY_COMPUTE_APPS ? compute_apps : accounted_apps)[chosen[i]].get(p, &v);
		fprintf(out, "%s%s", i ? ", " : "", *v.text ? v.text : "[N/A]");
		if (*f->unit && q->units && *v.text)
			fprintf(out, " %s", f->unit);
	}
	fputc('\n', out);
}

static nvmlReturn_t computing(FILE *out, nvmlDevice_t device, const struct query *q, const size_t *chosen, int n)
{
	nvmlProcessInfo_t *list;
	unsigned int count;
	nvmlReturn_t r = smi_processes(device, &list, &count);

	for (unsigned int i = 0; r == NVML_SUCCESS && i < count; i++)
		row(out, device, q, chosen, n, &(struct process){.pid = list[i].pid, .memory = list[i].usedGpuMemory});
	free(list);
	return r;
}

static nvmlReturn_t accounted(FILE *out, nvmlDevice_t device, const struct query *q, const size_t *chosen, int n)
{
	unsigned int pids[4096], count = 4096;
	nvmlReturn_t r = nvmlDeviceGetAccountingPids(device, &count, pids);

	for (unsigned int i = 0; r == NVML_SUCCESS && i < count; i++) {
		struct process p = {.pid = pids[i]};

		if (nvmlDeviceGetAccountingStats(device, p.pid, &p.stats) == NVML_SUCCESS) /* it fails if the process is not accounted any more */
			row(out, device, q, chosen, n, &p);
	}
	return r;
}

int smi_query(FILE *out, nvmlDevice_t device, const struct query *q, bool first)
{
	size_t chosen[MOST];
	nvmlReturn_t r = NVML_SUCCESS;
	nvmlMemory_t m;
	int n = choose(q, chosen);

	if (n < 0)
		return EXIT_ARGUMENT;
	if (q->header && first)
		header(out, q, chosen, n);
	if (q->subject == QUERY_GPU) {
		r = nvmlDeviceGetMemoryInfo(device, &m); /* check whether the GPU is lost */
		if (r == NVML_SUCCESS)
			row(out, device, q, chosen, n, NULL);
	} else {
		r = q->subject == QUERY_COMPUTE_APPS ? computing(out, device, q, chosen, n) : accounted(out, device, q, chosen, n);
	}
	return r ? smi_fail("the vGPU does not answer", r) : 0;
}
