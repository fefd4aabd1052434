/* nvidia-smi: parses the command line, and prints the output once or repeatedly. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "smi.h"

int smi_fail(const char *what, nvmlReturn_t r)
{
	static const nvmlReturn_t documented[] = {2, 3, 4, 6, 8, 9, 10, 12, 13, 14, 15};

	fflush(stdout);
	if (r == NVML_ERROR_DRIVER_NOT_LOADED)
		fprintf(stderr, "NVIDIA-SMI has failed because no Basalt vGPU was found.\n"
				"In a virtual machine: does it have a vGPU, is the virtio_gpu module loaded, may this user open /dev/dri/renderD*?\n"
				"Elsewhere: BASALT_GPU must name one (unix:PATH). BASALT_VERBOSE=1 says more.\n");
	else
		fprintf(stderr, "nvidia-smi: %s: %s\n", what, nvmlErrorString(r));
	for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++)
		if (documented[i] == r)
			return r;
	return EXIT_OTHER;
}

long smi_number(const char *text, long least, long most)
{
	long n = 0;

	if (!*text || strlen(text) > 10)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = n * 10 + (*text - '0');
	}
	return n >= least && n <= most ? n : -1;
}

void smi_sleep(long milliseconds)
{
	struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	while (nanosleep(&left, &left) != 0)
		; /* interrupted by a signal: sleep the rest of the time */
}

int smi_open(void)
{
	nvmlReturn_t r = nvmlInit_v2();

	return r ? smi_fail("no session", r) : 0;
}

void smi_close(void)
{
	nvmlShutdown();
}

int smi_device(const char *id, nvmlDevice_t *device)
{
	unsigned int n = 0;
	nvmlReturn_t r;
	long index;

	if (!id)
		r = nvmlDeviceGetHandleByIndex_v2(0, device);
	else if ((index = smi_number(id, 0, 0x7fffffff)) >= 0)
		r = nvmlDeviceGetHandleByIndex_v2((unsigned int)index, device);
	else if (strncmp(id, "GPU-", 4) == 0)
		r = nvmlDeviceGetHandleByUUID(id, device);
	else
		r = nvmlDeviceGetHandleByPciBusId_v2(id, device);
	if (r == NVML_SUCCESS)
		return 0;
	if (id && (r == NVML_ERROR_INVALID_ARGUMENT || r == NVML_ERROR_NOT_FOUND)) {
		nvmlDeviceGetCount_v2(&n);
		fprintf(stderr, "nvidia-smi: -i: there is no GPU \"%s\"; there are %u, counted from 0\n", id, n);
		return EXIT_NOT_FOUND;
	}
	return smi_fail("no device", r);
}

int smi_list(FILE *out, nvmlDevice_t device)
{
	struct value name = {""}, uuid = {""};

	v_name(device, &name);
	v_uuid(device, &uuid);
	fprintf(out, "GPU 0: %s (UUID: %s)\n", name.text, uuid.text);
	return 0;
}

int smi_version(FILE *out)
{
	struct value driver = {""}, cuda = {""};
	char nvml[64] = "";

	v_driver(NULL, &driver);
	v_cuda(NULL, &cuda);
	nvmlSystemGetNVMLVersion(nvml, sizeof nvml);
	fprintf(out, "NVIDIA-SMI version  : %s\nNVML version        : %s\nDRIVER version      : %s\nCUDA Version        : %s\n",
		driver.text, nvml, driver.text, cuda.text);
	return 0;
}

enum what { TABLE, LIST, QUERY, REPORT, VERSION };

/* The output that the command line requests. */
struct asked {
	enum what what;
	struct query query;
	struct report report;
	bool csv, format;
	const char *id, *file;
	long every; /* interval in milliseconds; 0: once */
};

static void usage(FILE *out)
{
	fputs("usage: nvidia-smi [OPTION]…\n"
	      "  without an option           a table of the vGPU and its processes\n"
	      "  -L, --list-gpus             one line for each GPU\n"
	      "  -q, --query                 all values; -d SECTION[,SECTION…] (--display=): only these sections;\n"
	      "                              -x, --xml-format: as XML\n"
	      "  --query-gpu=FIELD[,FIELD…]  values of the GPU, with --format=csv[,noheader][,nounits]\n"
	      "  --query-compute-apps=…      values of the running processes\n"
	      "  --query-accounted-apps=…    accounting of processes, including those that have ended\n"
	      "  --help-query-gpu, --help-query-compute-apps, --help-query-accounted-apps\n"
	      "                              list the fields\n"
	      "  -i, --id=ID                 the GPU: index, UUID or bus id\n"
	      "  -f, --filename=FILE         write the output to a file\n"
	      "  -l, --loop=SECONDS, -lms, --loop-ms=MILLISECONDS\n"
	      "                              repeat the output at this interval\n"
	      "  dmon, pmon                  monitor the GPU or its processes, one line per interval (see -h)\n"
	      "  topo -m                     the connections between GPUs\n"
	      "  --version                   print versions\n"
	      "  -h, --help                  print this help\n"
	      "Only the host's operator can use options that change the GPU (-pl, -pm, -c, -r and similar).\n"
	      "Exit status: 0; 2 invalid argument; 3 not supported; 4 not permitted; 6 not found; 9 no vGPU;\n"
	      "15 the GPU is lost; 255 another error.\n",
	      out);
}

