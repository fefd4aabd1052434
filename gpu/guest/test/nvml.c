/* Tests of libnvidia-ml as frameworks use it: functions are looked up by name in the loaded
 * library. */
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
			fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #c);                                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* The functions that NCCL (src/misc/nvmlwrap.cc), PyTorch and vLLM look up. */
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
		fprintf(stderr, "the library does not export %s\n", name);
		exit(1);
	}
	return f;
}
#define CALL(name, ...) ((nvmlReturn_t(*)())find(#name))(__VA_ARGS__)
#define GIVES(want, name, ...)                                                                                         \
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
	EXPECT(synchronize((void *)2) == 0); /* CU_STREAM_PER_THREAD, which is created here */
	EXPECT(dlclose(p) == 0);
	return NULL; /* the thread's end runs the library's destructor */
}

/* The library is loaded, used, unloaded and loaded again. Afterwards the process can still fork
 * and end threads. */
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

/* Each version writes only as many bytes as old programs have room for. */
static void pci_versions(nvmlDevice_t d)
{
	char v1[33], v2[53];
	nvmlPciInfo_t pci;
	nvmlPciInfoExt_t ext = {.version = VERSION_nvmlPciInfoExt_v1};
	nvmlDevice_t same = NULL;

	memset(v1, 'x', sizeof v1);
	memset(v2, 'x', sizeof v2);
	GIVES(0, nvmlDeviceGetPciInfo, d, v1);
	EXPECT(v1[32] == 'x' && v1[0] != 'x');
	GIVES(0, nvmlDeviceGetPciInfo_v2, d, v2);
	EXPECT(v2[52] == 'x' && v2[0] != 'x');
	GIVES(0, nvmlDeviceGetPciInfo_v3, d, &pci);
	EXPECT(memcmp(v1, &pci, 32) == 0 && memcmp(v2, &pci, 36) == 0);
	GIVES(0, nvmlDeviceGetPciInfoExt, d, &ext);
	EXPECT(strcmp(ext.busId, pci.busId) == 0);
	GIVES(0, nvmlDeviceGetHandleByPciBusId_v2, pci.busId, &same);
	EXPECT(same == d);
	GIVES(0, nvmlDeviceGetHandleByPciBusId_v2, pci.busIdLegacy, &same);
	GIVES(0, nvmlDeviceGetHandleByPciBusId_v2, pci.busIdLegacy + 5, &same);
	GIVES(0, nvmlDeviceGetHandleByPciBusId_v2, "0:0:0", &same);
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByPciBusId_v2, "00000000:7F:1F.0", &same);
	static const char *const bad[] = {"", ":", "::", "0", "0:0:0.0.0", "0:0:0:0", "0:0:0.1", "0:0:x", "000000000:0:0", "0:0:0.0 ", "-1:0:0"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByPciBusId_v2, bad[i], &same);
}

static void identity(nvmlDevice_t d, const char *uuid)
{
	nvmlUUID_t id = {.version = VERSION_nvmlUUID_v1, .type = 1};
	nvmlDevice_t same = NULL;
	char text[96];

	memcpy(id.value.str, uuid, strnlen(uuid, sizeof id.value.str));
	GIVES(0, nvmlDeviceGetHandleByUUIDV, &id, &same);
	EXPECT(same == d);
	id.type = 2;
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUIDV, &id, &same);
	id.type = 3;
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByUUIDV, &id, &same);
	id.version++;
	GIVES(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetHandleByUUIDV, &id, &same);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetSerial, d, text, sizeof text);
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleBySerial, "0123456789", &same);
	GIVES(NVML_ERROR_NO_PERMISSION, nvmlDeviceSetPersistenceMode, d, 1);
	GIVES(NVML_ERROR_NO_PERMISSION, nvmlDeviceSetPowerManagementLimit, d, 100000);
	const char *(*say)(int) = (const char *(*)(int))find("nvmlErrorString");

	EXPECT(strcmp(say(0), "Success") == 0 && strcmp(say(10), "Timeout") == 0 && strcmp(say(999), "Unknown Error") == 0);
	EXPECT(strcmp(say(-1), "Unknown Error") == 0 && strcmp(say(31), "Unknown Error") == 0);
	for (int i = 0; i <= 30; i++)
		EXPECT(say(i) && strcmp(say(i), "Unknown Error") != 0);
}

