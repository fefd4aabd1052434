package vhostuser

import (
	"encoding/binary"
	"fmt"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// Request is a request number of QEMU's vhost-user protocol, "Front-end
// message types".
type Request uint32

// The requests that this back-end supports.
const (
	GetFeatures         Request = 1
	SetFeatures         Request = 2
	SetOwner            Request = 3
	ResetOwner          Request = 4
	SetMemTable         Request = 5
	SetVringNum         Request = 8
	SetVringAddr        Request = 9
	SetVringBase        Request = 10
	GetVringBase        Request = 11
	SetVringKick        Request = 12
	SetVringCall        Request = 13
	SetVringErr         Request = 14
	GetProtocolFeatures Request = 15
	SetProtocolFeatures Request = 16
	GetQueueNum         Request = 17
	SetVringEnable      Request = 18
	GetConfig           Request = 24
	SetConfig           Request = 25
	GPUSetSocket        Request = 33
)

// Feature and protocol feature bits.
const (
	// FeatureProtocolFeatures means that protocol features can be negotiated.
	FeatureProtocolFeatures = 1 << 30

	ProtocolReplyAck = 1 << 3
	ProtocolConfig   = 1 << 9
)

// Flags of a message's header.
const (
	flagVersion     = 1
	flagVersionMask = 3
	flagReply       = 1 << 2
	flagNeedReply   = 1 << 3
)

const (
	headerSize = 12
	// MaxPayload limits a message's payload. The largest defined one that this
	// back-end receives is a memory table of 264 bytes; a configuration space has
	// 256.
	MaxPayload = 4096
	// MaxFDs is how many file descriptors a message may carry: as many as a
	// memory table has.
	MaxFDs = virtio.MaxRegions
)

// Message is one message. Its holder owns its file descriptors.
type Message struct {
	Request Request
	Flags   uint32
	Payload []byte
	FDs     []int
}

// Error is a violation of the protocol by the front-end: the session ends.
type Error struct {
	Request Request
	Reason  string
}

func (e *Error) Error() string { return fmt.Sprintf("vhost-user: request %d: %s", e.Request, e.Reason) }

func violation(r Request, format string, args ...any) error {
	return &Error{r, fmt.Sprintf(format, args...)}
}

var le = binary.LittleEndian

// payloadSize is a Frame for Stream: it returns the size of the payload after
// the header.
func payloadSize(header []byte) (int, error) {
	n := le.Uint32(header[8:])
	if n > MaxPayload {
		return 0, violation(Request(le.Uint32(header)), "payload has %d bytes, want at most %d", n, MaxPayload)
	}
	return int(n), nil
}

// decode decodes a whole frame. The message's payload is a slice of it.
func decode(frame []byte, fds []int) (Message, error) {
	m := Message{Request: Request(le.Uint32(frame)), Flags: le.Uint32(frame[4:]), Payload: frame[headerSize:], FDs: fds}
	if m.Flags&flagVersionMask != flagVersion {
		return m, violation(m.Request, "unsupported protocol version %d", m.Flags&flagVersionMask)
	}
	if m.Flags&flagReply != 0 {
		return m, violation(m.Request, "unexpected reply")
	}
	return m, nil
}

func encode(r Request, flags uint32, payload []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	le.PutUint32(b, uint32(r))
	le.PutUint32(b[4:], flags|flagVersion)
	le.PutUint32(b[8:], uint32(len(payload)))
	return append(b, payload...)
}

func u64Payload(v uint64) []byte { return le.AppendUint64(nil, v) }

// u64 decodes the payload of most requests.
func (m *Message) u64() (uint64, error) {
	if len(m.Payload) != 8 {
		return 0, violation(m.Request, "payload has %d bytes, want 8", len(m.Payload))
	}
	return le.Uint64(m.Payload), nil
}

// vringState decodes u32 index, u32 number.
func (m *Message) vringState() (index, num uint32, err error) {
	v, err := m.u64()
	return uint32(v), uint32(v >> 32), err
}

// vringAddr holds addresses in the front-end's own address space.
type vringAddr struct{ Desc, Used, Avail uint64 }

// vringAddr decodes u32 index, u32 flags, u64 descriptors, u64 used, u64
// available, u64 log.
func (m *Message) vringAddr() (index uint32, a vringAddr, err error) {
	p := m.Payload
	if len(p) != 40 {
		return 0, a, violation(m.Request, "payload has %d bytes, want 40", len(p))
	}
	return le.Uint32(p), vringAddr{le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint64(p[24:])}, nil
}

// regions decodes u32 number, u32 padding, then per region u64 guest address,
// u64 size, u64 front-end address, u64 offset in the file descriptor.
func (m *Message) regions() ([]virtio.Region, error) {
	p := m.Payload
	if len(p) < 8 {
		return nil, violation(m.Request, "invalid payload size of %d bytes", len(p))
	}
	n := le.Uint32(p)
	if n > virtio.MaxRegions || len(p) != 8+32*int(n) || len(m.FDs) != int(n) {
		return nil, violation(m.Request, "inconsistent message: %d regions in %d bytes with %d descriptors", n, len(p), len(m.FDs))
	}
	list := make([]virtio.Region, n)
	for i := range list {
		r := p[8+32*i:]
		list[i] = virtio.Region{GPA: le.Uint64(r), Size: le.Uint64(r[8:]), UserAddr: le.Uint64(r[16:]), Offset: le.Uint64(r[24:]), FD: m.FDs[i]}
	}
	return list, nil
}
