/* dmon and pmon: repeated lines of numbers. A dash stands for an unknown value. */
#include <stdlib.h>
#include <string.h>

#include "smi.h"

#define HEAD_EACH 20 /* lines */

/* The columns of dmon. A letter of -s selects the columns that have it. */
static const struct column {
	char letter;
	const char *name, *unit;
	getter *get;
} columns[] = {
	{'p', "pwr", "W", v_power}, {'p', "gtemp", "C", v_temperature}, {'p', "mtemp", "C", v_none},
	{'u', "sm", "%", v_gpu}, {'u', "mem", "%", v_memory}, {'u', "enc", "%", v_none}, {'u', "dec", "%", v_none}, {'u', "jpg", "%", v_none}, {'u', "ofa", "%", v_none},
	{'c', "mclk", "MHz", v_clock_memory}, {'c', "pclk", "MHz", v_clock_graphics},
	{'v', "pviol", "%", v_none}, {'v', "tviol", "bool", v_none},
	{'m', "fb", "MB", v_memory_used}, {'m', "bar1", "MB", v_none}, {'m', "ccpm", "MB", v_none},
	{'e', "sbecc", "errs", v_none}, {'e', "dbecc", "errs", v_ecc_uncorrected}, {'e', "pci", "errs", v_none},
	{'t', "rxpci", "MB/s", v_none}, {'t', "txpci", "MB/s", v_none},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

struct monitor {
	const char *which, *select, *file, *id;
	long delay, count; /* delay in seconds; a count of 0 is unlimited */
	bool process;
};

static void device_head(FILE *out, const struct monitor *m)
{
	fputs("# gpu", out);
	for (size_t i = 0; i < COLUMNS; i++)
		if (strchr(m->select, columns[i].letter))
			fprintf(out, " %6s", columns[i].name);
	fputs("\n# Idx", out);
	for (size_t i = 0; i < COLUMNS; i++)
		if (strchr(m->select, columns[i].letter))
			fprintf(out, " %6s", columns[i].unit);
	fputc('\n', out);
}

static void device_line(FILE *out, const struct monitor *m, nvmlDevice_t device)
{
	fputs("    0", out);
	for (size_t i = 0; i < COLUMNS; i++) {
		struct value v = {""};

		if (!strchr(m->select, columns[i].letter))
			continue;
		columns[i].get(device, &v);
		if (columns[i].get == v_power && strchr(v.text, '.'))
			*strchr(v.text, '.') = 0; /* whole watts */
		fprintf(out, " %6s", *v.text ? v.text : "-");
	}
	fputc('\n', out);
}

static void process_head(FILE *out, const struct monitor *m)
{
	bool use = strchr(m->select, 'u'), memory = strchr(m->select, 'm');

	fprintf(out, "# gpu         pid   type%s%s    command \n", use ? "     sm    mem    enc    dec    jpg    ofa" : "", memory ? "     fb   ccpm" : "");
	fprintf(out, "# Idx           #    C/G%s%s    name \n", use ? "      %      %      %      %      %      %" : "", memory ? "     MB     MB" : "");
}

/* Returns the utilization of a process, or -1. */
static int busy(const nvmlProcessUtilizationSample_t *samples, unsigned int n, unsigned int pid)
{
	for (unsigned int i = 0; i < n; i++)
		if (samples[i].pid == pid)
			return (int)samples[i].smUtil;
	return -1;
}

static void process_line(FILE *out, const struct monitor *m, const nvmlProcessInfo_t *p, int load)
{
	struct value name = {""};
	char percent[16] = "-";

	if (load >= 0)
		snprintf(percent, sizeof percent, "%d", load);
	fprintf(out, "    0  %10u     C ", p->pid);
	if (strchr(m->select, 'u'))
		fprintf(out, " %6s %6s %6s %6s %6s %6s", percent, "-", "-", "-", "-", "-");
	if (strchr(m->select, 'm'))
		fprintf(out, " %6llu %6s", p->usedGpuMemory >> 20, "-");
	nvmlSystemGetProcessName(p->pid, name.text, sizeof name.text);
	for (char *c = name.text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	fprintf(out, "    %s\n", *name.text ? name.text : "-");
}

static nvmlReturn_t process_lines(FILE *out, const struct monitor *m, nvmlDevice_t device)
{
	nvmlProcessUtilizationSample_t samples[512];
	nvmlProcessInfo_t *list;
	unsigned int n, count = 512;
	nvmlReturn_t r = smi_processes(device, &list, &n);

	if (r == NVML_SUCCESS && nvmlDeviceGetProcessUtilization(device, samples, &count, 0) != NVML_SUCCESS)
		count = 0;
	for (unsigned int i = 0; r == NVML_SUCCESS && i < n; i++)
		process_line(out, m, &list[i], busy(samples, count, list[i].pid));
	if (r == NVML_SUCCESS && n == 0)
		fprintf(out, "    0  %10s     - %s%s    -\n", "-", strchr(m->select, 'u') ? "      -      -      -      -      -      -" : "", strchr(m->select, 'm') ? "      -      -" : "");
	free(list);
	return r;
}

static int watch(FILE *out, const struct monitor *m, nvmlDevice_t device)
{
	nvmlMemory_t memory;
	nvmlReturn_t r;

	for (long i = 0; m->count == 0 || i < m->count; i++) {
		if (i > 0)
			smi_sleep(m->delay * 1000);
		if (i % HEAD_EACH == 0)
			(m->process ? process_head : device_head)(out, m);
		r = m->process ? process_lines(out, m, device) : nvmlDeviceGetMemoryInfo(device, &memory);
		if (r)
			return smi_fail("the vGPU does not answer", r);
		if (!m->process)
			device_line(out, m, device);
		if (fflush(out) != 0)
			return EXIT_OTHER;
	}
	return 0;
}

static int bad(const struct monitor *m, const char *option, const char *wants)
{
	fprintf(stderr, "nvidia-smi: %s: %s: %s\n", m->which, option, wants);
	return EXIT_ARGUMENT;
}

static void help(const struct monitor *m)
{
	printf("usage: nvidia-smi %s [-i ID] [-d SECONDS] [-c COUNT] [-s LETTERS] [-f FILE]\n"
	       "    -i, --id=        index, UUID or bus id of the GPU\n"
	       "    -d, --delay=     seconds from line to line, 1 to 10\n"
	       "    -c, --count=     how many times; without end otherwise\n"
	       "    -s, --select=    %s\n"
	       "    -f, --filename=  write there\n",
	       m->which, m->process ? "u: utilization, m: memory" : "p: power and temperature, u: utilization, c: clocks, v: violations, m: memory, e: errors, t: PCIe");
}

/* Returns the argument of an option, "-d 2" or "--delay=2", or NULL if it is another option. */
static const char *argument(int argc, char **argv, int *i, const char *brief, const char *full)
{
	size_t n = strlen(full);

	if (strcmp(argv[*i], brief) == 0)
		return *i + 1 < argc ? argv[++*i] : "";
	return strncmp(argv[*i], full, n) == 0 && argv[*i][n] == '=' ? argv[*i] + n + 1 : NULL;
}

static int parse(struct monitor *m, int argc, char **argv)
{
	const char *known = m->process ? "um" : "pucvmet", *a;

	for (int i = 0; i < argc; i++) {
		if ((a = argument(argc, argv, &i, "-d", "--delay")) != NULL) {
			if ((m->delay = smi_number(a, 1, 10)) < 0)
				return bad(m, "-d", "want seconds from 1 to 10");
		} else if ((a = argument(argc, argv, &i, "-c", "--count")) != NULL) {
			if ((m->count = smi_number(a, 1, 1000000000)) < 0)
				return bad(m, "-c", "want how many times, at least 1");
		} else if ((a = argument(argc, argv, &i, "-s", "--select")) != NULL) {
			m->select = a;
			if (!*a || strspn(a, known) != strlen(a))
				return bad(m, "-s", m->process ? "want some of the letters u, m" : "want some of the letters p, u, c, v, m, e, t");
		} else if ((a = argument(argc, argv, &i, "-i", "--id")) != NULL) {
			m->id = a;
		} else if ((a = argument(argc, argv, &i, "-f", "--filename")) != NULL) {
			m->file = a;
		} else {
			return bad(m, argv[i], "is not an option; nvidia-smi dmon -h and pmon -h list them");
		}
	}
	return 0;
}

int smi_monitor(const char *which, int argc, char **argv)
{
	struct monitor m = {.which = which, .process = strcmp(which, "pmon") == 0, .delay = 1};
	FILE *out = stdout;
	nvmlDevice_t device;
	int rc;

	m.select = m.process ? "u" : "puc";
	if (argc == 1 && (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "--help") == 0)) {
		help(&m);
		return 0;
	}
	if ((rc = parse(&m, argc, argv)) != 0)
		return rc;
	if ((rc = smi_open()) != 0)
		return rc;
	if ((rc = smi_device(m.id, &device)) == 0) {
		if (m.file && (out = fopen(m.file, "w")) == NULL)
			rc = bad(&m, m.file, "cannot be written");
		else
			rc = watch(out, &m, device);
	}
	if (out && out != stdout && fclose(out) != 0)
		rc = EXIT_OTHER;
	smi_close();
	return rc;
}
