package vhostuser

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// noFD in the payload of SET_VRING_KICK, CALL, ERR means that the message has
// no file descriptor.
const noFD = 1 << 8

func (s *Session) ring(m *Message, index uint32) (*ring, error) {
	if index >= uint32(len(s.rings)) {
		return nil, violation(m.Request, "queue %d does not exist, the device has %d", index, len(s.rings))
	}
	return &s.rings[index], nil
}

// vring handles the messages about one ring that carry no file descriptor.
func (s *Session) vring(m *Message) (answer []byte, err error) {
	if m.Request == SetVringAddr {
		index, addr, err := m.vringAddr()
		if err != nil {
			return nil, err
		}
		r, err := s.ring(m, index)
		if err != nil {
			return nil, err
		}
		r.Addr, r.HasAddr = addr, true
		return nil, s.updateRing(int(index))
	}
	index, num, err := m.vringState()
	if err != nil {
		return nil, err
	}
	r, err := s.ring(m, index)
	if err != nil {
		return nil, err
	}
	switch m.Request {
	case SetVringNum:
		if num == 0 || num > virtio.MaxQueueSize {
			return nil, violation(m.Request, "invalid queue size %d", num)
		}
		r.Size = uint16(num)
	case SetVringBase:
		if num > 0xffff {
			return nil, violation(m.Request, "invalid queue base %d", num)
		}
		r.Base = uint16(num)
	case SetVringEnable:
		r.Enabled = num != 0
	case GetVringBase:
		s.stop(int(index))
		replaceFD(&r.FDs.Kick, -1)
		return u64Payload(uint64(index) | uint64(r.Base)<<32), nil
	}
	return nil, s.updateRing(int(index))
}

// setVringFD handles the messages with u64: the index in its low byte, and
// noFD.
func (s *Session) setVringFD(m *Message) error {
	v, err := m.u64()
	if err == nil && len(m.FDs) != 1 && (v&noFD == 0 || len(m.FDs) != 0) {
		err = violation(m.Request, "wrong number of descriptors %d for %#x", len(m.FDs), v)
	}
	var r *ring
	if err == nil {
		r, err = s.ring(m, uint32(v&0xff))
	}
	if err != nil {
		closeAll(m.FDs)
		return err
	}
	fd := -1
	if v&noFD == 0 {
		fd = m.FDs[0]
		if err := unix.SetNonblock(fd, true); err != nil {
			closeAll(m.FDs)
			return err
		}
	} else {
		closeAll(m.FDs)
	}
	index := int(v & 0xff)
	// The eventfds of a running ring are changed by stopping and starting it.
	s.stop(index)
	switch m.Request {
	case SetVringKick:
		replaceFD(&r.FDs.Kick, fd)
	case SetVringCall:
		replaceFD(&r.FDs.Call, fd)
	default:
		replaceFD(&r.FDs.Err, fd)
	}
	return s.updateRing(index)
}

// updateRing starts or stops a ring after a change.
func (s *Session) updateRing(i int) error {
	r := &s.rings[i]
	ready := r.Enabled && r.HasAddr && r.Size != 0 && r.FDs.Kick >= 0 && s.memory != nil
	switch {
	case ready && r.queue == nil:
		return s.start(i)
	case !ready && r.queue != nil:
		s.stop(i)
	}
	return nil
}

// start passes the ring to the device.
func (s *Session) start(i int) error {
	r := &s.rings[i]
	l, err := s.layout(r)
	if err != nil {
		return err
	}
	q, err := virtio.NewQueue(s.memory, l, virtio.Position{Avail: r.Base}, s.features, s.dev.Limits())
	if err != nil {
		return fmt.Errorf("start a ring of %d entries: %w", r.Size, err)
	}
	fresh := r.Base == 0 && q.Unused()
	q.Resume()
	r.queue = q
	s.dev.Start(i, q, r.FDs, fresh)
	return nil
}

// layout translates the ring's addresses, which are in the front-end's address
// space.
func (s *Session) layout(r *ring) (l virtio.Layout, err error) {
	l.Size = r.Size
	desc, avail, used := l.Parts()
	if l.Desc, err = s.memory.FromUser(r.Addr.Desc, desc); err != nil {
		return l, fmt.Errorf("descriptor table: %w", err)
	}
	if l.Avail, err = s.memory.FromUser(r.Addr.Avail, avail); err != nil {
		return l, fmt.Errorf("available ring: %w", err)
	}
	if l.Used, err = s.memory.FromUser(r.Addr.Used, used); err != nil {
		return l, fmt.Errorf("used ring: %w", err)
	}
	return l, nil
}

// stop stops a running ring of the device and stores its position.
func (s *Session) stop(i int) {
	r := &s.rings[i]
	if r.queue == nil {
		return
	}
	s.dev.Stop(i)
	r.Base = r.queue.Position().Avail
	r.queue = nil
}
