// Package vhostuser implements the back-end of QEMU's vhost-user protocol
// (QEMU's docs/interop/vhost-user.rst and vhost-user-gpu.rst), to the extent
// that a virtio-gpu device needs.
//
// A session, from QEMU's point of view:
//
//	connected ── GET/SET_PROTOCOL_FEATURES, SET_OWNER, GET_CONFIG,
//	   │         GPU_SET_SOCKET, SET_VRING_CALL/ERR
//	   ▼
//	configured ─ SET_FEATURES, SET_MEM_TABLE
//	   ▼
//	each ring:   stopped ── NUM, BASE, ADDR, KICK, ENABLE 1 ──► running
//	             running ── GET_VRING_BASE ──► stopped
//	             running ── ENABLE 0 ──► disabled ── ENABLE 1 ──► running
//
// A pause and a reset of the guest look the same to the back-end, as a stop;
// they are distinguished when the ring starts again (virtio.Queue.Unused).
//
// The order of the messages is not checked beyond that: a ring runs as soon as
// it has all that it needs. A message that violates the protocol ends the
// session with an *Error. One goroutine owns a session.
package vhostuser

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// Device is the device that a session controls. Its methods are called by the
// goroutine that calls Session.Handle.
type Device interface {
	// Features returns the features offered to the driver, without those of the
	// protocol itself.
	Features() uint64
	// Config returns the device's configuration space.
	Config() []byte
	// Limits returns the limits of one chain on any queue.
	Limits() virtio.Limits
	// SetMemory sets the new memory map before anything is started in it. The
	// session owns it, and closes the previous one after this call.
	SetMemory(*virtio.Memory)
	// Start starts or continues a queue. fresh is set if the driver has been
	// reset since the queue stopped, or if there was no queue. The session owns
	// the eventfds; each may be -1.
	Start(index int, q *virtio.Queue, fds RingFDs, fresh bool)
	// Stop stops a queue. The device must not use it any more.
	Stop(index int)
}

// RingFDs are a ring's eventfds; -1 for a missing one.
type RingFDs struct{ Kick, Call, Err int }

// ring is one virtqueue as the front-end describes it.
type ring struct {
	Size    uint16
	Base    uint16 // next index in the available ring
	Addr    vringAddr
	HasAddr bool
	FDs     RingFDs
	Enabled bool
	queue   *virtio.Queue // while running
}

// Session is one connection of a front-end. See the package comment.
type Session struct {
	dev      Device
	features uint64 // acknowledged
	protocol uint64 // acknowledged protocol features
	memory   *virtio.Memory
	rings    []ring
	gpu      int // the display socket, or -1
}

// NewSession returns the session of a front-end that has just connected, for a
// device with the given number of queues.
func NewSession(dev Device, queues int) *Session {
	s := &Session{dev: dev, rings: make([]ring, queues), gpu: -1}
	for i := range s.rings {
		s.rings[i].FDs = RingFDs{-1, -1, -1}
	}
	return s
}

const protocolFeatures = ProtocolReplyAck | ProtocolConfig

// Close stops all rings and closes all descriptors.
func (s *Session) Close() {
	for i := range s.rings {
		s.stop(i)
		r := &s.rings[i]
		for _, fd := range []*int{&r.FDs.Kick, &r.FDs.Call, &r.FDs.Err} {
			replaceFD(fd, -1)
		}
	}
	replaceFD(&s.gpu, -1)
	if s.memory != nil {
		s.dev.SetMemory(nil)
		_ = s.memory.Close()
		s.memory = nil
	}
}

// Handle processes one message and returns the bytes to send back, if any. An
// error ends the session.
func (s *Session) Handle(m Message) (reply []byte, err error) {
	answer, used, err := s.dispatch(&m)
	if !used {
		closeAll(m.FDs)
	}
	var guest *virtio.Error
	ack := m.Flags&flagNeedReply != 0 && s.protocol&ProtocolReplyAck != 0
	switch {
	case err != nil && ack && errors.As(err, &guest):
		// Well-formed but failed: the front-end requested a reply.
		return encode(m.Request, flagReply, u64Payload(1)), nil
	case err != nil:
		return nil, err
	case answer != nil:
		return encode(m.Request, flagReply, answer), nil
	case ack:
		return encode(m.Request, flagReply, u64Payload(0)), nil
	}
	return nil, nil
}

