// Package worker executes one guest process's commands on a Driver.
package worker

import (
	"fmt"
	"os"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Driver is a device that can run CUDA work: gpu/cuda (a real card), gpu/soft/device (the CPU) and
// gpu/null (computes nothing). The issuer calls it from one goroutine, in the order of the guest's
// commands. No call blocks on device work or because much is enqueued: the worker limits that
// (flow.go). Errors are abi.Result values, possibly wrapped with detail for the log.
//
// NewContext, ModuleLoad, Destroy, and the functions that allocate memory (MemAlloc, MemCreate and
// ArrayCreate) may take long. They are called from goroutines of their own, several at once, while
// the issuer makes other calls to the same driver and context; these do not wait for them.
//
// Asynchronous operations have a done function, which is called exactly once, from any goroutine,
// when the operation and all operations before it in its stream have finished; done must not call
// back into the driver. It may be nil. When the call itself returns an error, done is not called.
// After an asynchronous error (such as a kernel's illegal address) the context is poisoned: every
// later operation returns that same error.
type Driver interface {
	// Info describes the device. TotalMemory is the card's; the worker replaces
	// it with the vGPU's limit.
	Info() abi.DeviceInfoReply
	// NewContext returns a context whose work passes through the gate. Its device
	// addresses are in the window, which must outlive it; contexts of one guest
	// process share a window.
	NewContext(flags uint32, gate Gate, w *Window) (Context, error)
	// ImageInfo lists the kernels of an image that ModuleLoad accepts, with their
	// parameters and without attributes. It loads nothing: errors elsewhere in the
	// image are found when it is loaded. It may be called from any goroutine.
	ImageInfo(image []byte) (abi.ModuleInfo, error)
	// Evicts reports whether Evict and Restore work on this device.
	Evicts() bool
	// Close frees everything.
	Close() error
}

// The driver's own objects; the worker maps the guest's handles to them.
type (
	// Stream is a stream of a context; nil is the context's legacy default
	// stream.
	Stream interface{}
	// Event is an event of a context.
	Event interface{}
	// Module is a loaded module.
	Module interface{}
	// Function is a function of a module.
	Function interface{}
)

// StreamNonBlocking and the event flags have the values of cuda.h.
const (
	StreamNonBlocking  = 1
	EventBlockingSync  = 1
	EventDisableTiming = 2
)

// Launch is one kernel launch. Dimensions are in blocks and threads, Shared in
// bytes. Params is the kernel's parameter space; the driver copies it.
type Launch struct {
	Grid, Block [3]uint32
	Shared      uint32
	Cooperative bool
	Cluster     [3]uint32 // blocks per cluster; 0: as the kernel requires, or none
	Params      []byte
	// Attributes has those that both a stream and a launch can have. They are
	// hints, which a device may ignore.
	Attributes []abi.StreamAttrValue
}

// Context is one CUDA context.
type Context interface {
	Calls // calls that are passed on unchanged

	// MemAlloc returns the device address of size zeroed bytes. The address is
	// AllocUnit-aligned, in the context's window, and unique in the driver across
	// contexts. MemAlloc fails with abi.ErrOutOfMemory when the window has no room.
	MemAlloc(size uint64) (uint64, error)
	// MemFree does not wait: memory is freed when the work enqueued so far is done.
	MemFree(address uint64) error

	// MemFreeAsync frees memory when the work enqueued in the stream so far is done,
	// regardless of work in other streams. done is called when its bytes are free on
	// the device.
	MemFreeAsync(s Stream, address uint64, done func(error)) error

	// HostRegister lets the context's work read and write memory of this process
	// at its address, which is in the host part of the context's window and is
	// the same for the device. It does not count as memory of the device and is
	// never evicted. It stays mapped until HostUnregister's done, or until
	// Destroy. The error is the reason why the device cannot access it.
	HostRegister(address uint64, memory []byte) error
	// HostUnregister reverts HostRegister. done is called once, from any
	// goroutine, when no work can access the memory any more, at the latest by
	// Destroy; it must not call back into the driver. An error means that the
	// context does not have the memory; done is not called then.
	HostUnregister(address uint64, done func()) error

	// The host slices must remain valid until done is called.
	CopyHtoD(s Stream, dst uint64, src []byte, done func(error)) error
	CopyDtoH(s Stream, dst []byte, src uint64, done func(error)) error
	CopyDtoD(s Stream, dst, src, size uint64, done func(error)) error
	// Memset writes count elements of width 1, 2 or 4 bytes.
	Memset(s Stream, dst uint64, value, width uint32, count uint64, done func(error)) error

	// ModuleLoad loads PTX, a cubin or a fatbin. The info's logs are set even when it fails. If
	// the options have no memory for managed variables, a device whose work can use host memory
	// lists the image's managed variables in the info's globals and fails with
	// abi.ErrNotSupported. Functions are returned in the order of info.Functions. It may be
	// called from any goroutine; a concurrent Destroy or Evict waits for it, makes it fail, or
	// does not affect it. Unloading its module is allowed even after Destroy.
	ModuleLoad(image []byte, o ModuleOptions) (Module, []Function, abi.ModuleInfo, error)
	ModuleUnload(Module) error
	FuncSetAttribute(f Function, attribute, value int32) error
	Launch(s Stream, f Function, l Launch, done func(error)) error

	StreamCreate(flags uint32, priority int32) (Stream, error)
	StreamDestroy(Stream) error
	// StreamQuery returns nil when all work is done, and otherwise abi.ErrNotReady or the
	// context's error.
	StreamQuery(Stream) error
	StreamWaitEvent(s Stream, e Event) error
	// StreamNotify calls done when the work enqueued so far is done.
	StreamNotify(s Stream, done func(error)) error

	EventCreate(flags uint32) (Event, error)
	EventDestroy(Event) error
	EventRecord(e Event, s Stream) error
	EventQuery(Event) error
	// EventNotify calls done when the event's latest record is done, or at once if it was never
	// recorded.
	EventNotify(e Event, done func(error)) error

	// Evict copies memory from the device to the host, piece by piece, until at
	// least bytes have been evicted or nothing is left, and returns how many
	// were: bytes of allocations, each rounded up to AllocUnit. It may be called
	// from any goroutine, but only while no work of the context is inside the
	// gate, and until Restore no work enters the gate: work that is enqueued in
	// the meantime waits there. The addresses stay the same, and memory allocated
	// in the meantime is host memory. On an evicted context Evict evicts more. A
	// failed Evict changes nothing; one that a Destroy interrupts fails with
	// abi.ErrInvalidContext.
	Evict(bytes uint64) (moved uint64, err error)
	// Restore copies all evicted memory back to its addresses. It fails with
	// abi.ErrOutOfMemory, and changes nothing, when the device has not enough
	// free memory.
	Restore() error

	// Notify calls done when all work of the context is done.
	Notify(done func(error)) error
	// Destroy waits until running work stops and frees everything. It is called
	// once, from any goroutine. Only a ModuleLoad or an allocation in progress,
	// ModuleUnload and Notify's done may run concurrently with it or after it.
	Destroy() error
}

// Printer is a Context whose kernels print. PrintTo is called once, before any
// other use. output is then called from any goroutine while a kernel runs, with
// abi.OutputStdout or OutputStderr. output must not keep the text after it returns;
// it may be called until Destroy returns.
type Printer interface {
	PrintTo(output func(to uint32, text []byte))
}

// OutputLimiter is a Printer whose device has a buffer of its own for output. LimitOutput
// sets the buffer's size in bytes, before the first kernel that prints is launched.
type OutputLimiter interface {
	LimitOutput(size uint64) error
}

// ValueWaiter is a Context whose streams can wait for a value in memory. The device's
// attributes report it (CAN_USE_STREAM_MEM_OPS and related ones, CUdevice_attribute).
type ValueWaiter interface {
	// StreamWaitValue makes the stream wait until the value of width bytes, 4 or 8, at
	// an address that is a multiple of width, compares with value as flags
	// (CUstreamWaitValue_flags) require; any writer counts. The wait needs no turn on
	// the device, delays no other stream, and ends with the context.
	StreamWaitValue(s Stream, address, value uint64, width, flags uint32, done func(error)) error
}

// Mapper is a Context whose memory can be mapped at addresses that the guest chooses
// (CUDA driver API, "Virtual Memory Management"). The device's attribute
// VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED reports it. The session chooses addresses that it
// has allocated from the window, or that the driver has reserved (Reserver), and passes
// no mapping that does not exist or is being removed. Sizes and addresses are multiples
// of abi.MapGranule.
type Mapper interface {
	// MemCreate allocates zeroed memory without an address, and returns a number that
	// identifies it. It is counted and evicted like memory of MemAlloc.
	MemCreate(size uint64) (memory uint64, err error)
	// MemRelease frees memory that is not mapped, as MemFree does.
	MemRelease(memory uint64) error
	// MemMap maps all size bytes of memory at an address, without access. The memory
	// may be mapped elsewhere too.
	MemMap(address, size, memory uint64) error
	// MemSetAccess sets the access that the context's work has to a whole mapping.
	// Copies and kernels may span adjacent mappings if they have access to all of
	// them.
	MemSetAccess(address uint64, access Access) error
	// MemUnmap removes a whole mapping. done is called once, from any goroutine,
	// when no work can use it any more, at the latest by Destroy; it must not call
	// back into the driver.
	MemUnmap(address uint64, done func()) error
}

// Sharer is a Context whose memory can be used by work of other processes (CUDA
// driver API, "IPC").
type Sharer interface {
	// Share converts an allocation of MemAlloc, or memory of MemCreate given its number,
	// to memory of a file with the same contents; its addresses stay the same. It may be
	// called from any goroutine, while all of the session's memory is on the device and
	// no work is inside the gate. From then on Evict does not evict the allocation.
	Share(address uint64) (Shared, error)
	// OpenShared maps memory that Share returned in another process at an address that
	// the session has allocated for it, with access. The driver does not trust the
	// creator of the file.
	OpenShared(address uint64, m Shared) error
	// CloseShared removes the mapping. done is called once, from any goroutine, when no
	// work can use it any more, at the latest by Destroy; it must not call back into the
	// driver.
	CloseShared(address uint64, done func()) error
	// ImportShared converts memory that Share returned in another process to memory
	// that can be mapped, and returns a number that identifies it. It does not count
	// as the device's memory. MemRelease releases it.
	ImportShared(m Shared) (memory uint64, err error)
}

// Shared describes memory that several processes use.
type Shared struct {
	Size uint64   // bytes
	File *os.File // the memory is at the beginning of this file
}

// ShareToken identifies memory that a session shares. Whoever knows it may open
// the memory.
type ShareToken [2]uint64

func (t ShareToken) String() string { return fmt.Sprintf("%016x%016x", t[0], t[1]) }

// Access is the access that work has to mapped memory: CUmemAccess_flags of cuda.h.
type Access uint32

// These are the values of Access. A device may let work write to memory that it
// may only read.
const (
	AccessNone      Access = 0
	AccessRead      Access = 1
	AccessReadWrite Access = 3
)

// LazyLoader is a Context that may list functions of a module with attributes of 0,
// and compiles such a function on first use.
type LazyLoader interface {
	// FunctionInfo compiles the function if necessary, which may take long. It is
	// called from any goroutine, and the module may be unloaded or the context
	// destroyed in the meantime.
	FunctionInfo(Function) (abi.FunctionInfo, error)
}

// Reserver is a Driver whose Mappers can map memory outside of the window too. The session
// passes addresses above abi.WindowLowest and below abi.WindowEnd that overlap neither the
// window nor each other, in whole granules (abi.MapGranule). Both functions are called by the
// issuer.
type Reserver interface {
	// Reserve keeps the addresses free of other memory of the device, and of this process if
	// the device's addresses are its own. An error means that they are in use.
	Reserve(w abi.Window) error
	// Unreserve reverts Reserve; nothing is mapped there.
	Unreserve(w abi.Window) error
}

// Partitioner is a Driver that supports green contexts (CUDA driver API, "Green
// Contexts"): the guest's library tracks which multiprocessors belong to each, and all
// work runs in the same way.
type Partitioner interface {
	// Multiprocessors returns the number of multiprocessors that can be
	// partitioned.
	Multiprocessors() uint32
}

// ClusterOccupancy is a Context whose device has clusters and can calculate how
// many fit.
type ClusterOccupancy interface {
	// MaxActiveClusters returns how many clusters of a launch can be on the device at a
	// time.
	MaxActiveClusters(Function, Launch) (int32, error)
	// MaxClusterSize returns the largest cluster, in blocks, of such a launch.
	MaxClusterSize(Function, Launch) (int32, error)
}

// Stager is a Driver that copies from and to memory announced with Stage without an
// additional synchronization.
type Stager interface {
	// Stage announces the memory through which a guest's copies pass, before there
	// is a context. It stays mapped as long as there is one.
	Stage(memory []byte)
}

// Keeper is a Driver that itself places memory in a part of the window.
type Keeper interface {
	// KeepIn calls Keep for that part. It is called when the session's window is known,
	// before anything is allocated in it.
	KeepIn(w *Window)
}

// AllocUnit is the unit of accounted memory, in bytes. It is the alignment of device
// addresses, so that many small allocations cannot take more than they count, and
// that of textures (attribute 14 of all cards so far), because memory may be used as
// one.
const AllocUnit = 512

// Accounted returns the bytes that an allocation of size bytes counts.
func Accounted(size uint64) uint64 { return (size + AllocUnit - 1) &^ (AllocUnit - 1) }

// ModuleOptions are the guest's JIT options, except for Managed.
type ModuleOptions struct {
	OptLevel, MaxRegisters uint32
	// Lazy lets a LazyLoader compile kernels when they are first used.
	Lazy bool
	// Managed is the memory for the image's managed variables; nil: none.
	Managed *ManagedMemory
}

// ManagedMemory is host memory of the guest for the managed variables of a module:
// they are stored in the order of their list from Base, each at the next multiple
// of abi.ManagedAlign. Base is such a multiple.
type ManagedMemory struct {
	Base  uint64 // address
	Bytes []byte
	// Fresh means that the variables get their initial values. Otherwise the
	// module of another context has them already, and they keep their values.
	Fresh bool
}

// Gate grants device work its turns. A driver calls Enter before it submits work to
// the device and Leave after that work is finished. In between it calls Expired at
// safe points (the soft GPU: every few basic blocks); when that returns true, it
// leaves and enters again. Enter fails when the session ends.
type Gate interface {
	Enter() error
	Expired() bool
	// Leave accounts for the work: nanoseconds of device time, and the number of
	// launches completed.
	Leave(busyNanos uint64, launches uint64)
}

// LongGate is a Gate for drivers whose kernels cannot be interrupted.
type LongGate interface {
	Gate
	// GraceExpired reports whether the lease has been over for so long that a kernel
	// must be holding it, while no other session waits for the device. Other work
	// may then run, as it would on a dedicated card.
	GraceExpired() bool
}
