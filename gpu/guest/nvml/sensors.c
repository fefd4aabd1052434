/* Readings of the GPU's sensors. Those that the GPU does not provide are
 * NVML_ERROR_NOT_SUPPORTED. */
#include "status.h"

static nvmlReturn_t reading(nvmlDevice_t device, unsigned int key, unsigned int *out)
{
	unsigned long long value;

	DEVICE(device, out);
	TRY(nvml_reading(key, &value));
	*out = value < 0xffffffffu ? (unsigned int)value : 0xffffffffu;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
	STATUS(device, sensorType == NVML_TEMPERATURE_GPU ? temp : NULL, v);
	*temp = v.temperature;
	free_vgpu_status(&v);
	return *temp ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
	unsigned int celsius;

	VERSIONED(device, temperature, VERSION_nvmlTemperature_v1);
	TRY(nvmlDeviceGetTemperature(device, temperature->sensorType, &celsius));
	temperature->temperature = (int)celsius;
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t thresholdType, unsigned int *temp)
{
	DEVICE(device, thresholdType < NVML_TEMPERATURE_THRESHOLD_COUNT ? temp : NULL);
	switch (thresholdType) {
	case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: return reading(device, BSLT_READING_SHUTDOWN_CELSIUS, temp);
	case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: return reading(device, BSLT_READING_SLOWDOWN_CELSIUS, temp);
	default: return NVML_ERROR_NOT_SUPPORTED;
	}
}

NVML_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	STATUS(device, power, v);
	*power = v.power_milliwatts;
	free_vgpu_status(&v);
	return *power ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit)
{
	return reading(device, BSLT_READING_POWER_LIMIT, limit);
}

NVML_API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
	DEVICE(device, energy);
	return nvml_reading(BSLT_READING_ENERGY, energy);
}

NVML_API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
	return reading(device, BSLT_READING_FAN_SPEED, speed);
}

NVML_API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *pState)
{
	return reading(device, BSLT_READING_PERFORMANCE_STATE, pState);
}

NVML_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	static const unsigned int key[] = {BSLT_READING_CLOCK_GRAPHICS, BSLT_READING_CLOCK_SM, BSLT_READING_CLOCK_MEMORY, BSLT_READING_CLOCK_VIDEO};

	DEVICE(device, type < NVML_CLOCK_COUNT ? clock : NULL);
	return reading(device, key[type], clock);
}

/* Returns the GPU's value, or that of the driver API if it has none. */
NVML_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	static const struct { unsigned int key; int attribute; } from[] = {
		{BSLT_READING_MAX_CLOCK_GRAPHICS, 13},
		{BSLT_READING_MAX_CLOCK_SM, 13},
		{BSLT_READING_MAX_CLOCK_MEMORY, 36},
		{BSLT_READING_MAX_CLOCK_VIDEO, -1},
	};
	nvmlReturn_t r;

	DEVICE(device, type < NVML_CLOCK_COUNT ? clock : NULL);
	if ((r = reading(device, from[type].key, clock)) != NVML_ERROR_NOT_SUPPORTED)
		return r;
	*clock = (unsigned int)nvml_attribute(from[type].attribute) / 1000; /* kHz */
	return *clock ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t clockType, nvmlClockId_t clockId, unsigned int *clockMHz)
{
	DEVICE(device, clockType < NVML_CLOCK_COUNT && clockId < NVML_CLOCK_ID_COUNT ? clockMHz : NULL);
	if (clockId != NVML_CLOCK_ID_CURRENT)
		return NVML_ERROR_NOT_SUPPORTED; /* the clocks of a vGPU cannot be set */
	return nvmlDeviceGetClockInfo(device, clockType, clockMHz);
}

NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *clocksEventReasons)
{
	DEVICE(device, clocksEventReasons);
	return nvml_reading(BSLT_READING_CLOCK_REASONS, clocksEventReasons);
}

/* The link of PCI Express. */
NVML_API nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *currLinkGen)
{
	return reading(device, BSLT_READING_LINK_GENERATION, currLinkGen);
}

NVML_API nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *currLinkWidth)
{
	return reading(device, BSLT_READING_LINK_WIDTH, currLinkWidth);
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *maxLinkGen)
{
	return reading(device, BSLT_READING_MAX_LINK_GENERATION, maxLinkGen);
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *maxLinkWidth)
{
	return reading(device, BSLT_READING_MAX_LINK_WIDTH, maxLinkWidth);
}

NVML_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	DEVICE(device, current);
	if (!pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*current = *pending = nvml_attribute(32) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

/* The host only reads the number of uncorrected errors since its driver was loaded. */
NVML_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
						  unsigned long long *eccCounts)
{
	DEVICE(device, errorType < NVML_MEMORY_ERROR_TYPE_COUNT && counterType < NVML_ECC_COUNTER_TYPE_COUNT ? eccCounts : NULL);
	if (errorType != NVML_MEMORY_ERROR_TYPE_UNCORRECTED || counterType != NVML_VOLATILE_ECC)
		return NVML_ERROR_NOT_SUPPORTED;
	return nvml_reading(BSLT_READING_UNCORRECTED_ERRORS, eccCounts);
}
