/* The part of the NVIDIA Management Library API that this libnvidia-ml implements. Names, values
 * and layouts are those of NVIDIA's public "NVML API Reference". */
#ifndef BASALT_NVML_H
#define BASALT_NVML_H

#include <stddef.h>

#include "functions.h"

/* Return codes; error.c has their texts. */
enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_UNKNOWN = 999,
};

#define NVML_VALUE_NOT_AVAILABLE (-1)
enum { NVML_INIT_FLAG_NO_GPUS = 1, NVML_INIT_FLAG_NO_ATTACH = 2 };
enum { NVML_FEATURE_DISABLED, NVML_FEATURE_ENABLED };                                                       /* nvmlEnableState_t */
enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO, NVML_CLOCK_COUNT };            /* nvmlClockType_t */
enum { NVML_CLOCK_ID_CURRENT, NVML_CLOCK_ID_APP_TARGET, NVML_CLOCK_ID_APP_DEFAULT, NVML_CLOCK_ID_BOOST_MAX, NVML_CLOCK_ID_COUNT };
enum { NVML_TEMPERATURE_GPU };                                                                              /* nvmlTemperatureSensors_t */
enum { NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_COUNT = 8 };
enum { NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_COUNT };
enum { NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC, NVML_ECC_COUNTER_TYPE_COUNT };
enum { NVML_P2P_STATUS_NOT_SUPPORTED = 5, NVML_P2P_CAPS_INDEX_MOST = 5 };
enum { NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_SYSTEM = 50 };
enum { NVML_VALUE_TYPE_DOUBLE, NVML_VALUE_TYPE_UNSIGNED_INT, NVML_VALUE_TYPE_UNSIGNED_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG };
enum { NVML_TOTAL_POWER_SAMPLES, NVML_GPU_UTILIZATION_SAMPLES, NVML_SAMPLINGTYPE_COUNT = 9 };
enum { NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2 };

/* Checks that a struct has the documented size. */
#define LAYOUT(type) _Static_assert(sizeof(type) == BYTES_##type, #type)

struct nvmlMemory_t {
	unsigned long long total, free, used;
};
LAYOUT(nvmlMemory_t);
struct nvmlMemory_v2_t {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};
LAYOUT(nvmlMemory_v2_t);
struct nvmlEventData_t {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
};
LAYOUT(nvmlEventData_t);
struct nvmlUtilization_t {
	unsigned int gpu, memory;
};
LAYOUT(nvmlUtilization_t);
struct nvmlPciInfo_t {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId;
	unsigned int pciSubSystemId; /* since the second version */
	char busId[32];              /* since the third version */
};
LAYOUT(nvmlPciInfo_t);
struct nvmlPciInfoExt_t {
	unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
	char busId[32];
};
LAYOUT(nvmlPciInfoExt_t);

typedef union {
	double dVal;
	unsigned int uiVal;
	unsigned long long ullVal;
} nvmlValue_t;
struct nvmlFieldValue_t {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec; /* microseconds */
	unsigned int valueType;
	nvmlReturn_t nvmlReturn;
	nvmlValue_t value;
};
LAYOUT(nvmlFieldValue_t);
struct nvmlSample_t {
	unsigned long long timeStamp; /* microseconds */
	nvmlValue_t sampleValue;
};
LAYOUT(nvmlSample_t);

struct nvmlProcessInfo_v1_t {
	unsigned int pid;
	unsigned long long usedGpuMemory;
};
LAYOUT(nvmlProcessInfo_v1_t);
struct nvmlProcessInfo_v2_t {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
};
LAYOUT(nvmlProcessInfo_v2_t);
struct nvmlProcessInfo_t { /* the same in the second and third version */
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
};
LAYOUT(nvmlProcessInfo_t);
typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
struct nvmlProcessDetailList_t {
	unsigned int version, mode, numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
};
LAYOUT(nvmlProcessDetailList_t);

struct nvmlProcessUtilizationSample_t {
	unsigned int pid;
	unsigned long long timeStamp; /* microseconds */
	unsigned int smUtil, memUtil, encUtil, decUtil;
};
LAYOUT(nvmlProcessUtilizationSample_t);
typedef struct {
	unsigned long long timeStamp; /* microseconds */
	unsigned int pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
struct nvmlProcessesUtilizationInfo_t {
	unsigned int version, processSamplesCount;
	unsigned long long lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
};
LAYOUT(nvmlProcessesUtilizationInfo_t);
struct nvmlGpuDynamicPstatesInfo_t {
	unsigned int flags;
	struct {
		unsigned int bIsPresent, percentage, incThreshold, decThreshold;
	} utilization[8]; /* graphics, frame buffer, video, bus; the others are unused */
};
LAYOUT(nvmlGpuDynamicPstatesInfo_t);
struct nvmlAccountingStats_t {
	unsigned int gpuUtilization, memoryUtilization;
	unsigned long long maxMemoryUsage, time, startTime; /* bytes, milliseconds, microseconds */
	unsigned int isRunning, reserved[5];
};
LAYOUT(nvmlAccountingStats_t);

struct nvmlTemperature_t {
	unsigned int version, sensorType;
	int temperature;
};
LAYOUT(nvmlTemperature_t);
struct nvmlUUID_t {
	unsigned int version, type; /* 1: text, 2: bytes */
	union {
		char str[41];
		unsigned char bytes[16];
	} value;
};
LAYOUT(nvmlUUID_t);
struct nvmlGpmSupport_t {
	unsigned int version, isSupportedDevice;
};
LAYOUT(nvmlGpmSupport_t);

#endif
