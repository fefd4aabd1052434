/* --query-gpu and --query-compute-apps. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "smi.h"

#define NOT_THERE "[N/A]"

struct value {
	char text[128];
	const char *unit; /* "" when there is none */
};

static void number(struct value *v, unsigned long long n)
{
	snprintf(v->text, sizeof v->text, "%llu", n);
}

static void v_name(nvmlDevice_t d, struct value *v) { nvmlDeviceGetName(d, v->text, sizeof v->text); }
static void v_uuid(nvmlDevice_t d, struct value *v) { nvmlDeviceGetUUID(d, v->text, sizeof v->text); }
static void v_index(nvmlDevice_t d, struct value *v) { (void)d; number(v, 0); }
static void v_count(nvmlDevice_t d, struct value *v) { (void)d; number(v, 1); }
static void v_driver(nvmlDevice_t d, struct value *v) { (void)d; nvmlSystemGetDriverVersion(v->text, sizeof v->text); }

static void v_total(nvmlDevice_t d, struct value *v)
{
	nvmlMemory_t m;
	if (nvmlDeviceGetMemoryInfo(d, &m) == 0)
		number(v, m.total >> 20);
}
static void v_used(nvmlDevice_t d, struct value *v)
{
	nvmlMemory_t m;
	if (nvmlDeviceGetMemoryInfo(d, &m) == 0)
		number(v, m.used >> 20);
}
static void v_free(nvmlDevice_t d, struct value *v)
{
	nvmlMemory_t m;
	if (nvmlDeviceGetMemoryInfo(d, &m) == 0)
		number(v, m.free >> 20);
}
static void v_gpu(nvmlDevice_t d, struct value *v)
{
	nvmlUtilization_t u;
	if (nvmlDeviceGetUtilizationRates(d, &u) == 0)
		number(v, u.gpu);
}
static void v_memory(nvmlDevice_t d, struct value *v)
{
	nvmlUtilization_t u;
	if (nvmlDeviceGetUtilizationRates(d, &u) == 0)
		number(v, u.memory);
}
static void v_temperature(nvmlDevice_t d, struct value *v)
{
	unsigned int t;
	if (nvmlDeviceGetTemperature(d, 0, &t) == 0)
		number(v, t);
}
static void v_power(nvmlDevice_t d, struct value *v)
{
	unsigned int p;
	if (nvmlDeviceGetPowerUsage(d, &p) == 0)
		snprintf(v->text, sizeof v->text, "%u.%02u", p / 1000, p % 1000 / 10);
}
static void v_bus(nvmlDevice_t d, struct value *v)
{
	nvmlPciInfo_t p;
	if (nvmlDeviceGetPciInfo_v3(d, &p) == 0)
		snprintf(v->text, sizeof v->text, "%s", p.busId);
}
static void v_capability(nvmlDevice_t d, struct value *v)
{
	int major, minor;
	if (nvmlDeviceGetCudaComputeCapability(d, &major, &minor) == 0)
		snprintf(v->text, sizeof v->text, "%d.%d", major, minor);
}
static void v_pstate(nvmlDevice_t d, struct value *v) { (void)d; strcpy(v->text, "P0"); }
static void v_time(nvmlDevice_t d, struct value *v)
{
	time_t now = time(NULL);
	(void)d;
	strftime(v->text, sizeof v->text, "%Y/%m/%d %H:%M:%S.000", localtime(&now));
}
static void v_none(nvmlDevice_t d, struct value *v) { (void)d; (void)v; }

static const struct {
	const char *name, *alias, *unit;
	void (*get)(nvmlDevice_t, struct value *);
} fields[] = {
	{"timestamp", "", "", v_time},
	{"driver_version", "", "", v_driver},
	{"count", "", "", v_count},
	{"index", "", "", v_index},
	{"name", "gpu_name", "", v_name},
	{"uuid", "gpu_uuid", "", v_uuid},
	{"pci.bus_id", "gpu_bus_id", "", v_bus},
	{"compute_cap", "", "", v_capability},
	{"memory.total", "", "MiB", v_total},
	{"memory.used", "", "MiB", v_used},
	{"memory.free", "", "MiB", v_free},
	{"utilization.gpu", "", "%", v_gpu},
	{"utilization.memory", "", "%", v_memory},
	{"temperature.gpu", "", "", v_temperature},
	{"power.draw", "", "W", v_power},
	{"power.limit", "", "W", v_none},
	{"pstate", "", "", v_pstate},
	{"fan.speed", "", "%", v_none},
	{"serial", "gpu_serial", "", v_none},
};
#define FIELDS (sizeof fields / sizeof fields[0])

