package device

import (
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

// Limits that are the same for all models. The soft GPU has an unlimited number of
// registers; the limits must be consistent, because programs divide one by the other.
const (
	maxRegisters       = 65536 // of 32 bits, per block and per multiprocessor
	maxThreadRegisters = 255
	textureAlignment   = 512 // bytes, of device memory that is used as a texture
	texturePitch       = 32  // bytes, of its rows
	registerUnit       = 8   // registers of a thread are allocated in multiples of it
)

// registers returns NUM_REGS of a kernel: 32-bit registers per thread, at most as many
// as a block of the kernel's maximum size can have, and at most the limits of the
// program that are not 0. The soft GPU never spills, so a lower number has no cost.
func registers(p *ir.Program, allowed ...uint32) uint32 {
	most := maxRegisters / roundUp(p.MaxThreads, ir.WarpSize) &^ (registerUnit - 1)
	n := min(uint32(p.Regs32+2*p.Regs64), most, maxThreadRegisters)
	for _, limit := range allowed {
		if limit > 0 {
			n = min(n, limit)
		}
	}
	return max(1, n)
}

// roundUp returns n rounded up to a multiple of unit, a power of two.
func roundUp(n, unit uint32) uint32 { return (n + unit - 1) &^ (unit - 1) }

// attributes returns the CUdevice_attribute values (CUDA driver API, "Data types used
// by CUDA driver"): those of the model, and the features of the soft GPU.
func attributes(o Options) []int32 {
	m := o.Model
	a := make([]int32, 146)
	for i, v := range map[int]int{
		1: ir.MaxThreads, // MAX_THREADS_PER_BLOCK
		2: 1024, 3: 1024, 4: 64,
		5: 1<<31 - 1, 6: 65535, 7: 65535, // MAX_GRID_DIM
		8:  compile.MaxSharedBytes, // MAX_SHARED_MEMORY_PER_BLOCK
		9:  64 << 10,               // TOTAL_CONSTANT_MEMORY
		10: ir.WarpSize,
		11: 1<<31 - 1,      // MAX_PITCH
		12: maxRegisters,   // MAX_REGISTERS_PER_BLOCK
		13: m.Clock * 1000, // CLOCK_RATE, kHz
		14: textureAlignment,
		15: 1, // GPU_OVERLAP
		16: o.SMs,
		19: 1,                    // CAN_MAP_HOST_MEMORY
		30: textureAlignment,     // SURFACE_ALIGNMENT
		31: 1,                    // CONCURRENT_KERNELS
		32: truth(m.ECC),         // ECC_ENABLED
		33: 0,                    // PCI_BUS_ID
		34: 0,                    // PCI_DEVICE_ID
		36: m.MemoryClock * 1000, // MEMORY_CLOCK_RATE, kHz
		37: m.BusWidth,           // GLOBAL_MEMORY_BUS_WIDTH, bits
		38: m.L2Cache,            // L2_CACHE_SIZE
		39: m.Threads,            // MAX_THREADS_PER_MULTIPROCESSOR
		40: m.CopyEngines,        // ASYNC_ENGINE_COUNT
		41: 1,                    // UNIFIED_ADDRESSING
		51: texturePitch,
		75: int(o.Capability / 10), 76: int(o.Capability % 10), // COMPUTE_CAPABILITY_MAJOR, MINOR
		78:              1,                // STREAM_PRIORITIES_SUPPORTED
		79:              1,                // GLOBAL_L1_CACHE_SUPPORTED
		80:              1,                // LOCAL_L1_CACHE_SUPPORTED
		81:              m.SharedBytes,    // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
		82:              maxRegisters,     // MAX_REGISTERS_PER_MULTIPROCESSOR
		83:              1,                // MANAGED_MEMORY, by pages of the host
		87:              m.DoubleRatio,    // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
		89:              1,                // CONCURRENT_MANAGED_ACCESS
		90:              1,                // COMPUTE_PREEMPTION_SUPPORTED
		97:              m.BlockShared,    // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
		102:             1,                // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
		103:             1,                // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
		106:             m.Blocks,         // MAX_BLOCKS_PER_MULTIPROCESSOR
		111:             m.ReservedShared, // RESERVED_SHARED_MEMORY_PER_BLOCK
		attributePCIIDs: pciIDs(m),
		92:              1,                                        // CAN_USE_STREAM_MEM_OPS_V1
		93:              1,                                        // CAN_USE_64_BIT_STREAM_MEM_OPS_V1
		94:              1,                                        // CAN_USE_STREAM_WAIT_VALUE_NOR_V1
		95:              1,                                        // COOPERATIVE_LAUNCH
		120:             truth(o.Capability >= firstWithClusters), // CLUSTER_LAUNCH
		122:             1,                                        // CAN_USE_64_BIT_STREAM_MEM_OPS
		123:             1,                                        // CAN_USE_STREAM_WAIT_VALUE_NOR
		127:             truth(o.Capability >= firstWithTensors),  // TENSOR_MAP_ACCESS_SUPPORTED
	} {
		a[i] = int32(v)
	}
	textureLimits(a)
	return a
}

// attributePCIIDs is CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID.
const attributePCIIDs = 139

// pciIDs returns the PCI device ID in the upper half and the vendor's in the lower; 0
// for a model that is not a real GPU.
func pciIDs(m model.Model) int {
	if m.PCIDevice == 0 {
		return 0
	}
	return int(int32(uint32(m.PCIDevice)<<16 | model.PCIVendor))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// textureLimits sets the attributes MAXIMUM_TEXTURE… and MAXIMUM_SURFACE….
func textureLimits(a []int32) {
	for first, limits := range map[int][]int32{
		21: {texture.MaxWidth1D, texture.MaxWidth2D, texture.MaxHeight2D, texture.Max3D, texture.Max3D, texture.Max3D,
			texture.Max2DL, texture.Max2DL, texture.MaxLayers}, // 1D, 2D, 3D, 2D with layers
		42: {texture.MaxWidth1DL, texture.MaxLayers},                                               // 1D with layers
		45: {texture.MaxWidth2D, texture.MaxHeight2D, texture.Max3D, texture.Max3D, texture.Max3D}, // gathers; 3D in another shape
		52: {texture.MaxCube, texture.MaxCube, texture.MaxCubes},                                   // cube maps, without and with layers
		55: {texture.MaxWidth1D, texture.MaxWidth2D, texture.MaxHeight2D, texture.Max3D, texture.Max3D, texture.Max3D,
			texture.MaxWidth1DL, texture.MaxLayers, texture.Max2DL, texture.Max2DL, texture.MaxLayers, texture.MaxCube, texture.MaxCube, texture.MaxCubes}, // surfaces
		69: {texture.MaxLinear, texture.MaxWidth2D, texture.MaxHeight2D, texture.MaxPitch, texture.MaxWidth2D, texture.MaxHeight2D}, // device memory; 2D with levels
		77: {texture.MaxWidth1D},                                                                                                    // 1D with levels
	} {
		copy(a[first:], limits)
	}
}
