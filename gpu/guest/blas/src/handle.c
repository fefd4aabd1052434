#include "handle.h"

#include <stdlib.h>
#include <string.h>

cublasStatus_t from_driver(CUresult err)
{
	switch ((int)err) {
	case CUDA_SUCCESS: return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY: return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_NO_BINARY_FOR_GPU:
	case CUDA_ERROR_INVALID_PTX: return CUBLAS_STATUS_ARCH_MISMATCH;
	default: return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}

/* Returns the context that is current in this thread. If there is none, it makes the primary
 * context of device 0 current, as the runtime API does. */
static CUresult current_context(CUcontext *context)
{
	CUdevice device;
	CUresult err = driver.cuCtxGetCurrent(context);

	if (err != CUDA_SUCCESS || *context)
		return err;
	if ((err = driver.cuDeviceGet(&device, 0)) != CUDA_SUCCESS ||
	    (err = driver.cuDevicePrimaryCtxRetain(context, device)) != CUDA_SUCCESS)
		return err;
	return driver.cuCtxSetCurrent(*context);
}

cublasStatus_t handle_create(cublasHandle_t *handle)
{
	struct cublasContext *h;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	*handle = NULL;
	if (driver_open() != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!(h = calloc(1, sizeof *h)))
		return CUBLAS_STATUS_ALLOC_FAILED;
	pthread_mutex_init(&h->results, NULL);
	if (current_context(&h->context) != CUDA_SUCCESS) {
		free(h);
		return CUBLAS_STATUS_NOT_INITIALIZED;
	}
	if (driver.cuMemAlloc(&h->result, RESULT_BYTES) != CUDA_SUCCESS) {
		free(h);
		return CUBLAS_STATUS_ALLOC_FAILED;
	}
	h->magic = HANDLE_MAGIC;
	*handle = h;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t handle_destroy(cublasHandle_t h)
{
	cublasStatus_t status = enter(h);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	/* This may fail: another context may be current, or the handle's context was destroyed,
	 * and its memory with it. */
	driver.cuMemFree(h->result);
	h->magic = 0;
	pthread_mutex_destroy(&h->results);
	free(h);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t enter(cublasHandle_t h)
{
	CUcontext current;

	if (!h || (uintptr_t)h % _Alignof(struct cublasContext) != 0 || h->magic != HANDLE_MAGIC || driver_open() != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!current && driver.cuCtxSetCurrent(h->context) != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return CUBLAS_STATUS_SUCCESS;
}

/* Returns the value of an f16, which a double represents exactly. */
static double from_half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double v = exponent == 31 ? (fraction ? __builtin_nan("") : __builtin_inf())
				  : (exponent ? 1024 + fraction : fraction) / 16777216.0 * (1 << (exponent ? exponent - 1 : 0));

	return bits >> 15 ? -v : v;
}

struct blas_scalar host_factor(const void *p, cudaDataType type)
{
	struct blas_scalar s = {0};
	uint16_t half;
	int32_t whole;
	float f[2];

	switch ((int)type) {
	case CUDA_R_16F:
		memcpy(&half, p, sizeof half);
		s.value[0] = from_half(half);
		break;
	case CUDA_R_32I:
		memcpy(&whole, p, sizeof whole);
		s.value[0] = whole;
		break;
	case CUDA_R_64F: memcpy(s.value, p, sizeof(double)); break;
	case CUDA_C_64F: memcpy(s.value, p, 2 * sizeof(double)); break;
	case CUDA_C_32F:
		memcpy(f, p, sizeof f);
		s.value[0] = f[0];
		s.value[1] = f[1];
		break;
	default:
		memcpy(f, p, sizeof *f);
		s.value[0] = f[0];
	}
	return s;
}

struct blas_scalar factor(cublasHandle_t h, const void *p, cudaDataType type)
{
	if (h->pointers == CUBLAS_POINTER_MODE_DEVICE)
		return (struct blas_scalar){.device = p, .half = type == CUDA_R_16F};
	return host_factor(p, type);
}

struct blas_scalar constant(double value)
{
	return (struct blas_scalar){.value = {value, 0}};
}

bool is_nothing(const struct blas_scalar *s)
{
	return !s->device && s->value[0] == 0 && s->value[1] == 0;
}
