/* nvidia-smi: the table, the list, and queries as CSV. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvml.h"
#include "smi.h"

static nvmlDevice_t device;

static int fail(const char *what, nvmlReturn_t r)
{
	if (r == NVML_ERROR_DRIVER_NOT_LOADED)
		fprintf(stderr, "NVIDIA-SMI has failed because no Basalt vGPU was found.\n"
				"In a virtual machine: does it have a vGPU, is the virtio_gpu module loaded, may this user open /dev/dri/renderD*?\n"
				"Elsewhere: BASALT_GPU must name one (unix:PATH). BASALT_VERBOSE=1 says more.\n");
	else
		fprintf(stderr, "nvidia-smi: %s: %s\n", what, nvmlErrorString(r));
	return r == NVML_ERROR_DRIVER_NOT_LOADED ? 9 : 1;
}

static void usage(FILE *out)
{
	fputs("usage: nvidia-smi                      a table of the vGPU and its processes\n"
	      "       nvidia-smi -L                   one line for each GPU\n"
	      "       nvidia-smi --query-gpu=FIELD[,FIELD…] --format=csv[,noheader][,nounits]\n"
	      "       nvidia-smi --query-compute-apps=FIELD[,FIELD…] --format=csv[,noheader][,nounits]\n"
	      "       nvidia-smi --help-query-gpu     the fields\n",
	      out);
}

static int list(void)
{
	char name[96] = "?", uuid[96] = "?";

	nvmlDeviceGetName(device, name, sizeof name);
	nvmlDeviceGetUUID(device, uuid, sizeof uuid);
	printf("GPU 0: %s (UUID: %s)\n", name, uuid);
	return 0;
}

struct options {
	const char *gpu, *apps;
	int list, noheader, nounits, csv;
};

static int format(char *text, struct options *o)
{
	for (char *save, *f = strtok_r(text, ",", &save); f; f = strtok_r(NULL, ",", &save)) {
		if (strcmp(f, "csv") == 0)
			o->csv = 1;
		else if (strcmp(f, "noheader") == 0)
			o->noheader = 1;
		else if (strcmp(f, "nounits") == 0)
			o->nounits = 1;
		else
			return -1;
	}
	return 0;
}

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		char *a = argv[i], *value = strchr(a, '=');

		if (strcmp(a, "-L") == 0 || strcmp(a, "--list-gpus") == 0) {
			o->list = 1;
		} else if (strcmp(a, "-i") == 0 && i + 1 < argc) {
			if (strcmp(argv[++i], "0") != 0) {
				fprintf(stderr, "nvidia-smi: there is only GPU 0\n");
				return 6;
			}
		} else if (value && strncmp(a, "--query-gpu=", 12) == 0) {
			o->gpu = value + 1;
		} else if (value && strncmp(a, "--query-compute-apps=", 21) == 0) {
			o->apps = value + 1;
		} else if (value && strncmp(a, "--format=", 9) == 0) {
			if (format(value + 1, o) != 0) {
				fprintf(stderr, "nvidia-smi: %s: expected csv, noheader, nounits\n", a);
				return 2;
			}
		} else {
			fprintf(stderr, "nvidia-smi: unknown argument %s\n", a);
			usage(stderr);
			return 2;
		}
	}
	if ((o->gpu || o->apps) && !o->csv) {
		fprintf(stderr, "nvidia-smi: a query needs --format=csv\n");
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	nvmlReturn_t r;
	int rc;

	if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
		usage(stdout);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--help-query-gpu") == 0) {
		smi_fields(stdout);
		return 0;
	}
	if ((rc = parse(argc, argv, &o)) != 0)
		return rc;
	if ((r = nvmlInit_v2()) != NVML_SUCCESS)
		return fail("no session", r);
	if ((r = nvmlDeviceGetHandleByIndex_v2(0, &device)) != NVML_SUCCESS)
		rc = fail("no device", r);
	else if (o.list)
		rc = list();
	else if (o.gpu)
		rc = smi_query_gpu(device, o.gpu, !o.noheader, !o.nounits);
	else if (o.apps)
		rc = smi_query_apps(device, o.apps, !o.noheader, !o.nounits);
	else if ((r = smi_table(device)) != NVML_SUCCESS)
		rc = fail("the vGPU does not answer", r);
	nvmlShutdown();
	return rc;
}
