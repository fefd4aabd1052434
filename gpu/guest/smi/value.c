/* Getters of single values, as text without unit. If a call fails, the value is unknown. */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "smi.h"

static void number(struct value *v, nvmlReturn_t r, unsigned long long n)
{
	if (r == NVML_SUCCESS)
		snprintf(v->text, sizeof v->text, "%llu", n);
}

static void text(struct value *v, const char *s)
{
	snprintf(v->text, sizeof v->text, "%s", s);
}

/* Sets a value to the word with index n. */
static void word(struct value *v, nvmlReturn_t r, unsigned int n, const char *const *words, unsigned int count)
{
	if (r == NVML_SUCCESS && n < count)
		text(v, words[n]);
}

static void enabled(struct value *v, nvmlReturn_t r, unsigned int on)
{
	static const char *const words[] = {"Disabled", "Enabled"};

	word(v, r, on, words, 2);
}

void v_none(nvmlDevice_t d, struct value *v)
{
	(void)d;
	(void)v;
}

void v_timestamp(nvmlDevice_t d, struct value *v)
{
	struct timeval now;
	struct tm when;
	size_t n;

	(void)d;
	gettimeofday(&now, NULL);
	localtime_r(&now.tv_sec, &when);
	n = strftime(v->text, sizeof v->text, "%Y/%m/%d %H:%M:%S", &when);
	snprintf(v->text + n, sizeof v->text - n, ".%03d", (int)(now.tv_usec / 1000));
}

void v_driver(nvmlDevice_t d, struct value *v)
{
	(void)d;
	if (nvmlSystemGetDriverVersion(v->text, sizeof v->text) != 0)
		v->text[0] = 0;
}

void v_cuda(nvmlDevice_t d, struct value *v)
{
	int version;

	(void)d;
	if (nvmlSystemGetCudaDriverVersion(&version) == 0)
		snprintf(v->text, sizeof v->text, "%d.%d", version / 1000, version % 1000 / 10);
}

void v_count(nvmlDevice_t d, struct value *v)
{
	unsigned int n = 0;

	(void)d;
	number(v, nvmlDeviceGetCount_v2(&n), n);
}

#define NUMBER(name, type, call)                                                                                       \
	void name(nvmlDevice_t d, struct value *v)                                                                     \
	{                                                                                                              \
		type n = 0;                                                                                            \
		nvmlReturn_t r = call;                                                                                 \
		number(v, r, n);                                                                                          \
	}
NUMBER(v_index, unsigned int, nvmlDeviceGetIndex(d, &n))
NUMBER(v_minor, unsigned int, nvmlDeviceGetMinorNumber(d, &n))
NUMBER(v_cores, unsigned int, nvmlDeviceGetNumGpuCores(d, &n))
NUMBER(v_temperature, unsigned int, nvmlDeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &n))
NUMBER(v_slowdown, unsigned int, nvmlDeviceGetTemperatureThreshold(d, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &n))
NUMBER(v_shutdown, unsigned int, nvmlDeviceGetTemperatureThreshold(d, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, &n))
NUMBER(v_fan, unsigned int, nvmlDeviceGetFanSpeed(d, &n))
NUMBER(v_clock_graphics, unsigned int, nvmlDeviceGetClockInfo(d, NVML_CLOCK_GRAPHICS, &n))
NUMBER(v_clock_sm, unsigned int, nvmlDeviceGetClockInfo(d, NVML_CLOCK_SM, &n))
NUMBER(v_clock_memory, unsigned int, nvmlDeviceGetClockInfo(d, NVML_CLOCK_MEM, &n))
NUMBER(v_clock_video, unsigned int, nvmlDeviceGetClockInfo(d, NVML_CLOCK_VIDEO, &n))
NUMBER(v_max_graphics, unsigned int, nvmlDeviceGetMaxClockInfo(d, NVML_CLOCK_GRAPHICS, &n))
NUMBER(v_max_sm, unsigned int, nvmlDeviceGetMaxClockInfo(d, NVML_CLOCK_SM, &n))
NUMBER(v_max_memory, unsigned int, nvmlDeviceGetMaxClockInfo(d, NVML_CLOCK_MEM, &n))
NUMBER(v_max_video, unsigned int, nvmlDeviceGetMaxClockInfo(d, NVML_CLOCK_VIDEO, &n))
NUMBER(v_link_gen, unsigned int, nvmlDeviceGetCurrPcieLinkGeneration(d, &n))
NUMBER(v_max_link_gen, unsigned int, nvmlDeviceGetMaxPcieLinkGeneration(d, &n))
NUMBER(v_link_width, unsigned int, nvmlDeviceGetCurrPcieLinkWidth(d, &n))
NUMBER(v_max_link_width, unsigned int, nvmlDeviceGetMaxPcieLinkWidth(d, &n))
NUMBER(v_ecc_uncorrected, unsigned long long, nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &n))
NUMBER(v_accounting_size, unsigned int, nvmlDeviceGetAccountingBufferSize(d, &n))

