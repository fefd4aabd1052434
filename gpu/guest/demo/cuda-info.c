/* Prints the device's properties. */
#include <stdio.h>

#include "basalt_cuda.h"

int main(void)
{
	CUresult err = cuInit(0);
	const char *name = "?";
	CUdevice device;
	CUuuid uuid;
	char text[256];
	size_t bytes;
	int version, major, minor, count;

	if (err != CUDA_SUCCESS || (err = cuDeviceGet(&device, 0)) != CUDA_SUCCESS) {
		cuGetErrorName(err, &name);
		fprintf(stderr, "cuda-info: %s (%d); BASALT_VERBOSE=1 says more\n", name, err);
		return 1;
	}
	cuDriverGetVersion(&version);
	cuDeviceGetName(text, sizeof text, device);
	cuDeviceGetUuid(&uuid, device);
	cuDeviceTotalMem(&bytes, device);
	cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	printf("name: %s\nuuid: ", text);
	for (int i = 0; i < 16; i++)
		printf("%02x", (unsigned char)uuid.bytes[i]);
	printf("\nmemory: %zu MiB\ncompute capability: %d.%d\nmultiprocessors: %d\nCUDA: %d.%d\n", bytes >> 20, major, minor,
	       count, version / 1000, version % 1000 / 10);
	return 0;
}
