// Package abi is the contract between a guest's CUDA library and the worker that
// executes its commands: the layout of the shared region, the messages of the
// carrier, and the table of commands from which the C header and the Go decoders
// are generated. DESIGN.md in this folder describes how they are used.
//
// Everything is little-endian and naturally aligned; offsets are in bytes.
package abi

//go:generate go run ./gen

// Version of the contract. A worker serves guests of the same major version and of any minor
// version up to its own.
//
//	1.0  the first
//	1.1  the guest offers address windows (OffWindows), the worker chooses one
//	1.2  the worker reports its version (OffWorkerMinor); regions of the guest may
//	     have an address in the window (RegionPlaced, MemHostMap, MemHostUnmap)
//	1.3  an eventfd as doorbell (MsgReady), OffWorkerSleeps counts; kernels of
//	     graphs have attributes
//	1.4  StreamWaitValue
//	1.5  launches have clusters
//	1.6  kernels that are compiled on first use (LoadLazy, FuncLoad)
//	1.7  memory that the guest maps (MemReserve, MemCreate, MemMap)
//	1.8  memory and events that processes share (MemShare, MemExport, EventShare)
//	1.9  texture and surface references (ReferenceFind, ReferenceBind); green
//	     contexts (Multiprocessors)
//
// The additions of 1.2 and later are only requested by the guest, so a library announces itself
// as LibraryMinor, the oldest version that it works with, and reads OffWorkerMinor before it
// uses more: an older worker serves it as before, and an older library does not use the
// additions of a newer worker.
const (
	Major        = 1
	Minor        = 9
	LibraryMinor = 1
)

// Magic starts every shared region and every carrier message: "BSLT".
const Magic uint32 = 0x544c5342

// The header page of region 0. Guest-written and worker-written words are in
// different cache lines.
const (
	HeaderSize = 4096

	// Written once by the guest before it announces the region.
	OffMagic      = 0x000 // u32
	OffMajor      = 0x004 // u16
	OffMinor      = 0x006 // u16
	OffRegionSize = 0x008 // u64
	OffRing       = 0x010 // u64: start of the command ring, 4096-aligned
	OffRingSize   = 0x018 // u64: bytes, a power of two
	OffSlots      = 0x020 // u64: start of the completion slots, 64-aligned
	OffSlotCount  = 0x028 // u64
	OffChunkState = 0x030 // u64: start of the chunk states, one u32 each
	OffArena      = 0x038 // u64: start of the staging arena, 4096-aligned
	OffChunkSize  = 0x040 // u64: bytes, a power of two
	OffChunkCount = 0x048 // u64

	// Written by the guest while it runs.
	OffHead = 0x080 // u64: total bytes put into the ring

	// Written by the worker.
	OffTail         = 0x0c0 // u64: total bytes taken from the ring
	OffWorkerSleeps = 0x100 // u32: not 0 = ring the doorbell after enqueuing; from version 1.3 on another number each time the worker goes to sleep
	OffHeartbeat    = 0x140 // u64: changes at least every HeartbeatMillis
	OffState        = 0x180 // u32: State…
	OffError        = 0x184 // u32: CUresult that every later call returns once the state is StateDead
	OffAsyncError   = 0x188 // u32: first asynchronous error (CUresult), sticky
	OffAsyncCount   = 0x18c // u32: number of contexts that have had an asynchronous error; 0 from a worker that does not count
	OffOutputCount  = 0x190 // u32: number of times that kernels' output has become available (CtxReadOutput); 0 from a worker without output
	OffErrorText    = 0x1c0 // 256 bytes, NUL-terminated: the reason of StateDead
	ErrorTextSize   = 256

	// Written once by the guest before it announces the region, from version 1.1
	// on: the address windows that it holds, the best first. A base of 0 ends the
	// list; if it is empty the worker chooses.
	OffWindows      = 0x2c0 // MaxWindows times {u64 base, u64 size}
	WindowEntrySize = 16

	// Written by the worker before StateReady: the window that it has chosen.
	OffWindowBase = 0x340 // u64
	OffWindowSize = 0x348 // u64

	// Written by the worker before StateReady, from version 1.2 on: its minor
	// version. 0 from an older one.
	OffWorkerMinor = 0x350 // u32

	// Written by the worker before StateReady: the features that the host's
	// operator has turned on, Feature…. 0 from a worker without features.
	OffFeatures = 0x354 // u32

	// Written by the worker while it runs: how many bytes of freed memory the guest
	// may keep for its next allocations. 0 from a worker that does not support
	// this.
	OffKeepMost = 0x380 // u64

	// The memory that the guest keeps: MaxKept device addresses, each the
	// beginning of an allocation, or 0. The guest stores an address in a word that
	// is 0. Guest and worker take it out by a compare-and-swap with 0: whichever
	// succeeds has the memory, the guest to use it again, the worker to free it.
	OffKept = 0x400 // MaxKept times u64
	MaxKept = 32
)

// Features that an operator can turn on.
const (
	// FeatureInterop means that the guest library may load the library that
	// answers the vendor runtime's authenticity query (docs/vendor-interop.md).
	FeatureInterop uint32 = 1
)

