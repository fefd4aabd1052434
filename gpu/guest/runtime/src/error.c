/* Error codes. A result of the driver becomes the runtime's code with the same number. */
#include "error.h"
#include "own.h"
#include "runtime.h"

static const struct error_row *find(int code)
{
	for (unsigned int i = 0; i < error_row_count; i++)
		if (error_rows[i].code == code)
			return &error_rows[i];
	return NULL;
}

cudaError_t from_driver(int result)
{
	if (result == 0)
		return cudaSuccess;
	return find(result) ? (cudaError_t)result : cudaErrorUnknown;
}

const char *own_cudaGetErrorName(cudaError_t error)
{
	const struct error_row *r = find((int)error);

	return r ? r->name : "unrecognized error code";
}

const char *own_cudaGetErrorString(cudaError_t error)
{
	const struct error_row *r = find((int)error);

	return r ? r->text : "unrecognized error code";
}

/* A sticky error is not cleared: only a new context does that. */
cudaError_t own_cudaGetLastError(void)
{
	cudaError_t err = sticky_error();

	if (!err)
		err = thread.last;
	thread.last = cudaSuccess;
	return err;
}

cudaError_t own_cudaPeekAtLastError(void)
{
	cudaError_t err = sticky_error();

	return err ? err : thread.last;
}