#define MODE(name, call)                                                                                               \
	void name(nvmlDevice_t d, struct value *v)                                                                     \
	{                                                                                                              \
		nvmlEnableState_t on = 0, pending = 0;                                                                 \
		nvmlReturn_t r = call;                                                                                 \
		(void)pending;                                                                                         \
		enabled(v, r, on);                                                                                     \
	}
MODE(v_persistence, nvmlDeviceGetPersistenceMode(d, &on))
MODE(v_display_mode, nvmlDeviceGetDisplayMode(d, &on))
MODE(v_display_active, nvmlDeviceGetDisplayActive(d, &on))
MODE(v_accounting, nvmlDeviceGetAccountingMode(d, &on))
MODE(v_ecc, nvmlDeviceGetEccMode(d, &on, &pending))
MODE(v_ecc_pending, nvmlDeviceGetEccMode(d, &pending, &on))

void v_name(nvmlDevice_t d, struct value *v)
{
	if (nvmlDeviceGetName(d, v->text, sizeof v->text) != 0)
		v->text[0] = 0;
}

void v_uuid(nvmlDevice_t d, struct value *v)
{
	if (nvmlDeviceGetUUID(d, v->text, sizeof v->text) != 0)
		v->text[0] = 0;
}

void v_brand(nvmlDevice_t d, struct value *v)
{
	static const char *const words[] = {"Unknown", "Quadro", "Tesla", "NVS", "GRID", "GeForce", "Titan", "", "", "", "", "", "NVIDIA RTX", "", "NVIDIA"};
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetBrand(d, &n);

	word(v, r, n, words, sizeof words / sizeof words[0]);
}

void v_architecture(nvmlDevice_t d, struct value *v)
{
	static const char *const words[] = {"", "", "Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell"};
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetArchitecture(d, &n);

	word(v, r, n, words, sizeof words / sizeof words[0]);
}

void v_capability(nvmlDevice_t d, struct value *v)
{
	int major, minor;

	if (nvmlDeviceGetCudaComputeCapability(d, &major, &minor) == 0)
		snprintf(v->text, sizeof v->text, "%d.%d", major, minor);
}

