/* Converts kernel parameters from the program's form to the kernel's parameter space. */
#include <string.h>

#include "state.h"

int launch_parameters(struct function *f, void **params, void **extra, uint8_t *out, uint32_t *n)
{
	const void *buffer = NULL;
	size_t size = 0;

	TRY(function_usable(f));
	*n = f->param_bytes;
	if (*n > BSLT_MAX_PARAM_BYTES)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (params) {
		if (extra)
			return CUDA_ERROR_INVALID_VALUE;
		memset(out, 0, *n);
		for (uint32_t i = 0; i < f->info.param_count; i++) {
			if (!params[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(out + f->info.params[i].offset, params[i], f->info.params[i].size);
		}
		return 0;
	}
	if (!extra)
		return *n ? CUDA_ERROR_INVALID_VALUE : 0;
	for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			memcpy(&size, extra[1], sizeof size);
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (size > BSLT_MAX_PARAM_BYTES || (size && !buffer) || size < *n)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(out, buffer, *n);
	return 0;
}
