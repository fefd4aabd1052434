/* Every CUresult of the public documentation, with our own description. */
#include "state.h"

static const struct {
	int code;
	const char *name, *text;
} results[] = {
#define R(code, name, text) {code, #name, text}
	R(0, CUDA_SUCCESS, "no error"),
	R(1, CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	R(2, CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	R(3, CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	R(4, CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
	R(5, CUDA_ERROR_PROFILER_DISABLED, "profiler disabled while using external profiling tool"),
	R(6, CUDA_ERROR_PROFILER_NOT_INITIALIZED, "profiler not initialized"),
	R(7, CUDA_ERROR_PROFILER_ALREADY_STARTED, "profiler already started"),
	R(8, CUDA_ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped"),
	R(34, CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
	R(46, CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device is busy or unavailable"),
	R(100, CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	R(101, CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	R(102, CUDA_ERROR_DEVICE_NOT_LICENSED, "device lacks a license"),
	R(200, CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	R(201, CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	R(202, CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "context already current"),
	R(205, CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
	R(206, CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
	R(207, CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped"),
	R(208, CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
	R(209, CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
	R(210, CUDA_ERROR_ALREADY_ACQUIRED, "resource already acquired"),
	R(211, CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
	R(212, CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "resource not mapped as array"),
	R(213, CUDA_ERROR_NOT_MAPPED_AS_POINTER, "resource not mapped as pointer"),
	R(214, CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
	R(215, CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
	R(216, CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "exclusive-thread device already in use by a different thread"),
	R(217, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
	R(218, CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	R(219, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid OpenGL or DirectX context"),
	R(220, CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution"),
	R(221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
	R(222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain"),
	R(223, CUDA_ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled"),
	R(224, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the provided execution affinity is not supported"),
	R(225, CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "device-side synchronization is not supported"),
	R(300, CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
	R(301, CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	R(302, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found"),
	R(303, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed"),
	R(304, CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
	R(400, CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	R(401, CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
	R(402, CUDA_ERROR_LOSSY_QUERY, "attempted introspection would be semantically lossy"),
	R(500, CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	R(600, CUDA_ERROR_NOT_READY, "device not ready"),
	R(700, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	R(701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
	R(702, CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	R(703, CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "launch uses incompatible texturing mode"),
	R(704, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
	R(705, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
	R(708, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
	R(709, CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	R(710, CUDA_ERROR_ASSERT, "device-side assert triggered"),
	R(711, CUDA_ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted"),
	R(712, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
	R(713, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
	R(714, CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
	R(715, CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
	R(716, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
	R(717, CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space"),
	R(718, CUDA_ERROR_INVALID_PC, "invalid program counter"),
	R(719, CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	R(720, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
	R(800, CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
	R(801, CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	R(802, CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
	R(803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the guest's library and the host's worker do not fit together"),
	R(804, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward compatibility was attempted on non supported HW"),
	R(805, CUDA_ERROR_MPS_CONNECTION_FAILED, "MPS client failed to connect to the MPS control daemon or the MPS server"),
	R(806, CUDA_ERROR_MPS_RPC_FAILURE, "the remote procedural call between the MPS server and the MPS client failed"),
	R(807, CUDA_ERROR_MPS_SERVER_NOT_READY, "MPS server is not ready to accept new MPS client requests"),
	R(808, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the hardware resources required to create MPS client have been exhausted"),
	R(809, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "the hardware resources required to support device connections have been exhausted"),
	R(810, CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server"),
	R(811, CUDA_ERROR_CDP_NOT_SUPPORTED, "the program is using CUDA Dynamic Parallelism, which is not supported"),
	R(812, CUDA_ERROR_CDP_VERSION_MISMATCH, "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
	R(900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
	R(901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
	R(902, CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
	R(903, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
	R(904, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
	R(905, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
	R(906, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
	R(907, CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
	R(908, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a thread-local capture sequence from another thread"),
	R(909, CUDA_ERROR_TIMEOUT, "wait operation timed out"),
	R(910, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed because it included changes which violated constraints"),
	R(911, CUDA_ERROR_EXTERNAL_DEVICE, "an async error has occurred in external entity outside of CUDA"),
	R(912, CUDA_ERROR_INVALID_CLUSTER_SIZE, "a kernel launch error has occurred due to cluster misconfiguration"),
	R(913, CUDA_ERROR_FUNCTION_NOT_LOADED, "function is not loaded"),
	R(914, CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type"),
	R(915, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
	R(999, CUDA_ERROR_UNKNOWN, "unknown error"),
#undef R
};

static int find(int code)
{
	for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
		if (results[i].code == code)
			return (int)i;
	return -1;
}

CUDA_API CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	int i = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : results[i].name;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : 0;
}

CUDA_API CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	int i = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : results[i].text;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : 0;
}
