package abi

// Records that the worker writes into a guest's buffer. Each starts with u32
// record version (1) and u32 total bytes of the record, including these two.
// Strings are u32 length + UTF-8 bytes without NUL, padded with zeros to the next
// multiple of 4 of the record. There is no padding except where this file
// states it: a u64 may be at any multiple of 4. A reader skips bytes after the last
// field that it knows, up to the record's total. Records are encoded and decoded
// by reply_codec.go and the guest library's reply.c.
//
// A buffer that is too small for a record gets CUDA_ERROR_INVALID_VALUE; value 0
// is then the number of bytes needed, and nothing was loaded. Only the logs of a
// ModuleInfo are truncated to fit when the load failed anyway.

// RecordVersion is the first word of each record.
const RecordVersion = 1

// DeviceInfoReply answers DeviceInfo.
//
//	u32 version, u32 bytes
//	u64 total memory of the vGPU, bytes
//	u8[16] uuid
//	u32 number of attributes, u32 zero
//	i32 value per attribute, indexed by CUdevice_attribute; 0 where unknown
//	string name
//	string driver version ("550.163.01"), u32 CUDA version (12040)
//	u32 number of the VM's devices; 1 where the record ends before it
type DeviceInfoReply struct {
	TotalMemory   uint64
	UUID          [16]byte
	Attributes    []int32
	Name          string
	DriverVersion string
	CUDAVersion   uint32
	Devices       uint32
}

// ModuleInfo answers ModuleLoad.
//
//	u32 version, u32 bytes
//	u32 number of functions, u32 number of globals
//	per function: string name, u32 number of parameters, then per parameter
//	  u32 offset, u32 size; then i32 attributes indexed by
//	  CUfunction_attribute 0 to 9
//	per global: string name, u32 zero padding where the offset from the
//	  record's start is not a multiple of 8, u64 address, u64 size
//	string info log, string error log
//	u32 number of functions that the device cannot run, then per one u32 index,
//	  string why; none where the record ends before it
//
// The record of a failed load has only logs or, with CUDA_ERROR_NOT_SUPPORTED,
// also the image's managed variables as globals with address 0
// (ModuleLoadManaged).
type ModuleInfo struct {
	Functions []FunctionInfo
	Globals   []GlobalInfo
	InfoLog   string
	ErrorLog  string
}

// FunctionInfo describes one kernel. Its handle is first_function + index.
type FunctionInfo struct {
	Name       string
	Params     []ParamInfo
	Attributes [FunctionAttributes]int32 // CUfunction_attribute
	// Refused is the reason why the device cannot run the kernel, which is listed
	// nevertheless: its first use is CUDA_ERROR_NO_BINARY_FOR_GPU. Empty: it can
	// run it.
	Refused string
}

// FunctionAttributes is how many CUfunction_attribute values are sent.
const FunctionAttributes = 10

// ParamInfo is one kernel parameter in the parameter space, in bytes.
type ParamInfo struct{ Offset, Size uint32 }

// GlobalInfo is one module variable.
type GlobalInfo struct {
	Name          string
	Address, Size uint64
}

// VGPUStatusReply answers VGPUStatus.
//
//	u32 version, u32 bytes
//	u64 VRAM limit, u64 VRAM used, bytes
//	u32 GPU utilization, u32 memory utilization, per cent of the last second
//	u32 temperature (degrees C, 0 unknown), u32 power (mW, 0 unknown)
//	u32 number of processes, u32 zero
//	per process: u32 guest pid, u32 zero, u64 VRAM used, string name
//	and where the record does not end before it:
//	u32 number of readings, then per one u32 Reading…, u32 zero, u64 value
//	u32 number of accounted processes, then per one u32 guest pid, u32 GPU
//	  utilization, per cent of the last second, u64 start, u64 end (0: it runs),
//	  u64 GPU time in nanoseconds, u64 highest VRAM in bytes
//	u32 number of samples, then per one u64 time, u32 GPU utilization since the
//	  sample before, per cent, u32 zero
//	and where the record does not end before it:
//	u32 number of events, then per one u64 time, u32 XID, u32 guest pid
//
// Times are microseconds since 1970 of the host's clock.
type VGPUStatusReply struct {
	VRAMLimit, VRAMUsed               uint64
	GPUUtilization, MemoryUtilization uint32
	Temperature, PowerMilliwatts      uint32
	Processes                         []ProcessInfo
	Readings                          []Reading          `json:",omitempty"`
	Accounted                         []AccountedProcess `json:",omitempty"` // including those that have used the vGPU and ended recently
	Samples                           []Sample           `json:",omitempty"` // oldest first
	Events                            []GPUEvent         `json:",omitempty"` // oldest first; no two have the same time
}

// Reading is a value that a card reports. A reader ignores keys that it does not
// know.
type Reading struct {
	Key   uint32 // Reading…
	Value uint64
}

// AccountedProcess is what one guest process has used.
type AccountedProcess struct {
	PID, GPUUtilization uint32
	Start, End          uint64
	GPUNanos, PeakVRAM  uint64
}

// Sample is the vGPU's utilization up to a time.
type Sample struct {
	At             uint64
	GPUUtilization uint32
}

// GPUEvent is a critical error of a context of the vGPU, as NVIDIA numbers it (XID).
type GPUEvent struct {
	At       uint64
	XID, PID uint32
}

// ProcessInfo is one guest process on the vGPU.
type ProcessInfo struct {
	PID      uint32
	VRAMUsed uint64
	Name     string
}