void smi_fields(FILE *out)
{
	for (size_t i = 0; i < FIELDS; i++)
		fprintf(out, "%s%s%s\n", fields[i].name, *fields[i].alias ? " or " : "", fields[i].alias);
}

int smi_query_gpu(nvmlDevice_t device, const char *list, int header, int units)
{
	size_t chosen[64], n = 0;
	char *copy = strdup(list);

	for (char *save, *f = strtok_r(copy, ", ", &save); f && n < 64; f = strtok_r(NULL, ", ", &save)) {
		size_t i = 0;

		while (i < FIELDS && strcmp(f, fields[i].name) != 0 && (!*fields[i].alias || strcmp(f, fields[i].alias) != 0))
			i++;
		if (i == FIELDS) {
			fprintf(stderr, "nvidia-smi: field \"%s\" is not known; nvidia-smi --help-query-gpu lists those that are\n", f);
			free(copy);
			return 2;
		}
		chosen[n++] = i;
	}
	free(copy);
	for (size_t i = 0; header && i < n; i++)
		printf("%s%s%s%s%s", i ? ", " : "", fields[chosen[i]].name, units && *fields[chosen[i]].unit ? " [" : "",
		       units ? fields[chosen[i]].unit : "", units && *fields[chosen[i]].unit ? "]" : "");
	if (header)
		putchar('\n');
	for (size_t i = 0; i < n; i++) {
		struct value v = {NOT_THERE, ""};

		fields[chosen[i]].get(device, &v);
		printf("%s%s", i ? ", " : "", v.text);
		if (units && *fields[chosen[i]].unit && strcmp(v.text, NOT_THERE) != 0)
			printf(" %s", fields[chosen[i]].unit);
	}
	putchar('\n');
	return 0;
}

int smi_query_apps(nvmlDevice_t device, const char *list, int header, int units)
{
	static const char *const known[] = {"pid", "process_name", "name", "used_memory", "used_gpu_memory", "gpu_uuid"};
	nvmlProcessInfo_t *p;
	size_t chosen[16], n = 0;
	unsigned int count;
	char uuid[96] = "?", *copy = strdup(list);

	for (char *save, *f = strtok_r(copy, ", ", &save); f && n < 16; f = strtok_r(NULL, ", ", &save)) {
		size_t i = 0;

		while (i < 6 && strcmp(f, known[i]) != 0)
			i++;
		if (i == 6) {
			fprintf(stderr, "nvidia-smi: field \"%s\" is not known; there are pid, process_name, used_memory, gpu_uuid\n", f);
			free(copy);
			return 2;
		}
		chosen[n++] = i;
	}
	free(copy);
	if (smi_processes(device, &p, &count) != 0) {
		free(p);
		fprintf(stderr, "nvidia-smi: the vGPU does not answer\n");
		return 1;
	}
	nvmlDeviceGetUUID(device, uuid, sizeof uuid);
	for (size_t i = 0; header && i < n; i++)
		printf("%s%s%s", i ? ", " : "", known[chosen[i]], units && (chosen[i] == 3 || chosen[i] == 4) ? " [MiB]" : "");
	if (header)
		putchar('\n');
	for (unsigned int k = 0; k < count; k++) {
		char name[96] = "?";

		nvmlSystemGetProcessName(p[k].pid, name, sizeof name);
		for (size_t i = 0; i < n; i++) {
			fputs(i ? ", " : "", stdout);
			switch (chosen[i]) {
			case 0: printf("%u", p[k].pid); break;
			case 1:
			case 2: fputs(name, stdout); break;
			case 5: fputs(uuid, stdout); break;
			default: printf("%llu%s", p[k].usedGpuMemory >> 20, units ? " MiB" : "");
			}
		}
		putchar('\n');
	}
	free(p);
	return 0;
}
