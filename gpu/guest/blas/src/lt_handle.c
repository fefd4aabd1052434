/* Handles of cuBLASLt, and queries of the library. */
#include "lt.h"
#include "status.h"

CUBLASAPI cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	return handle_create(handle);
}

CUBLASAPI cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	return handle_destroy(handle);
}

CUBLASAPI size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

CUBLASAPI cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value)
{
	return library_property(type, value);
}

CUBLASAPI const char *cublasLtGetStatusName(cublasStatus_t status)
{
	return status_name(status);
}

CUBLASAPI const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return status_string(status);
}
