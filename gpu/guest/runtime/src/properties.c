#include "properties.h"

#include "driver_calls.h"

int attribute(int number, int device)
{
	int value = 0;

	return call_cuDeviceGetAttribute(&value, number, device) == 0 ? value : 0;
}

cudaError_t identity(char name[256], cudaUUID_t *uuid, char luid[8], unsigned int *mask, size_t *memory, int device)
{
	cudaError_t err = from_driver(call_cuDeviceGetName(name, 256, device));

	if (!err)
		err = from_driver(call_cuDeviceTotalMem_v2(memory, device));
	if (!err)
		err = from_driver(call_cuDeviceGetUuid(uuid, device));
	if (!err)
		(void)call_cuDeviceGetLuid(luid, mask, device); /* for other operating systems */
	return err;
}