/* The readings that the soft GPU reports, and those that it does not. */
static void readings(nvmlDevice_t d)
{
	nvmlTemperature_t t = {.version = VERSION_nvmlTemperature_v1};
	nvmlFieldValue_t values[4] = {{.fieldId = 1}, {.fieldId = 302}, {.fieldId = 303}, {.fieldId = 190}};
	unsigned long long reasons = 7;
	unsigned int n = 7, pending = 7;

	for (unsigned int clock = 0; clock < 3; clock++) {
		GIVES(0, nvmlDeviceGetClockInfo, d, clock, &n);
		EXPECT(n == 1000);
		GIVES(0, nvmlDeviceGetMaxClockInfo, d, clock, &n);
		EXPECT(n == 1000);
	}
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetClockInfo, d, 3, &n);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetClockInfo, d, 4, &n);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetMaxClockInfo, d, 0xffffffffu, &n);
	GIVES(0, nvmlDeviceGetClock, d, 1, 0, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetClock, d, 1, 2, &n);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetClock, d, 1, 4, &n);
	GIVES(0, nvmlDeviceGetPerformanceState, d, &n);
	EXPECT(n == 0);
	GIVES(0, nvmlDeviceGetCurrentClocksThrottleReasons, d, &reasons);
	EXPECT(reasons == 0);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTemperature, d, 0, &n);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetTemperature, d, 1, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTemperatureV, d, &t);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTemperatureThreshold, d, 0, &n);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetTemperatureThreshold, d, 8, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetPowerUsage, d, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetEnforcedPowerLimit, d, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetFanSpeed, d, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetCurrPcieLinkGeneration, d, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetCurrPcieLinkWidth, d, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMaxPcieLinkGeneration, d, &n);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMaxPcieLinkWidth, d, &n);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetMaxPcieLinkWidth, d, NULL);
	GIVES(0, nvmlDeviceGetEccMode, d, &n, &pending);
	EXPECT(n == 0 && pending == 0);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTotalEccErrors, d, 1, 0, &reasons);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetTotalEccErrors, d, 2, 0, &reasons);
	GIVES(0, nvmlDeviceGetFieldValues, d, 4, values);
	EXPECT(values[0].nvmlReturn == 0 && values[0].valueType == NVML_VALUE_TYPE_UNSIGNED_INT && values[0].value.uiVal == 0);
	EXPECT(values[1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && values[2].nvmlReturn == NVML_ERROR_INVALID_ARGUMENT);
	EXPECT(values[3].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && values[3].timestamp > 1500000000000000ll);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetFieldValues, d, 0, values);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetFieldValues, d, -1, values);
	GIVES(0, nvmlDeviceClearFieldValues, d, 4, values);
	EXPECT(values[0].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && values[2].nvmlReturn == NVML_ERROR_INVALID_ARGUMENT);
}

#define XID 8ull /* nvmlEventTypeXidCriticalError */

static void events(nvmlDevice_t d)
{
	struct nvmlEventSet_st *set = NULL, *many[64];
	unsigned long long types = 7;
	char data[32];
	int n = 0;

	GIVES(0, nvmlEventSetCreate, &set);
	GIVES(0, nvmlDeviceGetSupportedEventTypes, d, &types);
	EXPECT(types == XID);
	GIVES(0, nvmlDeviceRegisterEvents, d, 0ull, set);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceRegisterEvents, d, 4ull, set);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceRegisterEvents, d, XID | 1ull, set);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceRegisterEvents, d, 0ull, (char *)set + 1);
	GIVES(NVML_ERROR_TIMEOUT, nvmlEventSetWait_v2, set, data, 10);
	GIVES(NVML_ERROR_TIMEOUT, nvmlEventSetWait, set, data, 0);
	GIVES(0, nvmlEventSetFree, set);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetFree, set);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetWait_v2, set, data, 0);
	while (n < 64 && CALL(nvmlEventSetCreate, &many[n]) == 0)
		n++;
	EXPECT(n == 64);
	GIVES(NVML_ERROR_INSUFFICIENT_RESOURCES, nvmlEventSetCreate, &set);
	while (n > 0)
		GIVES(0, nvmlEventSetFree, many[--n]);
}

/* Uses libcuda in this process: allocates 16 MiB of the vGPU and runs work. */
static void *use(const char *path)
{
	void *cuda = dlopen(path, RTLD_NOW), *ml = lib;
	unsigned long long memory = 0;

	EXPECT(cuda);
	lib = cuda;
	EXPECT(((int (*)(int))find("cuInit"))(0) == 0);
	EXPECT(((int (*)(void **, unsigned int, int))find("cuCtxCreate_v2"))(&context, 0, 0) == 0);
	EXPECT(((int (*)(unsigned long long *, size_t))find("cuMemAlloc_v2"))(&memory, 16u << 20) == 0);
	EXPECT(((int (*)(unsigned long long, unsigned char, size_t))find("cuMemsetD8_v2"))(memory, 1, 16u << 20) == 0);
	EXPECT(((int (*)(void))find("cuCtxSynchronize"))() == 0);
	lib = ml;
	return cuda;
}

