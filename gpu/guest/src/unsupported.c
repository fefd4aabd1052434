/* Functions that PyTorch and vLLM look up and whose absence they take as a
 * broken driver; the attributes (attribute.c) say that they cannot be used. */
#include "state.h"

#define REFUSE()                                                                                                       \
	SESSION(s);                                                                                                    \
	(void)s;                                                                                                       \
	return CUDA_ERROR_NOT_SUPPORTED

/* Virtual memory management: attribute 102. */
CUDA_API CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	(void)ptr, (void)size, (void)alignment, (void)addr, (void)flags;
	REFUSE();
}

CUDA_API CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	(void)ptr, (void)size;
	REFUSE();
}

CUDA_API CUresult cuMemCreate(unsigned long long *handle, size_t size, const void *prop, unsigned long long flags)
{
	(void)handle, (void)size, (void)prop, (void)flags;
	REFUSE();
}

CUDA_API CUresult cuMemRelease(unsigned long long handle)
{
	(void)handle;
	REFUSE();
}

CUDA_API CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)
{
	(void)ptr, (void)size, (void)offset, (void)handle, (void)flags;
	REFUSE();
}

CUDA_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	(void)ptr, (void)size;
	REFUSE();
}

CUDA_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const void *desc, size_t count)
{
	(void)ptr, (void)size, (void)desc, (void)count;
	REFUSE();
}

CUDA_API CUresult cuMemGetAllocationGranularity(size_t *granularity, const void *prop, int option)
{
	(void)granularity, (void)prop, (void)option;
	REFUSE();
}

CUDA_API CUresult cuMemExportToShareableHandle(void *out, unsigned long long handle, int type, unsigned long long flags)
{
	(void)out, (void)handle, (void)type, (void)flags;
	REFUSE();
}

CUDA_API CUresult cuMemImportFromShareableHandle(unsigned long long *handle, void *from, int type)
{
	(void)handle, (void)from, (void)type;
	REFUSE();
}

/* The tensor memory accelerator: attribute 127. */
CUDA_API CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
					 const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
					 int interleave, int swizzle, int l2_promotion, int fill)
{
	(void)map, (void)type, (void)rank, (void)address, (void)dim, (void)strides, (void)box, (void)element_strides;
	(void)interleave, (void)swizzle, (void)l2_promotion, (void)fill;
	REFUSE();
}
