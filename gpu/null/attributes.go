package null

// Reported limits of the device, which it does not have itself. They are those of
// the soft GPU, so that a program behaves the same on both.
const (
	capability         = 61 // that of sm_61
	warpSize           = 32
	maxThreads         = 1024 // per block
	maxSharedBytes     = 48 << 10
	maxOptInBytes      = 96 << 10
	maxRegisters       = 65536
	maxResidentThreads = 2048
	maxResidentBlocks  = 32
)

// attributes returns the CUdevice_attribute values (CUDA driver API, "Data types
// used by CUDA driver").
func attributes(o Options) []int32 {
	a := make([]int32, 146)
	for i, v := range map[int]int32{
		1: maxThreads, // MAX_THREADS_PER_BLOCK
		2: 1024, 3: 1024, 4: 64,
		5: 1<<31 - 1, 6: 65535, 7: 65535, // MAX_GRID_DIM
		8:  maxSharedBytes, // MAX_SHARED_MEMORY_PER_BLOCK
		9:  64 << 10,       // TOTAL_CONSTANT_MEMORY
		10: warpSize,
		11: 1<<31 - 1,    // MAX_PITCH
		12: maxRegisters, // MAX_REGISTERS_PER_BLOCK
		13: 1000000,      // CLOCK_RATE, kHz
		14: 512,          // TEXTURE_ALIGNMENT
		15: 1,            // GPU_OVERLAP
		16: int32(o.SMs), // MULTIPROCESSOR_COUNT
		19: 1,            // CAN_MAP_HOST_MEMORY
		30: 512,          // SURFACE_ALIGNMENT
		36: 1000000,      // MEMORY_CLOCK_RATE, kHz
		37: 64,           // GLOBAL_MEMORY_BUS_WIDTH, bits
		38: 1 << 20,      // L2_CACHE_SIZE
		39: maxResidentThreads,
		40: 1,                                    // ASYNC_ENGINE_COUNT
		41: 1,                                    // UNIFIED_ADDRESSING
		51: 32,                                   // TEXTURE_PITCH_ALIGNMENT
		75: capability / 10, 76: capability % 10, // COMPUTE_CAPABILITY_MAJOR, MINOR
		78:  1,             // STREAM_PRIORITIES_SUPPORTED
		79:  1,             // GLOBAL_L1_CACHE_SUPPORTED
		80:  1,             // LOCAL_L1_CACHE_SUPPORTED
		81:  maxOptInBytes, // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
		82:  maxRegisters,  // MAX_REGISTERS_PER_MULTIPROCESSOR
		83:  1,             // MANAGED_MEMORY
		87:  2,             // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
		89:  1,             // CONCURRENT_MANAGED_ACCESS
		90:  1,             // COMPUTE_PREEMPTION_SUPPORTED
		97:  maxOptInBytes, // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
		102: 1,             // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
		103: 1,             // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
		106: maxResidentBlocks,
	} {
		a[i] = v
	}
	return a
}
