/* A device's attributes: those that the worker reports, without what this library does not
 * support. */
#include "state.h"

/* The values of attributes whose features a vGPU does not have: a program that reads 1 would
 * make calls that return CUDA_ERROR_NOT_SUPPORTED.
 *
 * Not overridden are 41, UNIFIED_ADDRESSING, because what it promises works (cuMemcpy and
 * cuPointerGetAttribute recognize the kind of an address); 19, CAN_MAP_HOST_MEMORY, 83,
 * MANAGED_MEMORY, 89, CONCURRENT_MANAGED_ACCESS, and 92 to 94, 122 and 123,
 * CAN_USE_STREAM_MEM_OPS and related ones, which are the worker's values, and which state.c
 * clears if the worker is too old; 120, CLUSTER_LAUNCH, 127, TENSOR_MAP_ACCESS_SUPPORTED,
 * 102, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, and 103,
 * HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED; and 125, IPC_EVENT_SUPPORTED, which this
 * library derives from the worker's version. */
static const struct {
	unsigned char attribute;
	signed char value;
} overrides[] = {
	{84, 0},  /* MULTI_GPU_BOARD: a guest sees one GPU */
	{86, 0},  /* HOST_NATIVE_ATOMIC_SUPPORTED */
	{88, 0},  /* PAGEABLE_MEMORY_ACCESS */
	{91, 0},  /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
	{96, 0},  /* COOPERATIVE_MULTI_DEVICE_LAUNCH */
	{98, 0},  /* CAN_FLUSH_REMOTE_WRITES */
	{99, 1},  /* HOST_REGISTER_SUPPORTED: cuMemHostRegister */
	{100, 0}, /* PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */
	{101, 0}, /* DIRECT_MANAGED_MEM_ACCESS_FROM_HOST */
	{104, 0}, /* HANDLE_TYPE_WIN32_HANDLE_SUPPORTED */
	{105, 0}, /* HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED */
	{107, 0}, /* GENERIC_COMPRESSION_SUPPORTED */
	{110, 0}, /* GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */
	{112, 0}, /* SPARSE_CUDA_ARRAY_SUPPORTED */
	{113, 0}, /* READ_ONLY_HOST_REGISTER_SUPPORTED */
	{114, 0}, /* TIMELINE_SEMAPHORE_INTEROP_SUPPORTED */
	{115, 1}, /* MEMORY_POOLS_SUPPORTED */
	{116, 0}, /* GPU_DIRECT_RDMA_SUPPORTED */
	{117, 0}, /* GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS */
	{118, 0}, /* GPU_DIRECT_RDMA_WRITES_ORDERING */
	{121, 0}, /* DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED */
	{124, 0}, /* DMA_BUF_SUPPORTED */
	{128, 0}, /* HANDLE_TYPE_FABRIC_SUPPORTED */
	{129, 0}, /* UNIFIED_FUNCTION_POINTERS */
	{130, 0}, /* NUMA_CONFIG */
	{131, -1}, /* NUMA_ID: none */
	{132, 0}, /* MULTICAST_SUPPORTED */
	{133, 0}, /* MPS_ENABLED */
	{134, -1}, /* HOST_NUMA_ID: none */
	{136, 0}, /* MEM_DECOMPRESS_ALGORITHM_MASK */
	{137, 0}, /* MEM_DECOMPRESS_MAXIMUM_LENGTH */
	{138, 0}, /* VULKAN_CIG_SUPPORTED */
	{141, 0}, /* HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	{142, 0}, /* HOST_NUMA_MEMORY_POOLS_SUPPORTED */
	{143, 0}, /* HOST_NUMA_MULTINODE_IPC_SUPPORTED */
	{144, 0}, /* HOST_MEMORY_POOLS_SUPPORTED */
	{145, 0}, /* HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	{146, 0}, /* HOST_ALLOC_DMA_BUF_SUPPORTED */
	{147, 0}, /* ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED */
};

enum { DESCRIPTORS = 103, POOL_HANDLE_TYPES = 119 /* a bit for each CUmemAllocationHandleType */ };

int device_attribute(int a)
{
	if (a == POOL_HANDLE_TYPES) /* pools can be shared where mapped memory can be imported */
		return device_attribute(DESCRIPTORS) ? 1 : 0;
	for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++)
		if (overrides[i].attribute == a)
			return overrides[i].value;
	return a >= 0 && (uint32_t)a < device.attribute_count ? device.attributes[a] : 0;
}
