/* A program in C, linked with one of the libraries: every function of the API is
 * there, and the properties of the device have this version's layout. */
#include <dlfcn.h>
#include <string.h>

#include "cuda_runtime_api.h"

#include "check.h"

/* Sizes that the ABI of each version has. */
_Static_assert(sizeof(struct cudaDeviceProp) == (CUDART_MAJOR == 11 ? 728 : CUDART_MAJOR == 12 ? 1032 : 1008), "cudaDeviceProp");
_Static_assert(sizeof(struct cudaFuncAttributes) == (CUDART_MAJOR == 11 ? 56 : 144), "cudaFuncAttributes");
_Static_assert(sizeof(struct cudaPointerAttributes) == (CUDART_MAJOR == 13 ? 88 : 24), "cudaPointerAttributes");
_Static_assert(sizeof(struct cudaMemcpy3DParms) == 160 && sizeof(struct cudaKernelNodeParams) == 56, "copies and kernels");
_Static_assert(sizeof(cudaLaunchConfig_t) == 56 && sizeof(cudaLaunchAttribute) == 72, "launches");
_Static_assert(sizeof(struct cudaMemPoolProps) == 88 && sizeof(cudaIpcMemHandle_t) == 64, "pools and handles");

static const char *const names[] = {
#define X(name) #name,
#include "calls.h"
#undef X
	"__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterFunction",
	"__cudaRegisterVar", "__cudaRegisterManagedVar", "__cudaInitModule", "__cudaPushCallConfiguration",
	"__cudaPopCallConfiguration",
};

int main(int argc, char **argv)
{
	struct cudaDeviceProp guarded[2];
	int version, driver, count, value, missing = 0;
	void *entry = NULL;

	ASSERT(argc == 2);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!dlvsym(RTLD_DEFAULT, names[i], argv[1])) {
			fprintf(stderr, "%s has no %s\n", argv[1], names[i]);
			missing++;
		}
	ASSERT(missing == 0);
	CHECK(cudaRuntimeGetVersion(&version));
	ASSERT(version == CUDART_VERSION && version / 1000 == CUDART_MAJOR);
	CHECK(cudaDriverGetVersion(&driver));
	CHECK(cudaGetDeviceCount(&count));
	ASSERT(count == 1 && driver >= 11000);
	memset(guarded, 0xa5, sizeof guarded);
	CHECK(cudaGetDeviceProperties(&guarded[0], 0));
	for (size_t i = 0; i < sizeof guarded[1]; i++)
		ASSERT(((unsigned char *)&guarded[1])[i] == 0xa5);
	ASSERT(guarded[0].warpSize == 32 && guarded[0].maxThreadsPerBlock == 1024 && guarded[0].totalGlobalMem == (size_t)256 << 20);
	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxBlocksPerMultiprocessor, 0));
	ASSERT(guarded[0].maxBlocksPerMultiProcessor == value && guarded[0].major >= 5 && guarded[0].name[0]);
#if CUDART_MAJOR == 11
	CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry, 0));
	WANT(cudaGetDriverEntryPoint("cuNoSuchThing", &entry, 0), cudaErrorSymbolNotFound);
#else
	{
		enum cudaDriverEntryPointQueryResult result;

		CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry, 0, &result));
		ASSERT(entry && result == cudaDriverEntryPointSuccess);
		CHECK(cudaGetDriverEntryPoint("cuNoSuchThing", &entry, 0, &result));
		ASSERT(!entry && result == cudaDriverEntryPointSymbolNotFound);
	}
#endif
	printf("user: %d of %s: OK\n", version, guarded[0].name);
	return 0;
}
