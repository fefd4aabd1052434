package worker

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// region is a shared region that the guest has announced. It stays mapped
// until it is dropped and no operation uses it.
type region struct {
	mapping *shm.Mapping // nil: could not be mapped
	refs    atomic.Int64 // the table's own, and one per operation
	gone    func()       // called once when it is unmapped
}

func (r *region) acquire() { r.refs.Add(1) }

func (r *region) release() {
	if r.refs.Add(-1) == 0 {
		if r.mapping != nil {
			r.mapping.Close()
		}
		r.gone()
	}
}

// drop is a MsgDropRegion that waits until the commands that were in the ring
// when it came have been taken.
type drop struct {
	number uint32
	head   uint64
}

// mapRegion maps what a MsgRegion announces. sealed: the guest made the files
// itself, so it must have given up making them smaller, because touching pages
// beyond a file's end would kill this process.
func mapRegion(m carrier.Message, sealed bool) (*shm.Mapping, error) {
	r, err := abi.DecodeRegion(m.Body, len(m.FDs))
	if err != nil {
		return nil, protocol("%v", err)
	}
	sizes := make([]uint64, len(m.FDs))
	for i, fd := range m.FDs {
		if sealed {
			seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
			if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
				return nil, protocol("region %d: its memory may shrink (F_SEAL_SHRINK is not set)", m.Argument)
			}
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil, protocol("region %d: descriptor %d is no memory", m.Argument, i)
		}
		sizes[i] = uint64(st.Size)
	}
	extents := make([]shm.Extent, len(r.Extents))
	for i, e := range r.Extents {
		if e.Offset > sizes[e.FD] || e.Length > sizes[e.FD]-e.Offset {
			return nil, protocol("region %d: %d bytes at %d of %d", m.Argument, e.Length, e.Offset, sizes[e.FD])
		}
		extents[i] = shm.Extent{FD: m.FDs[e.FD], Offset: e.Offset, Length: e.Length}
	}
	mapping, err := shm.Map(extents)
	if err != nil {
		return nil, fmt.Errorf("%w: region %d: %w", abi.ErrOutOfMemory, m.Argument, err)
	}
	return mapping, nil
}

// addRegion serves MsgRegion in a session that runs.
func (s *Session) addRegion(m carrier.Message) error {
	defer m.Close()
	number := m.Argument
	if number == 0 || number >= abi.MaxRegions {
		return protocol("region %d", number)
	}
	s.finishDrops(number) // its number is used again: nothing names the old one any more
	if s.regions[number] != nil {
		return protocol("region %d is there already", number)
	}
	mapping, err := mapRegion(m, !s.byMessage)
	if _, broken := err.(*ProtocolError); broken { //nolint:errorlint // mapRegion wraps no protocol errors
		return err
	}
	if err != nil {
		s.log.Debug("region not mapped", "region", number, "error", err)
	}
	r := &region{mapping: mapping, gone: func() { s.dropped(number) }}
	r.acquire()
	s.regions[number] = r
	return nil
}

// dropRegion serves MsgDropRegion.
func (s *Session) dropRegion(number uint32) error {
	if number == 0 || s.regions[number] == nil {
		return protocol("drop of region %d, which is not there", number)
	}
	for _, d := range s.drops {
		if d.number == number {
			return protocol("drop of region %d, twice", number)
		}
	}
	s.drops = append(s.drops, drop{number, s.shared.Load64(abi.OffHead)})
	return nil
}

// finishDrops drops what commands no longer name: the regions whose last
// commands have been taken from the ring, and the given one.
func (s *Session) finishDrops(number uint32) {
	kept := s.drops[:0]
	for _, d := range s.drops {
		if d.number != number && int64(d.head-s.tail) > 0 {
			kept = append(kept, d)
			continue
		}
		r := s.regions[d.number]
		delete(s.regions, d.number)
		r.release()
	}
	s.drops = kept
}

// dropped tells the device that a region's pages are unmapped; it is called
// from any goroutine.
func (s *Session) dropped(number uint32) {
	if !s.byMessage {
		return
	}
	s.post(func() { s.out = append(s.out, carrier.Message{Type: abi.MsgDropped, Argument: number}) })
}

// buffer finds a piece of a region. The region may have been announced on the
// carrier just before the command that names it.
func (s *Session) buffer(number uint32, off, n uint64) ([]byte, *region, error) {
	if number == 0 {
		if off > s.shared.Size() || n > s.shared.Size()-off {
			return nil, nil, abi.ErrInvalidValue
		}
		return s.shared.Bytes(off, n), nil, nil
	}
	// However many messages lie before it.
	for s.regions[number] == nil {
		m, ok, err := s.reader.TryRead()
		if err != nil {
			return nil, nil, ended(err)
		}
		if !ok {
			break
		}
		if err := s.serve(m); err != nil {
			return nil, nil, err
		}
	}
	r := s.regions[number]
	switch {
	case r == nil:
		return nil, nil, abi.ErrInvalidValue
	case r.mapping == nil:
		return nil, nil, abi.ErrOutOfMemory
	case off > r.mapping.Size() || n > r.mapping.Size()-off:
		return nil, nil, abi.ErrInvalidValue
	}
	return r.mapping.Bytes(off, n), r, nil
}