/* Runs a kernel of this process that stores to an address where nothing is. */
static void fault(void *cuda)
{
	static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry stray()\n{\n"
				  ".reg .u64 %a;\n.reg .u32 %v;\nmov.u64 %a, 16;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";
	void *ml = lib, *other, *module, *f;

	lib = cuda;
	EXPECT(((int (*)(void **, unsigned int, int))find("cuCtxCreate_v2"))(&other, 0, 0) == 0);
	EXPECT(((int (*)(void **, const void *))find("cuModuleLoadData"))(&module, ptx) == 0);
	EXPECT(((int (*)(void **, void *, const char *))find("cuModuleGetFunction"))(&f, module, "stray") == 0);
	EXPECT(((int (*)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, void *, void **, void **))
			find("cuLaunchKernel"))(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 0);
	EXPECT(((int (*)(void))find("cuCtxSynchronize"))() == 700);
	(void)((int (*)(void *))find("cuCtxDestroy_v2"))(other);
	lib = ml;
}

/* A fault of a context is one event of each set that is registered for it before. */
static void xid(nvmlDevice_t d, void *cuda)
{
	enum { LONG = 60000 };
	struct nvmlEventSet_st *set, *silent, *late;
	nvmlEventData_t data;

	GIVES(0, nvmlEventSetCreate, &set);
	GIVES(0, nvmlEventSetCreate, &silent);
	GIVES(0, nvmlEventSetCreate, &late);
	GIVES(0, nvmlDeviceRegisterEvents, d, XID, set);
	GIVES(0, nvmlDeviceRegisterEvents, d, 0ull, silent);
	for (int i = 0; i < 2; i++) {
		fault(cuda);
		memset(&data, 0xff, sizeof data);
		GIVES(0, nvmlEventSetWait_v2, set, &data, LONG);
		EXPECT(data.device == d && data.eventType == XID && data.eventData == 31 && data.gpuInstanceId == ~0u && data.computeInstanceId == ~0u);
		GIVES(NVML_ERROR_TIMEOUT, nvmlEventSetWait_v2, set, &data, 0);
		GIVES(NVML_ERROR_TIMEOUT, nvmlEventSetWait_v2, silent, &data, 0);
		if (i == 0) {
			GIVES(0, nvmlDeviceRegisterEvents, d, XID, late);
			GIVES(NVML_ERROR_TIMEOUT, nvmlEventSetWait_v2, late, &data, 0);
		}
	}
	GIVES(0, nvmlEventSetWait_v2, late, &data, LONG);
	GIVES(0, nvmlEventSetFree, late);
	GIVES(0, nvmlEventSetFree, silent);
	GIVES(0, nvmlEventSetFree, set);
}

static void no_use(void *cuda)
{
	void *ml = lib;

	lib = cuda;
	EXPECT(((int (*)(void *))find("cuCtxDestroy_v2"))(context) == 0);
	lib = ml;
	EXPECT(dlclose(cuda) == 0);
}

static void processes(nvmlDevice_t d)
{
	static const char *const forms[] = {"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"};
	static const size_t sizes[] = {sizeof(nvmlProcessInfo_v1_t), sizeof(nvmlProcessInfo_v2_t), sizeof(nvmlProcessInfo_t)};
	nvmlProcessDetail_v1_t detail = {0};
	nvmlProcessDetailList_t list = {.version = VERSION_nvmlProcessDetailList_v1};
	char buffer[80], name[96], one[1] = "x";
	unsigned int n;

	for (int i = 0; i < 3; i++) {
		nvmlReturn_t (*f)() = (nvmlReturn_t(*)())find(forms[i]);
		nvmlProcessInfo_v1_t first;

		n = 0;
		EXPECT(f(d, &n, NULL) == NVML_ERROR_INSUFFICIENT_SIZE && n == 1);
		memset(buffer, 'x', sizeof buffer);
		EXPECT(f(d, &n, buffer) == 0 && n == 1);
		memcpy(&first, buffer, sizeof first);
		EXPECT(first.pid == (unsigned int)getpid() && first.usedGpuMemory >= 16u << 20);
		EXPECT(buffer[sizes[i]] == 'x');
	}
	GIVES(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetRunningProcessDetailList, d, &list);
	EXPECT(list.numProcArrayEntries == 1);
	list.procArray = &detail;
	GIVES(0, nvmlDeviceGetRunningProcessDetailList, d, &list);
	EXPECT(detail.pid == (unsigned int)getpid() && detail.gpuInstanceId == 0xffffffffu);
	list.mode = 3;
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetRunningProcessDetailList, d, &list);
	GIVES(0, nvmlSystemGetProcessName, getpid(), name, sizeof name);
	EXPECT(strstr(name, "nvml-names"));
	GIVES(0, nvmlSystemGetProcessName, getpid(), one, 1);
	EXPECT(one[0] == 0);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlSystemGetProcessName, getpid(), name, 0);
	GIVES(NVML_ERROR_NOT_FOUND, nvmlSystemGetProcessName, 0x7fffffff, name, sizeof name);
}

