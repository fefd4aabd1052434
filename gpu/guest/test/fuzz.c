/* Fuzzes the decoders of the worker's records. */
#include <stdint.h>

#include "reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct device_info d;
	struct module_info m;
	struct vgpu_status v;

	if (decode_device_info(data, size, &d) == 0)
		free_device_info(&d);
	if (decode_module_info(data, size, &m) == 0)
		free_module_info(&m);
	if (decode_vgpu_status(data, size, &v) == 0)
		free_vgpu_status(&v);
	return 0;
}
