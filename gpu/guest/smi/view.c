/* Gets the content of the table from NVML. */
#include <stdlib.h>
#include <time.h>

#include "smi.h"
#include "table.h"

nvmlReturn_t smi_processes(nvmlDevice_t device, nvmlProcessInfo_t **out, unsigned int *n)
{
	nvmlReturn_t r = NVML_ERROR_MEMORY;

	*out = NULL;
	for (unsigned int room = 64; room <= 65536; room = *n + 64) { /* their number may grow in the meantime */
		nvmlProcessInfo_t *p = realloc(*out, room * sizeof *p);

		if (!p)
			return NVML_ERROR_MEMORY;
		*out = p;
		*n = room;
		if ((r = nvmlDeviceGetComputeRunningProcesses_v3(device, n, p)) != NVML_ERROR_INSUFFICIENT_SIZE)
			break;
	}
	return r;
}

static nvmlReturn_t processes(nvmlDevice_t device, struct smi_process **out, unsigned int *n)
{
	nvmlProcessInfo_t *p;
	nvmlReturn_t r = smi_processes(device, &p, n);

	*out = NULL;
	if (r == NVML_SUCCESS && (*out = calloc(*n + 1, sizeof **out)) == NULL)
		r = NVML_ERROR_MEMORY;
	for (unsigned int i = 0; r == NVML_SUCCESS && i < *n; i++) {
		struct smi_process *q = &(*out)[i];

		q->pid = p[i].pid;
		q->bytes = p[i].usedGpuMemory;
		if (nvmlSystemGetProcessName(q->pid, q->name, sizeof q->name) != 0)
			q->name[0] = '?'; /* it has ended in the meantime */
	}
	free(p);
	return r;
}

/* Gets the readings of the GPU's sensors. */
static void sensors(nvmlDevice_t device, struct smi_view *v)
{
	nvmlEnableState_t on, pending;
	unsigned long long errors;
	unsigned int n;

	v->degrees = nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &n) == 0 ? (int)n : -1;
	v->watts = nvmlDeviceGetPowerUsage(device, &n) == 0 ? (long)n / 1000 : -1;
	v->limit = nvmlDeviceGetEnforcedPowerLimit(device, &n) == 0 ? (long)n / 1000 : -1;
	v->fan = nvmlDeviceGetFanSpeed(device, &n) == 0 ? (int)n : -1;
	v->state = nvmlDeviceGetPerformanceState(device, &n) == 0 ? (int)n : -1;
	v->ecc = nvmlDeviceGetEccMode(device, &on, &pending) == 0 ? (int)on : -1;
	v->errors = nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors) == 0 ? (long long)errors : -1;
}

int smi_table(FILE *out, nvmlDevice_t device)
{
	struct smi_view v = {.name = "?", .driver = "?"};
	struct smi_process *list = NULL;
	nvmlUtilization_t u;
	nvmlPciInfo_t pci = {0};
	nvmlMemory_t m;
	nvmlReturn_t r;
	time_t now = time(NULL);

	if ((r = nvmlDeviceGetMemoryInfo(device, &m)) == 0 && (r = nvmlDeviceGetUtilizationRates(device, &u)) == 0)
		r = processes(device, &list, &v.process_count);
	if (r == NVML_SUCCESS) {
		nvmlDeviceGetName(device, v.name, sizeof v.name);
		nvmlSystemGetDriverVersion(v.driver, sizeof v.driver);
		nvmlSystemGetCudaDriverVersion(&v.cuda);
		nvmlDeviceGetPciInfo_v3(device, &pci);
		snprintf(v.bus, sizeof v.bus, "%s", pci.busId);
		sensors(device, &v);
		v.load = u.gpu;
		v.used = m.used;
		v.total = m.total;
		v.processes = list;
		smi_draw(out, &v, localtime(&now));
	}
	free(list);
	return r ? smi_fail("the vGPU does not answer", r) : 0;
}
