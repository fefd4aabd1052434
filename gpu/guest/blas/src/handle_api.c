/* cublasCreate, and the settings of a handle. */
#include "handle.h"
#include "status.h"

CUBLASAPI cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	return handle_create(handle);
}

CUBLASAPI cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	return handle_destroy(handle);
}

CUBLASAPI cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	cublasStatus_t status = enter(handle);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	*version = CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

CUBLASAPI cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
	return library_property(type, value);
}

/* Only checks the workspace, because no kernel needs one. */
CUBLASAPI cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
	cublasStatus_t status = enter(handle);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	/* It must be aligned to 256 bytes, as documented. */
	return (uintptr_t)workspace % 256 != 0 || (!workspace && bytes > 0) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

/* Defines the functions that set and get a setting of the handle. allowed checks a value. */
#define SETTING(Name, suffix, Type, field, allowed) \
	CUBLASAPI cublasStatus_t cublasSet##Name##suffix(cublasHandle_t handle, Type value) \
	{ \
		cublasStatus_t status = enter(handle); \
		if (status != CUBLAS_STATUS_SUCCESS) \
			return status; \
		if (!(allowed)) \
			return CUBLAS_STATUS_INVALID_VALUE; \
		handle->field = value; \
		return CUBLAS_STATUS_SUCCESS; \
	} \
	CUBLASAPI cublasStatus_t cublasGet##Name##suffix(cublasHandle_t handle, Type *value) \
	{ \
		cublasStatus_t status = enter(handle); \
		if (status != CUBLAS_STATUS_SUCCESS) \
			return status; \
		if (!value) \
			return CUBLAS_STATUS_INVALID_VALUE; \
		*value = handle->field; \
		return CUBLAS_STATUS_SUCCESS; \
	}
SETTING(Stream, _v2, cudaStream_t, stream, true)
SETTING(PointerMode, _v2, cublasPointerMode_t, pointers, value == CUBLAS_POINTER_MODE_HOST || value == CUBLAS_POINTER_MODE_DEVICE)
SETTING(AtomicsMode, , cublasAtomicsMode_t, atomics, value == CUBLAS_ATOMICS_NOT_ALLOWED || value == CUBLAS_ATOMICS_ALLOWED)
SETTING(MathMode, , cublasMath_t, math, ((int)value & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) <= CUBLAS_TF32_TENSOR_OP_MATH &&
	(int)value >= 0)
SETTING(SmCountTarget, , int, sm_count, value >= 0)

CUBLASAPI const char *cublasGetStatusName(cublasStatus_t status)
{
	return status_name(status);
}

CUBLASAPI const char *cublasGetStatusString(cublasStatus_t status)
{
	return status_string(status);
}
