/* libnvidia-ml as frameworks use it: looked up by name in a loaded library. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvml.h"

static void *lib;

#define EXPECT(c)                                                                                                      \
	do {                                                                                                           \
		if (!(c)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c);                                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* What NCCL (src/misc/nvmlwrap.cc), PyTorch and vLLM look up. */
static const char *const wanted[] = {
	"nvmlInit", "nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetCount", "nvmlDeviceGetCount_v2",
	"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByIndex",
	"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetIndex", "nvmlDeviceGetPciInfo",
	"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkRemotePciInfo",
	"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkCapability",
	"nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetP2PStatus", "nvmlDeviceGetFieldValues",
	"nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetPlatformInfo", "nvmlSystemGetConfComputeState",
	"nvmlSystemGetConfComputeSettings", "nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetDriverVersion",
	"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2",
	"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage",
	"nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetCpuAffinity",
	"nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTotalEnergyConsumption",
	"nvmlDeviceGetArchitecture", "nvmlDeviceGetMigMode", "nvmlDeviceGetProcessUtilization",
};

static void *find(const char *name)
{
	void *f = dlsym(lib, name);

	if (!f) {
		fprintf(stderr, "%s is missing\n", name);
		exit(1);
	}
	return f;
}
#define CALL(name, ...) ((nvmlReturn_t(*)())find(#name))(__VA_ARGS__)
#define FAILS(want, name, ...)                                                                                         \
	do {                                                                                                           \
		nvmlReturn_t got = CALL(name, __VA_ARGS__);                                                            \
		if (got != (want)) {                                                                                   \
			fprintf(stderr, "%s:%d: %s gives %d, want %d\n", __FILE__, __LINE__, #name, got, want);        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static int (*synchronize)(void *stream);
static void *context;

static void *per_thread(void *p)
{
	int (*set)(void *) = (int (*)(void *))find("cuCtxSetCurrent");

	EXPECT(set(context) == 0);
	EXPECT(synchronize((void *)2) == 0); /* CU_STREAM_PER_THREAD: made here */
	EXPECT(dlclose(p) == 0);
	return NULL; /* the thread's end runs the library's destructor */
}

/* The library is loaded, used, unloaded and loaded again, and the process goes
 * on to fork and to end threads. */
static void unload(const char *path)
{
	pthread_t t;
	int status;

	for (int i = 0; i < 5; i++) {
		lib = dlopen(path, RTLD_NOW);
		EXPECT(lib);
		EXPECT(((int (*)(int))find("cuInit"))(0) == 0);
		EXPECT(((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, 0) == 0);
		synchronize = (int (*)(void *))find("cuStreamSynchronize");
		EXPECT(pthread_create(&t, NULL, per_thread, lib) == 0);
		pthread_join(t, NULL);
	}
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	nvmlDevice_t d = NULL, same = NULL, wild;
	char uuid[96], text[96];
	nvmlPciInfo_t pci;
	nvmlFieldValue_t values[2] = {{.fieldId = 1}, {.fieldId = 999}};
	nvmlMemory_v2_t m = {.version = sizeof m | 2u << 24};
	unsigned int n = 7;
	int major = -1, minor = -1, status = -1;

	EXPECT(argc == 3);
	lib = dlopen(argv[1], RTLD_NOW);
	if (!lib)
		fprintf(stderr, "%s\n", dlerror());
	EXPECT(lib);
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		(void)find(wanted[i]);
	FAILS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2, &n);
	FAILS(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetNvLinkState, d, 0, &n);
	FAILS(0, nvmlInit_v2);
	FAILS(0, nvmlDeviceGetCount_v2, &n);
	EXPECT(n == 1);
	FAILS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2, 1, &d);
	FAILS(0, nvmlDeviceGetHandleByIndex_v2, 0, &d);
	wild = (nvmlDevice_t)(void *)&n;
	FAILS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetUUID, wild, uuid, sizeof uuid);
	FAILS(0, nvmlDeviceGetUUID, d, uuid, sizeof uuid);
	FAILS(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetUUID, d, text, 5);
	FAILS(0, nvmlDeviceGetHandleByUUID, uuid, &same);
	EXPECT(same == d);
	FAILS(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID, "GPU-00000000-0000-0000-0000-000000000000", &same);
	FAILS(0, nvmlDeviceGetPciInfo_v3, d, &pci);
	FAILS(0, nvmlDeviceGetHandleByPciBusId_v2, pci.busId, &same);
	FAILS(0, nvmlDeviceGetCudaComputeCapability, d, &major, &minor);
	EXPECT(major == 9 && minor == 0);
	FAILS(0, nvmlDeviceGetMaxClockInfo, d, 1, &n);
	EXPECT(n == 1000); /* MHz of the soft GPU */
	FAILS(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMaxClockInfo, d, 3, &n);
	FAILS(0, nvmlDeviceGetArchitecture, d, &n);
	EXPECT(n == 9); /* Hopper, as 9.0 is */
	FAILS(0, nvmlDeviceGetMemoryInfo_v2, d, &m);
	EXPECT(m.total == 256ull << 20 && m.used + m.free == m.total);
	m.version = 1;
	FAILS(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetMemoryInfo_v2, d, &m);
	FAILS(0, nvmlDeviceGetP2PStatus, d, d, 0, &status);
	EXPECT(status == NVML_P2P_STATUS_NOT_SUPPORTED);
	FAILS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetP2PStatus, d, wild, 0, &status);
	FAILS(0, nvmlDeviceGetFieldValues, d, 2, values);
	EXPECT(values[0].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && values[1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED);
	FAILS(0, nvmlDeviceGetMPSComputeRunningProcesses_v3, d, &n, NULL);
	EXPECT(n == 0);
	FAILS(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkState, d, 0, &status);
	FAILS(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetGpuFabricInfoV, d, values);
	FAILS(NVML_ERROR_NOT_SUPPORTED, nvmlSystemGetConfComputeState, values);
	FAILS(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetNvLinkState, wild, 0, &status);
	FAILS(0, nvmlShutdown);
	FAILS(NVML_ERROR_UNINITIALIZED, nvmlShutdown);
	EXPECT(dlclose(lib) == 0);
	unload(argv[2]);
	puts("ok");
	return 0;
}
