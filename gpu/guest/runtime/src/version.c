/* Versions, and the driver's functions for programs that request them from the runtime. */
#include "driver_calls.h"
#include "own.h"
#include "runtime.h"

cudaError_t own_cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return cudaErrorInvalidValue;
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

/* Private tables are not part of the public driver API. */
cudaError_t own_cudaGetExportTable(const void **ppExportTable, const cudaUUID_t *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return cudaErrorInvalidValue;
	*ppExportTable = NULL;
	return cudaErrorNotSupported;
}

static cudaError_t entry_point(const char *symbol, void **f, unsigned int version, unsigned long long flags, int *status)
{
	cudaError_t err = driver_open();

	if (!symbol || !*symbol || !f || flags > cudaEnablePerThreadDefaultStream)
		return cudaErrorInvalidValue;
	*f = NULL;
	*status = cudaDriverEntryPointSymbolNotFound;
	return err ? err : from_driver(call_cuGetProcAddress_v2(symbol, f, (int)version, flags, status));
}

#if CUDART_MAJOR == 11
cudaError_t own_cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags)
{
	int status;
	cudaError_t err = entry_point(symbol, funcPtr, CUDART_VERSION, flags, &status);

	return !err && !*funcPtr ? cudaErrorSymbolNotFound : err;
}
#else
cudaError_t own_cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion,
						 unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus)
{
	int status;
	cudaError_t err = entry_point(symbol, funcPtr, cudaVersion, flags, &status);

	if (!err && driverStatus)
		*driverStatus = (enum cudaDriverEntryPointQueryResult)status;
	return !err && !*funcPtr && !driverStatus ? cudaErrorSymbolNotFound : err;
}

cudaError_t own_cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
					enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return own_cudaGetDriverEntryPointByVersion(symbol, funcPtr, CUDART_VERSION, flags, driverStatus);
}
#endif
