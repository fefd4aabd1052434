// Package worker executes one guest process's commands on a Driver.
package worker

import (
	"fmt"
	"os"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Driver is a device that can run CUDA work: gpu/cuda (a real card), gpu/soft/device
// (the CPU) and gpu/null (nothing is computed). The issuer calls it from one goroutine, in the order of
// the guest's commands; no call blocks on device work, nor because much is
// enqueued: the worker bounds that (flow.go). Errors are abi.Result values,
// possibly wrapped with detail for the log.
//
// NewContext, ModuleLoad and Destroy may take long. They are called from
// goroutines of their own, several at once, while the issuer goes on with other
// calls to the same driver and context; these do not wait for them.
//
// Asynchronous operations take a done function, which is called exactly once,
// from any goroutine, when the operation and all before it in its stream have
// finished; done must not call back into the driver. nil is allowed. When the
// call itself returns an error, done is not called. After an
// asynchronous error (a kernel's illegal address) the context is poisoned:
// every later operation reports that same error.
type Driver interface {
	// Info describes the device. TotalMemory is the card's; the worker puts
	// the vGPU's limit in its place.
	Info() abi.DeviceInfoReply
	// NewContext makes a context whose work passes through the gate. Its device
	// addresses lie in the window, which must outlive it; contexts of one guest
	// process share a window.
	NewContext(flags uint32, gate Gate, w *Window) (Context, error)
	// ImageInfo lists the kernels of an image that ModuleLoad takes, with their
	// parameters and without attributes, and loads nothing: what is wrong with the
	// rest of the image shows when it is loaded. It is called from any goroutine.
	ImageInfo(image []byte) (abi.ModuleInfo, error)
	// Evicts reports whether Evict and Restore work on this device.
	Evicts() bool
	// Close frees everything.
	Close() error
}

// The driver's own objects; the worker keeps them behind the guest's handles.
type (
	// Stream nil is the context's legacy default stream.
	Stream interface{}
	// Event of a context.
	Event interface{}
	// Module that was loaded.
	Module interface{}
	// Function of a module.
	Function interface{}
)

// StreamNonBlocking and the event flags are those of cuda.h.
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
	Cluster     [3]uint32 // blocks of a cluster; 0: as the kernel requires, or none
	Params      []byte
	// Attributes that a stream and a launch can both have: hints, which a device
	// may leave out.
	Attributes []abi.StreamAttrValue
}