/* Waits until the host reports the work, which it does with some delay. */
static void utilization(nvmlDevice_t d)
{
	nvmlProcessUtilizationSample_t sample[2];
	nvmlProcessUtilizationInfo_v1_t info;
	nvmlProcessesUtilizationInfo_t all = {.version = VERSION_nvmlProcessesUtilizationInfo_v1};
	nvmlSample_t samples[64];
	unsigned int n = 0, type = 7;
	nvmlReturn_t r;

	for (int i = 0; (r = CALL(nvmlDeviceGetProcessUtilization, d, NULL, &n, 0ull)) == NVML_ERROR_NOT_FOUND && i < 3000; i++)
		usleep(10000);
	EXPECT(r == NVML_ERROR_INSUFFICIENT_SIZE && n == 1);
	n = 2;
	GIVES(0, nvmlDeviceGetProcessUtilization, d, sample, &n, 0ull);
	EXPECT(n == 1 && sample[0].pid == (unsigned int)getpid() && sample[0].smUtil <= 100 && sample[0].timeStamp > 1500000000000000ull);
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetProcessUtilization, d, sample, &n, ~0ull);
	EXPECT(n == 0);
	GIVES(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetProcessesUtilizationInfo, d, &all);
	EXPECT(all.processSamplesCount == 1);
	all.procUtilArray = &info;
	GIVES(0, nvmlDeviceGetProcessesUtilizationInfo, d, &all);
	EXPECT(info.pid == (unsigned int)getpid());
	GIVES(0, nvmlDeviceGetSamples, d, 1, 0ull, &type, &n, NULL);
	EXPECT(n > 0 && n <= 64 && type == NVML_VALUE_TYPE_UNSIGNED_INT);
	GIVES(0, nvmlDeviceGetSamples, d, 1, 0ull, &type, &n, samples);
	for (unsigned int i = 0; i < n; i++)
		EXPECT(samples[i].sampleValue.uiVal <= 100 && (i == 0 || samples[i].timeStamp > samples[i - 1].timeStamp));
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetSamples, d, 1, ~0ull, &type, &n, samples);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetSamples, d, 0, 0ull, &type, &n, samples);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetSamples, d, 9, 0ull, &type, &n, samples);
}

/* Accounting of a running process, and of one that has ended. */
static void accounting(nvmlDevice_t d, const char *cuda)
{
	nvmlAccountingStats_t s;
	unsigned int mode = 7, n = 0, pids[512], found = 0;
	int status;
	pid_t child = fork();

	if (child == 0) {
		use(cuda);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	GIVES(0, nvmlDeviceGetAccountingMode, d, &mode);
	EXPECT(mode == NVML_FEATURE_ENABLED);
	GIVES(0, nvmlDeviceGetAccountingBufferSize, d, &n);
	EXPECT(n > 0);
	GIVES(NVML_ERROR_NO_PERMISSION, nvmlDeviceSetAccountingMode, d, 0);
	n = 1;
	GIVES(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetAccountingPids, d, &n, pids);
	EXPECT(n >= 2 && n <= 512); /* others may have ended lately */
	GIVES(0, nvmlDeviceGetAccountingPids, d, &n, pids);
	for (unsigned int i = 0; i < n; i++)
		found += pids[i] == (unsigned int)getpid() || pids[i] == (unsigned int)child;
	EXPECT(found == 2);
	GIVES(0, nvmlDeviceGetAccountingStats, d, getpid(), &s);
	EXPECT(s.isRunning == 1 && s.time == 0 && s.maxMemoryUsage >= 16u << 20 && s.gpuUtilization <= 100 && s.memoryUtilization == 0xffffffffu);
	for (int i = 0; CALL(nvmlDeviceGetAccountingStats, d, child, &s) == 0 && s.isRunning && i < 3000; i++)
		usleep(10000);
	EXPECT(s.isRunning == 0 && s.time > 0 && s.maxMemoryUsage >= 16u << 20 && s.startTime > 1500000000000000ull);
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetAccountingStats, d, 0x7fffffff, &s);
}