// dispatch processes one message. used reports whether the message's file
// descriptors have a new owner.
func (s *Session) dispatch(m *Message) (answer []byte, used bool, err error) {
	switch m.Request {
	case SetMemTable:
		return nil, true, s.setMemTable(m)
	case SetVringKick, SetVringCall, SetVringErr:
		return nil, true, s.setVringFD(m)
	case GPUSetSocket:
		return nil, true, s.setGPUSocket(m)
	}
	if len(m.FDs) > 0 {
		return nil, false, violation(m.Request, "%d descriptors, want none with this message", len(m.FDs))
	}
	switch m.Request {
	case GetFeatures:
		answer = u64Payload(s.dev.Features() | FeatureProtocolFeatures)
	case SetFeatures:
		err = s.setFeatures(m)
	case GetProtocolFeatures:
		answer = u64Payload(protocolFeatures)
	case SetProtocolFeatures:
		s.protocol, err = m.u64()
		if extra := s.protocol &^ protocolFeatures; err == nil && extra != 0 {
			err = violation(m.Request, "protocol features %#x were not offered", extra)
		}
	case GetQueueNum:
		answer = u64Payload(uint64(len(s.rings)))
	case SetOwner, ResetOwner:
		// A connection has one owner. RESET_OWNER is no longer used.
	case GetConfig:
		answer, err = s.getConfig(m)
	case SetConfig:
		// events_clear is the only field that a driver writes, and no event is ever
		// set.
	case SetVringNum, SetVringBase, SetVringAddr, SetVringEnable, GetVringBase:
		answer, err = s.vring(m)
	default:
		err = violation(m.Request, "unknown request")
	}
	return answer, false, err
}

func (s *Session) setFeatures(m *Message) error {
	v, err := m.u64()
	if err != nil {
		return err
	}
	// QEMU acknowledges its own ring features in addition to those offered.
	s.features = v
	if v&FeatureProtocolFeatures == 0 {
		// "If it has not been negotiated, rings start enabled."
		for i := range s.rings {
			s.rings[i].Enabled = true
		}
	}
	return nil
}

// getConfig handles u32 offset, u32 size, u32 flags, then size bytes, which
// the answer contains with the values. An answer without payload means an
// error.
func (s *Session) getConfig(m *Message) ([]byte, error) {
	p := m.Payload
	if len(p) < 12 {
		return nil, violation(m.Request, "invalid payload size of %d bytes", len(p))
	}
	off, n := uint64(le.Uint32(p)), uint64(le.Uint32(p[4:]))
	if n != uint64(len(p)-12) {
		return nil, violation(m.Request, "configuration of %d bytes does not fit payload of %d bytes", n, len(p))
	}
	answer := append([]byte(nil), p[:12]...)
	body := make([]byte, n)
	if config := s.dev.Config(); off < uint64(len(config)) {
		copy(body, config[off:])
	}
	return append(answer, body...), nil
}

func (s *Session) setMemTable(m *Message) error {
	regions, err := m.regions()
	if err != nil {
		closeAll(m.FDs)
		return err
	}
	memory, err := virtio.Map(regions)
	if err != nil {
		return fmt.Errorf("map the memory of the front-end: %w", err)
	}
	var running []int
	for i := range s.rings {
		if s.rings[i].queue != nil {
			running = append(running, i)
			s.stop(i)
		}
	}
	old := s.memory
	s.memory = memory
	s.dev.SetMemory(memory)
	if old != nil {
		_ = old.Close()
	}
	// Memory was plugged in: running rings continue in the new map.
	for _, i := range running {
		if err := s.start(i); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) setGPUSocket(m *Message) error {
	if len(m.FDs) != 1 {
		closeAll(m.FDs)
		return violation(m.Request, "%d descriptors, want 1", len(m.FDs))
	}
	// The socket to QEMU's display. This device has no screen, so it never sends
	// anything there; the socket stays open because QEMU monitors its end.
	replaceFD(&s.gpu, m.FDs[0])
	return nil
}

func replaceFD(p *int, fd int) {
	if *p >= 0 {
		_ = unix.Close(*p)
	}
	*p = fd
}