/* Reports whether an option changes the GPU. */
static bool changes_gpu(const char *a)
{
	static const char *const options[] = {
		"-pm", "--persistence-mode", "-e", "--ecc-config", "-p", "--reset-ecc-errors", "-c", "--compute-mode", "--gom", "-r", "--gpu-reset",
		"-vm", "--virt-mode", "-lgc", "--lock-gpu-clocks", "-lgcd", "-rgc", "--reset-gpu-clocks", "-lmc", "--lock-memory-clocks", "-rmc",
		"--reset-memory-clocks", "-ac", "--applications-clocks", "-rac", "--reset-applications-clocks", "-pl", "--power-limit", "-cc",
		"--cuda-clocks", "-am", "--accounting-mode", "-caa", "--clear-accounted-apps", "--auto-boost-default", "--auto-boost-permission",
		"-acp", "--applications-clocks-permission", "-mig", "--multi-instance-gpu", "-gtt", "--gpu-target-temp", "drain", "mig", "boost-slider",
	};

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		size_t n = strlen(options[i]);

		if (strncmp(a, options[i], n) == 0 && (a[n] == 0 || (a[n] == '=' && n > 2)))
			return true;
	}
	return false;
}

static int wrong(const char *option, const char *wants)
{
	fprintf(stderr, "nvidia-smi: %s: %s\n", option, wants);
	return EXIT_ARGUMENT;
}

static int format(const char *list, struct asked *o)
{
	char *copy = strdup(list), *save = NULL;
	int rc = copy ? 0 : EXIT_OTHER;

	o->format = true;
	for (char *f = copy ? strtok_r(copy, ", ", &save) : NULL; f && rc == 0; f = strtok_r(NULL, ", ", &save)) {
		if (strcmp(f, "csv") == 0)
			o->csv = true;
		else if (strcmp(f, "noheader") == 0)
			o->query.header = false;
		else if (strcmp(f, "nounits") == 0)
			o->query.units = false;
		else
			rc = wrong("--format", "want csv, noheader, nounits");
	}
	free(copy);
	return rc;
}

/* Options with an argument. */
enum option { ID, FILENAME, DISPLAY, LOOP, LOOP_MS, FORMAT, QUERY_OF };
static const struct {
	const char *brief, *full;
	enum option option;
	enum subject subject; /* the subject of QUERY_OF */
} options[] = {
	{"-i", "--id", ID, 0},
	{"-f", "--filename", FILENAME, 0},
	{"-d", "--display", DISPLAY, 0},
	{"-l", "--loop", LOOP, 0},
	{"-lms", "--loop-ms", LOOP_MS, 0},
	{"", "--format", FORMAT, 0},
	{"", "--query-gpu", QUERY_OF, QUERY_GPU},
	{"", "--query-compute-apps", QUERY_OF, QUERY_COMPUTE_APPS},
	{"", "--query-accounted-apps", QUERY_OF, QUERY_ACCOUNTED_APPS},
};
#define OPTIONS (sizeof options / sizeof options[0])

static int with_argument(struct asked *o, size_t which, const char *a)
{
	switch (options[which].option) {
	case ID: o->id = a; return 0;
	case FILENAME: o->file = a; return 0;
	case DISPLAY: return smi_sections(a, &o->report.sections);
	case LOOP:
		o->every = smi_number(a, 1, 1000000) * 1000;
		return o->every < 0 ? wrong(options[which].full, "want seconds, at least 1") : 0;
	case LOOP_MS:
		o->every = smi_number(a, 1, 1000000000);
		return o->every < 0 ? wrong(options[which].full, "want milliseconds, at least 1") : 0;
	case FORMAT: return format(a, o);
	case QUERY_OF:
		if (o->what != TABLE)
			return wrong(options[which].full, "only one query can be made at a time");
		o->what = QUERY;
		o->query.subject = options[which].subject;
		o->query.fields = a;
		return smi_query_check(&o->query);
	}
	return EXIT_OTHER;
}

