package worker

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// region is a shared region that the guest has announced. It stays mapped until
// it is dropped and no operation uses it.
type region struct {
	mapping *shm.Mapping // nil: could not be mapped
	address uint64       // in the host part of the window; 0: anywhere
	hosted  bool         // contexts may use it at its address; owned by the issuer
	leaving bool         // work that may use it is still in progress; owned by the issuer
	refs    atomic.Int64 // one for the table, and one per operation
	unmap   func()       // nil: nothing to unmap
	gone    func()       // called once when it is unmapped
}

func (r *region) acquire() { r.refs.Add(1) }

func (r *region) release() {
	if r.refs.Add(-1) == 0 {
		if r.unmap != nil {
			r.unmap()
		}
		r.gone()
	}
}

// heldRegions stay mapped until they are released. Region 0 is never among them.
type heldRegions []*region

func hold(regions ...*region) (held heldRegions) {
	for _, r := range regions {
		if r != nil {
			r.acquire()
			held = append(held, r)
		}
	}
	return held
}

func (h heldRegions) release() {
	for _, r := range h {
		r.release()
	}
}

// drop is a MsgDropRegion that waits until the commands that were in the ring
// when it arrived have been taken.
type drop struct {
	number uint32
	head   uint64
}

// announced is the content of a MsgRegion, checked against its files.
type announced struct {
	abi.Region
	extents []shm.Extent // runs, in the order of the mapping
}

// readRegion checks a MsgRegion. sealed means that the guest created the files
// itself: they must be sealed against shrinking, because an access to pages
// beyond a file's end would kill this process.
func readRegion(m carrier.Message, sealed bool) (a announced, err error) {
	if a.Region, err = abi.DecodeRegion(m.Flags, m.Body, len(m.FDs)); err != nil {
		return a, protocol("%v", err)
	}
	sizes := make([]uint64, len(m.FDs))
	for i, fd := range m.FDs {
		if sealed {
			seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
			if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
				return a, protocol("region %d: memory is not sealed against shrinking (F_SEAL_SHRINK)", m.Argument)
			}
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return a, protocol("region %d: descriptor %d is not a memory file", m.Argument, i)
		}
		sizes[i] = uint64(st.Size)
	}
	list := make([]shm.Extent, len(a.Extents))
	for i, e := range a.Extents {
		if e.Offset > sizes[e.FD] || e.Length > sizes[e.FD]-e.Offset {
			return a, protocol("region %d: extent of %d bytes at %d exceeds %d bytes", m.Argument, e.Length, e.Offset, sizes[e.FD])
		}
		list[i] = shm.Extent{FD: m.FDs[e.FD], Offset: e.Offset, Length: e.Length}
	}
	a.extents = shm.Coalesce(list)
	return a, nil
}

// mapAnywhere maps a region at any free address.
func mapAnywhere(number uint32, a announced) (*shm.Mapping, error) {
	mapping, err := shm.Map(a.extents)
	if err != nil {
		return nil, fmt.Errorf("%w: region %d: %w", abi.ErrOutOfMemory, number, err)
	}
	return mapping, nil
}

// addRegion handles MsgRegion in a running session.
func (s *Session) addRegion(m carrier.Message) error {
	defer m.Close()
	number := m.Argument
	if number == 0 || number >= abi.MaxRegions {
		return protocol("invalid region number %d", number)
	}
	s.finishDrops(number) // its number is used again: no command refers to the old one any more
	if s.regions[number] != nil {
		return protocol("region %d already exists", number)
	}
	a, err := readRegion(m, !s.byMessage)
	if err != nil {
		return err
	}
	if a.Placed {
		if err := s.vacate(number, a.Region); err != nil {
			return err
		}
	}
	r := &region{address: a.Address}
	err = s.mapRegion(r, number, a)
	if _, broken := err.(*ProtocolError); broken { //nolint:errorlint // mapRegion wraps no protocol errors
		return err
	}
	if err != nil {
		s.log.Debug("map region failed", "region", number, "error", err)
	}
	r.gone = func() { s.dropped(number) }
	r.acquire()
	s.regions[number] = r
	return nil
}