// Limits of an address window: the range that contains every device address of a
// session (docs/decisions/0032-one-address-window.md). All in bytes.
const (
	MaxWindows   = 8
	WindowUnit   = 2 << 20        // base and size are multiples of it
	MinWindow    = 256 << 20      // smallest size
	MaxWindow    = 1 << 40        // largest size
	WindowLowest = 1 << 36        // lowest base
	WindowEnd    = 0x7c0000000000 // no window extends beyond: loaders and stacks are above

	// WindowTail is the size of the window's end, which is not used: drivers have
	// addresses there that only kernels use. Before it is the host part, one
	// HostPart-th of the window, rounded down to WindowUnit, in which the guest
	// chooses the addresses of its regions. The worker chooses those below, for
	// device memory.
	WindowTail = 96 << 20
	HostPart   = 4

	// MapGranule is the unit of sizes and addresses of memory that the guest maps
	// (MemReserve, MemCreate, MemMap), and MaxMappings the maximum number of
	// mappings of a session: each may need two mappings of the worker
	// (vm.max_map_count is 65530 on Linux).
	MapGranule  = 2 << 20
	MaxMappings = 12 << 10
)

// States of a session, in the header's state word.
const (
	StateNew   uint32 = 0 // announced, not yet accepted
	StateReady uint32 = 1
	StateDead  uint32 = 2 // no command completes any more; the error word has the result to return
)

// HeartbeatMillis is the interval within which the worker updates the heartbeat.
// A waiting guest considers the worker dead when the heartbeat has not changed
// for HeartbeatDeadMillis.
const (
	HeartbeatMillis     = 100
	HeartbeatDeadMillis = 10000
)

// A completion slot: one cache line.
const (
	SlotSize = 64

	SlotState  = 0x00 // u32: Slot…
	SlotResult = 0x04 // i32: CUresult
	SlotValue0 = 0x08 // u64
	SlotValue1 = 0x10 // u64
)

// States of a completion slot. The guest sets SlotPending before it enqueues,
// and compare-and-swaps Pending to Sleeping before it blocks; the worker
// writes result and values, then exchanges the state for SlotDone, and wakes
// the guest if it was Sleeping.
const (
	SlotPending  uint32 = 0
	SlotSleeping uint32 = 1
	SlotDone     uint32 = 2
)

// States of a staging chunk. The guest takes free chunks (one lock in the
// guest) and marks them busy; for a command with FlagReleaseChunks the worker
// marks them free when the bytes have been used.
const (
	ChunkFree uint32 = 0
	ChunkBusy uint32 = 1
)

// Limits that the worker enforces on region 0 and on the session.
const (
	MinRingSize    = 4096
	MaxRingSize    = 16 << 20
	MaxSlots       = 4096
	MaxChunkSize   = 16 << 20
	MaxChunks      = 4096
	MaxRegionSize  = 1 << 32
	MaxRegions     = 1024
	MaxHandles     = 1 << 20 // of all kinds together, per guest process
	MaxModuleImage = 256 << 20

	// LoadLazy in a load's opt_level means that functions of the module may have
	// attributes of 0; FuncLoad returns them, and whether the device can run the
	// function.
	LoadLazy      = 1 << 31
	MaxParamBytes = 32764 // kernel parameters of one launch, as on devices from sm_70 on; 4096 before 1.2
	MaxInline     = 4096  // bytes carried inside a command
	ManagedAlign  = 256   // bytes: the address of every managed variable of a module is a multiple of it
)

// EntryHeaderSize is the size of a command's header in the ring:
//
//	u32 length   the whole entry with its header, a multiple of 8
//	u16 opcode
//	u16 flags    Flag…
//	u32 slot     completion slot, or NoSlot
//	u32 inline   bytes of variable data after the fixed arguments
//
// then the command's fixed arguments, then inline bytes, then padding to 8. An
// entry never wraps: the guest fills the rest of the ring with one OpNop. Nor
// does it leave exactly 8 bytes there, which no OpNop could fill: the guest puts
// the OpNop in the place of that entry and begins at the ring's start.
const EntryHeaderSize = 16

// NoSlot means that the command has no completion slot.
const NoSlot uint32 = 0xffffffff

// Flags of a ring entry.
const (
	// FlagReleaseChunks is for CopyHtoD (src) and ModuleLoad (image) only: that
	// Buf is in the arena of region 0. When its bytes have been used, or the
	// command has failed, the worker marks its chunks free.
	FlagReleaseChunks uint16 = 1
)

// Destinations of a kernel's output (CtxReadOutput).
const (
	OutputStdout uint32 = 1
	OutputStderr uint32 = 2
)

// LimitPrintfFIFO is CU_LIMIT_PRINTF_FIFO_SIZE; the other constant is its initial
// value, in bytes.
const (
	LimitPrintfFIFO   uint32 = 1
	DefaultPrintfFIFO        = 1 << 20
)

// Limits of graphs (graph_codec.go). A worker that does not know their commands,
// of version 1.1 or earlier, answers them with CUDA_ERROR_NOT_SUPPORTED.
const (
	MaxGraphNodes = 1 << 16  // in one GraphInstantiate
	MaxGraphEdges = 1 << 18  // dependencies of all nodes together
	MaxGraphBytes = 64 << 20 // of the record
	MaxGraphRows  = 1 << 16  // rows of all copies and memsets that are not contiguous
)

// Kinds of a graph's nodes, with the numbers of CUgraphNodeType. Host functions,
// child graphs and copies of memory that the worker does not see stay in the
// guest.
const (
	GraphNodeKernel      uint32 = 0
	GraphNodeCopy        uint32 = 1
	GraphNodeMemset      uint32 = 2
	GraphNodeEmpty       uint32 = 5
	GraphNodeEventWait   uint32 = 6
	GraphNodeEventRecord uint32 = 7
)

// GraphNodeDisabled is a flag of a node that only orders other nodes.
const GraphNodeDisabled uint32 = 1

// These are the directions of a GraphCopy. Host memory is an offset in a region.
const (
	GraphCopyDtoD uint32 = 0
	GraphCopyHtoD uint32 = 1
	GraphCopyDtoH uint32 = 2
)