// Context is one CUDA context.
type Context interface {
	Calls // what is passed on as it is

	// MemAlloc returns the device address of size zeroed bytes, AllocUnit-aligned and
	// in the context's window, unique in the driver, whatever the context. It fails
	// with abi.ErrOutOfMemory when the window has no room.
	MemAlloc(size uint64) (uint64, error)
	// MemFree waits for nothing: memory is freed when the work enqueued so far is done.
	MemFree(address uint64) error

	// MemFreeAsync frees memory when the work enqueued in the stream so far is done,
	// whatever runs in others. done is called when its bytes are free on the device.
	MemFreeAsync(s Stream, address uint64, done func(error)) error

	// HostRegister lets the context's work read and write memory of this process
	// at its address, which lies in the host part of the context's window and is
	// the same for the device. The memory is not the device's: it counts as none
	// of its bytes and is never evicted. It stays mapped until HostUnregister's
	// done, or until Destroy. The error says why the device cannot reach it.
	HostRegister(address uint64, memory []byte) error
	// HostUnregister takes it back. done is called once, from any goroutine, when
	// no work can touch the memory any more, at the latest by Destroy; it must not
	// call back into the driver. The error is that the context does not have it;
	// then done is not called.
	HostUnregister(address uint64, done func()) error

	// The host slices must stay valid until done.
	CopyHtoD(s Stream, dst uint64, src []byte, done func(error)) error
	CopyDtoH(s Stream, dst []byte, src uint64, done func(error)) error
	CopyDtoD(s Stream, dst, src, size uint64, done func(error)) error
	// Memset writes count elements of width 1, 2 or 4 bytes.
	Memset(s Stream, dst uint64, value, width uint32, count uint64, done func(error)) error

	// ModuleLoad takes PTX, a cubin or a fatbin. The info's logs are filled
	// also when it fails. A device whose work can use host memory lists an image's
	// managed variables in the info's globals, and fails with abi.ErrNotSupported, if
	// the options have no memory for them. Functions come in the order of info.Functions. It is
	// called from any goroutine; a Destroy or an Evict meanwhile waits for it, or
	// it fails, or takes no notice. Unloading its module is allowed even after Destroy.
	ModuleLoad(image []byte, o ModuleOptions) (Module, []Function, abi.ModuleInfo, error)
	ModuleUnload(Module) error
	FuncSetAttribute(f Function, attribute, value int32) error
	Launch(s Stream, f Function, l Launch, done func(error)) error

	StreamCreate(flags uint32, priority int32) (Stream, error)
	StreamDestroy(Stream) error
	// StreamQuery is nil when all work is done, else abi.ErrNotReady or the context's error.
	StreamQuery(Stream) error
	StreamWaitEvent(s Stream, e Event) error
	// StreamNotify calls done when the work enqueued so far is done.
	StreamNotify(s Stream, done func(error)) error

	EventCreate(flags uint32) (Event, error)
	EventDestroy(Event) error
	EventRecord(e Event, s Stream) error
	EventQuery(Event) error
	// EventNotify calls done when the event's latest record is done; at once if it was never recorded.
	EventNotify(e Event, done func(error)) error

	// Evict moves memory off the device into the host's, piece by piece, until
	// at least bytes have left or nothing is there, and returns how many have:
	// bytes of allocations, each rounded up to AllocUnit. It is called, from any
	// goroutine, only while nobody of the context is inside the gate, and until
	// Restore nobody enters: work that is enqueued meanwhile waits there. The
	// addresses stay, and memory allocated meanwhile is the host's. On an evicted
	// context it moves more. A failed Evict changes nothing; one that a Destroy
	// interrupts fails with abi.ErrInvalidContext.
	Evict(bytes uint64) (moved uint64, err error)
	// Restore brings all of it back to its addresses. It fails with
	// abi.ErrOutOfMemory, and changes nothing, when the device has no room.
	Restore() error

	// Notify calls done when all work of the context is done.
	Notify(done func(error)) error
	// Destroy waits for running work to stop and frees everything. It is called
	// from any goroutine, once, and no other call but that of a ModuleLoad that
	// is under way, ModuleUnload and Notify's done comes with it or after it.
	Destroy() error
}

// Printer is a Context whose kernels print. PrintTo is called once, before any
// other use; output is then called from any goroutine while a kernel runs, with
// abi.OutputStdout or OutputStderr, must be done with the text when it returns, and
// may be called until Destroy returns.
type Printer interface {
	PrintTo(output func(to uint32, text []byte))
}

// ValueWaiter is a Context whose streams can wait for a value in memory. The device's
// attributes say so (CAN_USE_STREAM_MEM_OPS and its kin, CUdevice_attribute).
type ValueWaiter interface {
	// StreamWaitValue lets the stream go on when the value of width bytes, 4 or 8, at
	// an address, which is a multiple of that, compares with value as
	// CUstreamWaitValue_flags says; whoever writes it. What waits needs no turn on the
	// device, holds up no other stream, and ends with the context.
	StreamWaitValue(s Stream, address, value uint64, width, flags uint32, done func(error)) error
}

// Mapper is a Context whose memory can be mapped where the guest says (CUDA driver API,
// "Virtual Memory Management"). The device's attribute
// VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED says so. The session chooses addresses, which the
// window has lent it, and calls nothing with a mapping that is not there or is being
// taken away. Sizes and addresses are multiples of abi.MapGranule.
type Mapper interface {
	// MemCreate makes zeroed memory that is at no address, and returns a number for it.
	// It counts, and is evicted, as what MemAlloc gives.
	MemCreate(size uint64) (memory uint64, err error)
	// MemRelease frees memory that is mapped nowhere, as MemFree does.
	MemRelease(memory uint64) error
	// MemMap shows memory, all of its size bytes, at an address too, without access.
	MemMap(address, size, memory uint64) error
	// MemSetAccess sets what the context's work may do with a whole mapping. Copies
	// and kernels may go from one mapping to the next where both have access.
	MemSetAccess(address uint64, access Access) error
	// MemUnmap takes a whole mapping away. done is called once, from any goroutine,
	// when no work can use it any more, at the latest by Destroy; it must not call
	// back into the driver.
	MemUnmap(address uint64, done func()) error
}

