package abi

// Carrier messages. On carrier (b) they travel over a SOCK_STREAM unix socket
// between the guest library and the worker; on carrier (a) the guest puts each
// into one EXECBUFFER, and basalt-vgpu passes it to the worker over the same
// kind of socket, with MsgRegion completed from the resource's backing pages.
//
// Each message starts with u32 Magic, u16 type, u16 flags, u32 length of the body,
// u32 argument; then the body. File descriptors ride on the message's first
// byte (SCM_RIGHTS).

// CarrierHeaderSize is the size of what each message starts with, in bytes.
const CarrierHeaderSize = 16

// MaxCarrierBody bounds the body of a message, in bytes.
const MaxCarrierBody = 4 << 20

// MaxCarrierFDs bounds the descriptors that come with one message.
const MaxCarrierFDs = 8

// Carrier message types.
const (
	// MsgHello, guest to worker, first of all. Body: Hello. Argument: Hello…
	// flags, see HelloWakeByMessage.
	MsgHello uint16 = 1
	// MsgRegion, guest to worker. Argument: region number; 0 is the one with
	// the header and comes right after MsgHello. Body on the worker's socket:
	// u64 size, then extents {u32 index of the descriptor, u32 zero, u64
	// offset, u64 length}, page-aligned, in order; the sum of their lengths is
	// size. Body in the guest's EXECBUFFER on carrier (a): u64 size, u32
	// virtio-gpu resource id, u32 zero. With RegionPlaced among the flags a u64
	// follows: on the socket after the size, in the EXECBUFFER at the end.
	MsgRegion uint16 = 2
	// MsgDropRegion, guest to worker. Argument: region number, not 0. The worker
	// unmaps it when no command uses it any more. The guest sends it after the
	// last command that names the region is in the ring, and gives the number
	// to another region only once the worker's tail has passed that command.
	MsgDropRegion uint16 = 3
	// MsgKick, guest to worker: the doorbell, where there is no eventfd for it.
	// No body.
	MsgKick uint16 = 4
	// MsgWait exists on carrier (a) only: a fenced EXECBUFFER whose fence
	// signals at the next wake-up of this context. It is not passed on.
	MsgWait uint16 = 5
	// MsgReady, worker to guest: region 0 is accepted. Argument: worker's
	// minor version. From version 1.3 on an eventfd comes with it on carrier
	// (b): to write to it rings the doorbell for less than a MsgKick costs.
	MsgReady uint16 = 16
	// MsgRefused, worker to guest. Argument: CUresult. Body: why, UTF-8.
	MsgRefused uint16 = 17
	// MsgWake, worker to basalt-vgpu: at least one sleeping slot is done.
	MsgWake uint16 = 18
	// MsgDropped, worker to basalt-vgpu: a dropped region's pages are no longer
	// mapped. Argument: region number. Sent only in sessions with
	// HelloWakeByMessage, once per MsgDropRegion: until then the guest kernel is
	// not told that the pages are its own again, because it would give them to
	// another process. A worker that leaves too many unanswered is ended.
	MsgDropped uint16 = 19
)

// RegionPlaced is a flag of MsgRegion, not of region 0: the body has the address
// of the region's first byte. The guest has it mapped there, in the host
// part of the session's window, and the worker maps it at the same address. A
// worker that cannot keeps the region without its pages: MemHostMap tells.
const RegionPlaced uint16 = 1

// HelloWakeByMessage stands in the argument of MsgHello: the waiters are in another
// machine; besides the futex wake on the slot's state word, send MsgWake.
const HelloWakeByMessage uint32 = 1

// HelloSize is the size of a hello's body: u16 Major, u16 Minor, u32 process id in the guest, 64 bytes of
// process name (NUL-padded, not trusted), 64 bytes of token (NUL-padded).
const HelloSize = 136

// CapsetID is the virtio-gpu capability set that identifies a Basalt vGPU.
const CapsetID = 57

// CapsetSize is the size of the capability set: u32 Magic, u16 Major, u16 Minor, u64 largest region in bytes,
// u64 reserved. One version: 1.
const CapsetSize = 24