/* Handles an option without an argument. Returns -1 if it is not one. */
static int flag_option(struct asked *o, const char *a)
{
	static const struct {
		const char *brief, *full;
		enum what what;
	} words[] = {{"-L", "--list-gpus", LIST}, {"-q", "--query", REPORT}, {"", "--version", VERSION}};

	if (strcmp(a, "-x") == 0 || strcmp(a, "--xml-format") == 0) {
		o->report.xml = true;
		return 0;
	}
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcmp(a, words[i].brief) != 0 && strcmp(a, words[i].full) != 0)
			continue;
		if (o->what != TABLE && o->what != words[i].what)
			return wrong(a, "only one query can be made at a time");
		o->what = words[i].what;
		return 0;
	}
	return -1;
}

/* Handles one option. If it has an argument, *i advances to that. */
static int option(struct asked *o, int argc, char **argv, int *i)
{
	const char *a = argv[*i];
	int rc = flag_option(o, a);

	if (rc >= 0)
		return rc;
	for (size_t k = 0; k < OPTIONS; k++) {
		size_t n = strlen(options[k].full);

		if (strncmp(a, options[k].full, n) == 0 && a[n] == '=')
			return with_argument(o, k, a + n + 1);
		if (strcmp(a, options[k].brief) == 0 || strcmp(a, options[k].full) == 0)
			return *i + 1 < argc ? with_argument(o, k, argv[++*i]) : wrong(a, "an argument is missing");
	}
	if (changes_gpu(a)) {
		fprintf(stderr, "nvidia-smi: %s: Insufficient Permissions: only the host's operator can change the GPU\n", a);
		return EXIT_PERMISSION;
	}
	return wrong(a, "is not an option; nvidia-smi --help lists them");
}

static int parse(struct asked *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int rc = option(o, argc, argv, &i);

		if (rc)
			return rc;
	}
	if (o->what == QUERY && !o->csv)
		return wrong("--query-…", "needs --format=csv");
	if (o->format && o->what != QUERY)
		return wrong("--format", "can only be used with --query-gpu=, --query-compute-apps= or --query-accounted-apps=");
	if ((o->report.xml || o->report.sections) && o->what != REPORT)
		return wrong(o->report.xml ? "-x" : "-d", "can only be used with -q");
	return 0;
}

static int once(FILE *out, const struct asked *o, nvmlDevice_t device, bool first)
{
	switch (o->what) {
	case LIST: return smi_list(out, device);
	case QUERY: return smi_query(out, device, &o->query, first);
	case REPORT: return smi_report(out, device, &o->report);
	case VERSION: return smi_version(out);
	default: return smi_table(out, device);
	}
}

static int print_output(const struct asked *o)
{
	FILE *out = o->file ? fopen(o->file, "w") : stdout;
	nvmlDevice_t device;
	int rc;

	if (!out)
		return wrong(o->file, "cannot be written");
	for (bool first = true;; first = false) {
		rc = smi_device(o->id, &device);
		if (rc == 0)
			rc = once(out, o, device, first);
		if (fflush(out) != 0 && rc == 0)
			rc = EXIT_OTHER;
		if (rc || !o->every)
			break;
		smi_sleep(o->every);
	}
	if (out != stdout && fclose(out) != 0 && rc == 0)
		rc = EXIT_OTHER;
	return rc;
}

/* Prints help, which needs no vGPU. Returns -1 if the option does not request it. */
static int help(const char *a)
{
	static const char *const fields[SUBJECTS] = {"--help-query-gpu", "--help-query-compute-apps", "--help-query-accounted-apps"};

	if (strcmp(a, "-h") == 0 || strcmp(a, "--help") == 0) {
		usage(stdout);
		return 0;
	}
	for (int s = 0; s < SUBJECTS; s++) {
		if (strcmp(a, fields[s]) == 0) {
			smi_query_help(stdout, (enum subject)s);
			return 0;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct asked o = {.query = {.header = true, .units = true}};
	int rc;

	if (argc == 2 && (rc = help(argv[1])) >= 0)
		return rc;
	if (argc > 1 && (strcmp(argv[1], "dmon") == 0 || strcmp(argv[1], "pmon") == 0))
		return smi_monitor(argv[1], argc - 2, argv + 2);
	if (argc > 1 && strcmp(argv[1], "topo") == 0)
		return smi_topology(stdout, argc - 2, argv + 2);
	if ((rc = parse(&o, argc, argv)) != 0 || (rc = smi_open()) != 0)
		return rc;
	rc = print_output(&o);
	smi_close();
	return rc;
}
