/* Queries of several values, each of which has its own result. */
#include "state.h"

#define FIELDS_END 303 /* one more than the last field of CUDA 13.3 */

/* The getters below are called after the handle has been checked. */
static nvmlReturn_t ecc_mode(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	nvmlEnableState_t pending;

	f->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	return nvmlDeviceGetEccMode(d, &f->value.uiVal, &pending);
}

static nvmlReturn_t ecc_uncorrected(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	return nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &f->value.ullVal);
}

static nvmlReturn_t energy(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	return nvmlDeviceGetTotalEnergyConsumption(d, &f->value.ullVal);
}

static nvmlReturn_t power(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	return nvmlDeviceGetPowerUsage(d, &f->value.uiVal);
}

static nvmlReturn_t power_limit(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	return nvmlDeviceGetEnforcedPowerLimit(d, &f->value.uiVal);
}

static const struct {
	unsigned int id;
	nvmlReturn_t (*get)(nvmlDevice_t, nvmlFieldValue_t *);
} fields[] = {
	{1, ecc_mode},        /* NVML_FI_DEV_ECC_CURRENT */
	{2, ecc_mode},        /* NVML_FI_DEV_ECC_PENDING */
	{4, ecc_uncorrected}, /* NVML_FI_DEV_ECC_DBE_VOL_TOTAL */
	{83, energy},         /* NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION */
	{186, power},         /* NVML_FI_DEV_POWER_INSTANT */
	{190, power_limit},   /* NVML_FI_DEV_POWER_CURRENT_LIMIT */
};

static nvmlReturn_t get(nvmlDevice_t device, nvmlFieldValue_t *f)
{
	if (f->fieldId == 0 || f->fieldId >= FIELDS_END)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		if (fields[i].id == f->fieldId)
			return fields[i].get(device, f);
	return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t check(nvmlDevice_t device, int count, const nvmlFieldValue_t *values)
{
	TRY(nvml_handle(device));
	return count > 0 && values ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
	TRY(check(device, valuesCount, values));
	for (int i = 0; i < valuesCount; i++) {
		long long before = nvml_now();

		values[i].nvmlReturn = get(device, &values[i]);
		values[i].timestamp = nvml_now();
		values[i].latencyUsec = values[i].timestamp > before ? values[i].timestamp - before : 0;
	}
	return NVML_SUCCESS;
}

/* Counters cannot be cleared, because other users share the GPU. */
NVML_API nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
	TRY(check(device, valuesCount, values));
	for (int i = 0; i < valuesCount; i++) {
		values[i].timestamp = nvml_now();
		values[i].latencyUsec = 0;
		values[i].nvmlReturn = values[i].fieldId == 0 || values[i].fieldId >= FIELDS_END ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
	}
	return NVML_SUCCESS;
}