void v_compute_mode(nvmlDevice_t d, struct value *v)
{
	static const char *const words[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetComputeMode(d, &n);

	word(v, r, n, words, 4);
}

void v_virtualization(nvmlDevice_t d, struct value *v)
{
	static const char *const words[] = {"None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"};
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetVirtualizationMode(d, &n);

	word(v, r, n, words, 5);
}

void v_multi_gpu(nvmlDevice_t d, struct value *v)
{
	static const char *const words[] = {"No", "Yes"};
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetMultiGpuBoard(d, &n);

	word(v, r, n, words, 2);
}

/* Lanes, as -q prints them. */
static void lanes(struct value *v, nvmlReturn_t r, unsigned int n)
{
	if (r == NVML_SUCCESS)
		snprintf(v->text, sizeof v->text, "%ux", n);
}

void v_link_lanes(nvmlDevice_t d, struct value *v)
{
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetCurrPcieLinkWidth(d, &n);

	lanes(v, r, n);
}

void v_max_link_lanes(nvmlDevice_t d, struct value *v)
{
	unsigned int n = 0;
	nvmlReturn_t r = nvmlDeviceGetMaxPcieLinkWidth(d, &n);

	lanes(v, r, n);
}

void v_pstate(nvmlDevice_t d, struct value *v)
{
	unsigned int n;

	if (nvmlDeviceGetPerformanceState(d, &n) == 0 && n <= 15)
		snprintf(v->text, sizeof v->text, "P%u", n);
}

#define PCI(name, format, member)                                                                                      \
	void name(nvmlDevice_t d, struct value *v)                                                                     \
	{                                                                                                              \
		nvmlPciInfoExt_t pci = {.version = VERSION_nvmlPciInfoExt_v1};                                         \
		if (nvmlDeviceGetPciInfoExt(d, &pci) == 0)                                                             \
			snprintf(v->text, sizeof v->text, format, pci.member);                                         \
	}
PCI(v_bus_id, "%s", busId)
PCI(v_domain, "0x%04X", domain)
PCI(v_bus, "0x%02X", bus)
PCI(v_device, "0x%02X", device)
PCI(v_device_id, "0x%08X", pciDeviceId)
PCI(v_sub_device_id, "0x%08X", pciSubSystemId)
PCI(v_base_class, "0x%X", baseClass)
PCI(v_sub_class, "0x%X", subClass)

#define MEMORY(name, member)                                                                                           \
	void name(nvmlDevice_t d, struct value *v)                                                                     \
	{                                                                                                              \
		nvmlMemory_v2_t m = {.version = VERSION_nvmlMemory_v2_v2};                                             \
		nvmlReturn_t r = nvmlDeviceGetMemoryInfo_v2(d, &m);                                                    \
		number(v, r, m.member >> 20);                                                                             \
	}
MEMORY(v_memory_total, total)
MEMORY(v_memory_reserved, reserved)
MEMORY(v_memory_used, used)
MEMORY(v_memory_free, free)

void v_gpu(nvmlDevice_t d, struct value *v)
{
	nvmlUtilization_t u = {0};
	nvmlReturn_t r = nvmlDeviceGetUtilizationRates(d, &u);

	number(v, r, u.gpu);
}

/* The rates do not tell 0 from a value that is not known. */
void v_memory(nvmlDevice_t d, struct value *v)
{
	nvmlGpuDynamicPstatesInfo_t all = {0};
	nvmlReturn_t r = nvmlDeviceGetDynamicPstatesInfo(d, &all);

	if (r == NVML_SUCCESS && !all.utilization[1].bIsPresent)
		r = NVML_ERROR_NOT_SUPPORTED;
	number(v, r, all.utilization[1].percentage);
}

static void watts(struct value *v, nvmlReturn_t r, unsigned int milliwatts)
{
	if (r == NVML_SUCCESS)
		snprintf(v->text, sizeof v->text, "%u.%02u", milliwatts / 1000, milliwatts % 1000 / 10);
}

void v_power(nvmlDevice_t d, struct value *v)
{
	unsigned int p = 0;
	nvmlReturn_t r = nvmlDeviceGetPowerUsage(d, &p);

	watts(v, r, p);
}

void v_power_limit(nvmlDevice_t d, struct value *v)
{
	unsigned int p = 0;
	nvmlReturn_t r = nvmlDeviceGetEnforcedPowerLimit(d, &p);

	watts(v, r, p);
}

void v_reasons(nvmlDevice_t d, struct value *v)
{
	unsigned long long bits;

	if (nvmlDeviceGetCurrentClocksEventReasons(d, &bits) == 0)
		snprintf(v->text, sizeof v->text, "0x%016llX", bits);
}

/* The bits are those of nvmlClocksEventReasons. */
#define REASON(name, bit)                                                                                              \
	void name(nvmlDevice_t d, struct value *v)                                                                     \
	{                                                                                                              \
		unsigned long long bits;                                                                               \
		if (nvmlDeviceGetCurrentClocksEventReasons(d, &bits) == 0)                                             \
			text(v, bits & (bit) ? "Active" : "Not Active");                                               \
	}
REASON(v_reason_idle, 0x1)
REASON(v_reason_applications, 0x2)
REASON(v_reason_power_cap, 0x4)
REASON(v_reason_slowdown, 0x8)
REASON(v_reason_sync_boost, 0x10)
REASON(v_reason_sw_thermal, 0x20)
REASON(v_reason_hw_thermal, 0x40)
REASON(v_reason_power_brake, 0x80)
REASON(v_reason_display, 0x100)
