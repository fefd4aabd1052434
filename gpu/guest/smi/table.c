/* The table that people know. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "smi.h"

#define LINE "+-----------------------------------------------------------------------------------------+"

nvmlReturn_t smi_processes(nvmlDevice_t device, nvmlProcessInfo_t **out, unsigned int *n)
{
	nvmlReturn_t r = NVML_ERROR_MEMORY;

	*out = NULL;
	for (unsigned int room = 64; room <= 65536; room = *n + 64) { /* they may become more meanwhile */
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

static nvmlReturn_t process_table(nvmlDevice_t device)
{
	nvmlProcessInfo_t *p;
	unsigned int n;
	nvmlReturn_t r = smi_processes(device, &p, &n);

	if (r) {
		free(p);
		return r;
	}
	printf("\n%s\n| %-87s |\n| %-76s %10s |\n| %-76s %10s |\n|%.89s|\n", LINE, "Processes:",
	       " GPU   GI   CI        PID   Type   Process name", "GPU Memory", "       ID   ID", "Usage     ",
	       "=========================================================================================");
	if (n == 0)
		printf("| %-87s |\n", " No running processes found");
	for (unsigned int i = 0; i < n; i++) {
		char name[96] = "?";

		nvmlSystemGetProcessName(p[i].pid, name, sizeof name);
		printf("|    0   N/A  N/A  %9u      C   %-40.40s %11lluMiB |\n", p[i].pid, name, p[i].usedGpuMemory >> 20);
	}
	puts(LINE);
	free(p);
	return NVML_SUCCESS;
}

nvmlReturn_t smi_table(nvmlDevice_t device)
{
	char name[96] = "?", version[80] = "?", when[64], memory[64], power[32] = "N/A", temp[16] = "N/A", load[16], cuda[16];
	unsigned int watts, degrees;
	nvmlUtilization_t u;
	nvmlPciInfo_t pci = {0};
	nvmlMemory_t m;
	nvmlReturn_t r;
	int c = 0;
	time_t now = time(NULL);

	if ((r = nvmlDeviceGetMemoryInfo(device, &m)) != 0 || (r = nvmlDeviceGetUtilizationRates(device, &u)) != 0)
		return r;
	nvmlDeviceGetName(device, name, sizeof name);
	nvmlDeviceGetPciInfo_v3(device, &pci);
	nvmlSystemGetDriverVersion(version, sizeof version);
	nvmlSystemGetCudaDriverVersion(&c);
	snprintf(cuda, sizeof cuda, "%d.%d", c / 1000, c % 1000 / 10);
	if (nvmlDeviceGetTemperature(device, 0, &degrees) == 0)
		snprintf(temp, sizeof temp, "%uC", degrees);
	if (nvmlDeviceGetPowerUsage(device, &watts) == 0)
		snprintf(power, sizeof power, "%uW / N/A", watts / 1000);
	snprintf(memory, sizeof memory, "%lluMiB / %lluMiB", m.used >> 20, m.total >> 20);
	snprintf(load, sizeof load, "%u%%", u.gpu);
	strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", localtime(&now));
	printf("%s\n%s\n", when, LINE);
	printf("| NVIDIA-SMI %-17.17s  Driver Version: %-15.15s  CUDA Version: %-9.9s  |\n", version, version, cuda);
	puts("|-----------------------------------------+------------------------+----------------------+");
	puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |");
	puts("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |");
	puts("|=========================================+========================+======================|");
	printf("|   0  %-26.26s      On |   %16.16s Off |                  N/A |\n", name, pci.busId);
	printf("| N/A  %4.4s    P0    %20.20s | %22.22s | %7.7s      Default |\n", temp, power, memory, load);
	puts(LINE);
	return process_table(device);
}