// mapRegion maps an announced region, unless that takes more mappings than a
// session may have: the guest then copies through other regions.
func (s *Session) mapRegion(r *region, number uint32, a announced) (err error) {
	runs := int64(len(a.extents))
	if n := s.runs.Add(runs); n > maxRuns() {
		s.runs.Add(-runs)
		return fmt.Errorf("%w: region %d has %d pieces, the limit of the session is %d", abi.ErrOutOfMemory, number, runs, maxRuns())
	}
	if a.Placed {
		r.mapping, err = s.window.Place(a.Address, a.extents)
	} else {
		r.mapping, err = mapAnywhere(number, a)
	}
	if err != nil {
		s.runs.Add(-runs)
		return err
	}
	r.unmap = func() {
		if !a.Placed {
			r.mapping.Close()
		} else if err := s.window.Remove(a.Address, r.mapping); err != nil {
			s.log.Warn("unmap region failed", "region", number, "error", err)
			return
		}
		s.runs.Add(-runs)
	}
	return nil
}

// dropRegion handles MsgDropRegion.
func (s *Session) dropRegion(number uint32) error {
	if number == 0 || s.regions[number] == nil {
		return protocol("drop of unknown region %d", number)
	}
	for _, d := range s.drops {
		if d.number == number {
			return protocol("second drop of region %d", number)
		}
	}
	s.drops = append(s.drops, drop{number, s.shared.Load64(abi.OffHead)})
	return nil
}

// finishDrops drops the regions that commands no longer refer to: those whose
// last commands have been taken from the ring, and the given one.
func (s *Session) finishDrops(number uint32) {
	kept := s.drops[:0]
	for _, d := range s.drops {
		if d.number != number && int64(d.head-s.tail) > 0 {
			kept = append(kept, d)
			continue
		}
		s.finishDrop(d)
	}
	s.drops = kept
}

func (s *Session) finishDrop(d drop) {
	r := s.regions[d.number]
	delete(s.regions, d.number)
	if r.hosted {
		s.unhost(r, r.release)
		return
	}
	r.release()
}

// dropped tells the device that a region's pages are unmapped; any goroutine may
// call it.
func (s *Session) dropped(number uint32) {
	if !s.byMessage {
		return
	}
	s.post(func() { s.out = append(s.out, carrier.Message{Type: abi.MsgDropped, Argument: number}) })
}

// buffer returns a piece of a region.
func (s *Session) buffer(number uint32, off, n uint64) ([]byte, *region, error) {
	if number == 0 {
		if off > s.shared.Size() || n > s.shared.Size()-off {
			return nil, nil, abi.ErrInvalidValue
		}
		return s.shared.Bytes(off, n), nil, nil
	}
	r, err := s.region(number)
	switch {
	case err != nil:
		return nil, nil, err
	case off > r.mapping.Size() || n > r.mapping.Size()-off:
		return nil, nil, abi.ErrInvalidValue
	}
	return r.mapping.Bytes(off, n), r, nil
}

// region returns a mapped region. It may have been announced on the carrier just
// before the command that refers to it.
func (s *Session) region(number uint32) (*region, error) {
	// Read however many messages are before its announcement.
	for s.regions[number] == nil {
		m, ok, err := s.reader.TryRead()
		if err != nil {
			return nil, ended(err)
		}
		if !ok {
			break
		}
		if err := s.serve(m); err != nil {
			return nil, err
		}
	}
	r := s.regions[number]
	switch {
	case r == nil:
		return nil, abi.ErrInvalidValue
	case r.mapping == nil:
		return nil, abi.ErrOutOfMemory
	}
	return r, nil
}