// Sharer is a Context whose memory work of other processes can use (CUDA driver API,
// "IPC").
type Sharer interface {
	// Share makes an allocation of MemAlloc, or memory of MemCreate by its number, memory
	// of a file, with what is in it; it keeps its addresses. It is called, from any
	// goroutine, while all of the session's memory is on the device and nobody is inside
	// the gate. From then on Evict leaves the allocation where it is.
	Share(address uint64) (Shared, error)
	// OpenShared shows what a Share of another process gave at an address that the
	// session has lent for it, with access. The driver believes nothing that the file's
	// maker says.
	OpenShared(address uint64, m Shared) error
	// CloseShared takes it away. done is called once, from any goroutine, when no work
	// can use it any more, at the latest by Destroy; it must not call back into the driver.
	CloseShared(address uint64, done func()) error
	// ImportShared makes memory that can be mapped of what a Share of another process
	// gave, and returns a number for it. It counts as none of the device's bytes.
	// MemRelease gives it up.
	ImportShared(m Shared) (memory uint64, err error)
}

// Shared is where memory lies that several processes use.
type Shared struct {
	Size uint64   // bytes
	File *os.File // they are its first ones
}

// ShareToken names memory that a session shares. Who knows it may open the memory.
type ShareToken [2]uint64

func (t ShareToken) String() string { return fmt.Sprintf("%016x%016x", t[0], t[1]) }

// Access is what work may do with memory that is mapped: CUmemAccess_flags of cuda.h.
type Access uint32

// Access of mappings. A device may let work write to what it may only read.
const (
	AccessNone      Access = 0
	AccessRead      Access = 1
	AccessReadWrite Access = 3
)

// LazyLoader is a Context that may list functions of a module with attributes of 0,
// and compiles such a function when it is first used.
type LazyLoader interface {
	// FunctionInfo compiles the function if need be, which may take long. It is
	// called from any goroutine, and the module may be unloaded or the context
	// destroyed meanwhile.
	FunctionInfo(Function) (abi.FunctionInfo, error)
}

// Partitioner is a Driver that has green contexts (CUDA driver API, "Green Contexts"): the
// guest's library knows which multiprocessors one stands for, and all work runs alike.
type Partitioner interface {
	// Multiprocessors returns how many there are to share out.
	Multiprocessors() uint32
}

// ClusterOccupancy is a Context whose device has clusters and knows how many fit.
type ClusterOccupancy interface {
	// MaxActiveClusters returns how many clusters of a launch the device can have at a time.
	MaxActiveClusters(Function, Launch) (int32, error)
	// MaxClusterSize returns the most blocks of a cluster of such a launch.
	MaxClusterSize(Function, Launch) (int32, error)
}

// Stager is a Driver that copies from and to memory that it has been told of without a
// stop of its own.
type Stager interface {
	// Stage names the memory through which a guest's copies pass, before there is a
	// context. It stays mapped as long as there is one.
	Stage(memory []byte)
}

// AllocUnit is what memory is accounted in, bytes: the alignment of device
// addresses, so that many small pieces cannot take more than they count, and that of
// textures (attribute 14 of all cards so far), as memory may become one.
const AllocUnit = 512

// Accounted is what an allocation of size bytes counts.
func Accounted(size uint64) uint64 { return (size + AllocUnit - 1) &^ (AllocUnit - 1) }

// ModuleOptions come from the guest's JIT options, but for Managed.
type ModuleOptions struct {
	OptLevel, MaxRegisters uint32
	// Lazy: a LazyLoader may leave kernels to be compiled when they are first used.
	Lazy bool
	// Managed is where an image's managed variables are to lie; nil: nowhere.
	Managed *ManagedMemory
}

// ManagedMemory is host memory of the guest for the managed variables of a module:
// one after the other in the order of their list, each at the next multiple of
// abi.ManagedAlign from Base, which is one, on.
type ManagedMemory struct {
	Base  uint64 // address
	Bytes []byte
	// Fresh: they get their first values. Else another context's module has them
	// already, and they stay as they are.
	Fresh bool
}

// Gate is where device work asks for its turn. A driver calls Enter before it
// puts work on the device and Leave after that work is finished; between, it
// asks Expired at safe points (soft: every few basic blocks) and, when true, leaves
// and enters again. Enter fails when the session ends.
type Gate interface {
	Enter() error
	Expired() bool
	// Leave accounts for the work: nanoseconds of device time and launches completed.
	Leave(busyNanos uint64, launches uint64)
}

// LongGate is a Gate for drivers whose kernels cannot be interrupted.
type LongGate interface {
	Gate
	// Outlasted reports whether the lease has been over for so long that a kernel
	// must be keeping it, while nobody else waits for the device. Other work may
	// go on then: on a card of its own it would.
	Outlasted() bool
}