int main(int argc, char **argv)
{
	nvmlDevice_t d = NULL, same = NULL, wild;
	char uuid[96], text[96];
	nvmlPciInfo_t pci;
	nvmlFieldValue_t values[2] = {{.fieldId = 3}, {.fieldId = 999}};
	void *cuda;
	nvmlMemory_v2_t m = {.version = sizeof m | 2u << 24};
	unsigned int n = 7;
	int major = -1, minor = -1, status = -1;

	EXPECT(argc == 3);
	if (strcmp(argv[1], "hold") == 0) { /* the argument is the path of the driver API's library */
		use(argv[2]);
		puts("holding");
		fflush(stdout);
		(void)getchar();
		_exit(0);
	}
	lib = dlopen(argv[1], RTLD_NOW);
	if (!lib)
		fprintf(stderr, "%s\n", dlerror());
	EXPECT(lib);
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		(void)find(wanted[i]);
	GIVES(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2, &n);
	GIVES(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetNvLinkState, d, 0, &n);
	GIVES(0, nvmlInit_v2);
	GIVES(0, nvmlDeviceGetCount_v2, &n);
	EXPECT(n == 1);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2, 1, &d);
	GIVES(0, nvmlDeviceGetHandleByIndex_v2, 0, &d);
	wild = (nvmlDevice_t)(void *)&n;
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetUUID, wild, uuid, sizeof uuid);
	GIVES(0, nvmlDeviceGetUUID, d, uuid, sizeof uuid);
	GIVES(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetUUID, d, text, 5);
	GIVES(0, nvmlDeviceGetHandleByUUID, uuid, &same);
	EXPECT(same == d);
	GIVES(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID, "GPU-00000000-0000-0000-0000-000000000000", &same);
	GIVES(0, nvmlDeviceGetPciInfo_v3, d, &pci);
	GIVES(0, nvmlDeviceGetHandleByPciBusId_v2, pci.busId, &same);
	GIVES(0, nvmlDeviceGetCudaComputeCapability, d, &major, &minor);
	EXPECT(major == 9 && minor == 0);
	GIVES(0, nvmlDeviceGetMaxClockInfo, d, 1, &n);
	EXPECT(n == 1000); /* MHz of the soft GPU */
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMaxClockInfo, d, 3, &n);
	GIVES(0, nvmlDeviceGetArchitecture, d, &n);
	EXPECT(n == 9); /* Hopper, as 9.0 is */
	GIVES(0, nvmlDeviceGetMemoryInfo_v2, d, &m);
	EXPECT(m.total == 256ull << 20 && m.used + m.free == m.total);
	m.version = 1;
	GIVES(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetMemoryInfo_v2, d, &m);
	GIVES(0, nvmlDeviceGetP2PStatus, d, d, 0, &status);
	EXPECT(status == NVML_P2P_STATUS_NOT_SUPPORTED);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetP2PStatus, d, wild, 0, &status);
	GIVES(0, nvmlDeviceGetFieldValues, d, 2, values);
	EXPECT(values[0].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && values[1].nvmlReturn == NVML_ERROR_INVALID_ARGUMENT);
	GIVES(0, nvmlDeviceGetMPSComputeRunningProcesses_v3, d, &n, NULL);
	EXPECT(n == 0);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkState, d, 0, &status);
	m.version = VERSION_nvmlGpuFabricInfoV_v2;
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetGpuFabricInfoV, d, &m);
	m.version = 7;
	GIVES(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetGpuFabricInfoV, d, &m);
	GIVES(NVML_ERROR_NOT_SUPPORTED, nvmlSystemGetConfComputeState, values);
	GIVES(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetNvLinkState, wild, 0, &status);
	pci_versions(d);
	identity(d, uuid);
	readings(d);
	events(d);
	GIVES(0, nvmlInit); /* the second call, so that one nvmlShutdown does not end the session */
	GIVES(0, nvmlShutdown);
	cuda = use(argv[2]);
	processes(d);
	utilization(d);
	accounting(d, argv[2]);
	xid(d, cuda);
	no_use(cuda);
	GIVES(0, nvmlShutdown);
	GIVES(NVML_ERROR_UNINITIALIZED, nvmlShutdown);
	EXPECT(dlclose(lib) == 0);
	unload(argv[2]);
	puts("ok");
	return 0;
}
