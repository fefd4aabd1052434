package abi

// Carrier messages. On carrier (b) they are sent over a SOCK_STREAM unix socket
// between the guest library and the worker. On carrier (a) the guest puts each
// into one EXECBUFFER, and basalt-vgpu sends it to the worker over the same kind
// of socket; it completes MsgRegion from the resource's backing pages.
//
// Each message starts with u32 Magic, u16 type, u16 flags, u32 length of the body,
// u32 argument; then the body follows. File descriptors are sent with the
// message's first byte (SCM_RIGHTS).

// CarrierHeaderSize is the size of the header of each message, in bytes.
const CarrierHeaderSize = 16

// MaxCarrierBody bounds the body of a message, in bytes.
const MaxCarrierBody = 4 << 20

// MaxCarrierFDs bounds the descriptors that are sent with one message.
const MaxCarrierFDs = 8

// Carrier message types.
const (
	// MsgHello, guest to worker, is the first message. Body: Hello. Argument:
	// Hello… flags, see HelloWakeByMessage.
	MsgHello uint16 = 1
	// MsgRegion, guest to worker. Argument: region number; 0 is the one with the
	// header and follows directly after MsgHello. Body on the worker's socket:
	// u64 size, then extents {u32 index of the descriptor, u32 zero, u64 offset,
	// u64 length}, page-aligned, in order; the sum of their lengths is size. Body
	// in the guest's EXECBUFFER on carrier (a): u64 size, u32 virtio-gpu resource
	// id, u32 zero. With RegionPlaced among the flags a u64 follows: on the
	// socket after the size, in the EXECBUFFER at the end.
	MsgRegion uint16 = 2
	// MsgDropRegion, guest to worker. Argument: region number, not 0. The worker
	// unmaps it when no command uses it any more. The guest sends it after the
	// last command that refers to the region is in the ring, and uses the number
	// for another region only once the worker's tail has passed that command.
	MsgDropRegion uint16 = 3
	// MsgKick, guest to worker: the doorbell, if there is no eventfd for it. No
	// body.
	MsgKick uint16 = 4
	// MsgWait exists on carrier (a) only: a fenced EXECBUFFER whose fence
	// signals at the next wake-up of this context. It is not passed on.
	MsgWait uint16 = 5
	// MsgReady, worker to guest: region 0 is accepted. Argument: worker's minor
	// version. From version 1.3 on an eventfd is sent with it on carrier (b):
	// writing to it rings the doorbell at less cost than a MsgKick.
	MsgReady uint16 = 16
	// MsgRefused, worker to guest. Argument: CUresult. Body: the reason, UTF-8.
	MsgRefused uint16 = 17
	// MsgWake, worker to basalt-vgpu: at least one sleeping slot is done.
	MsgWake uint16 = 18
	// MsgDropped, worker to basalt-vgpu: a dropped region's pages are no longer
	// mapped. Argument: region number. Sent only in sessions with
	// HelloWakeByMessage, once per MsgDropRegion: until then the guest kernel is
	// not told that it can use the pages again, because it would give them to
	// another process. A worker that leaves too many unanswered is ended.
	MsgDropped uint16 = 19
)

// RegionPlaced is a flag of MsgRegion, not of region 0: the body has the address
// of the region's first byte. The guest has mapped it there, in the host part of
// the session's window, and the worker maps it at the same address. A worker that
// cannot do so keeps the region without its pages; MemHostMap reports that.
const RegionPlaced uint16 = 1

// HelloWakeByMessage is a flag in the argument of MsgHello: the waiters are in
// another machine, so MsgWake must be sent in addition to the futex wake on the
// slot's state word.
const HelloWakeByMessage uint32 = 1

// HelloSize is the size of a hello's body: u16 Major, u16 Minor, u32 PID in the guest, 64 bytes of
// process name (NUL-padded, not trusted), 64 bytes of token (NUL-padded).
const HelloSize = 136

// CapsetID is the virtio-gpu capability set that identifies a Basalt vGPU.
const CapsetID = 57

// CapsetSize is the size of the capability set: u32 Magic, u16 Major, u16 Minor, u64 largest region in bytes,
// u64 reserved. One version: 1.
const CapsetSize = 24
