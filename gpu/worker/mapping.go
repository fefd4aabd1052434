package worker

import (
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// mappings are the addresses that the guest has reserved, and the memory that it has
// mapped there. Both lists are sorted by address and have no overlaps. The issuer owns
// them.
type mappings struct {
	reserved []abi.Window // in the window, and where the device has reserved addresses outside of it
	mapped   []*mapping
}

// mapping is memory at one of its addresses.
type mapping struct {
	abi.Window
	of      *memoryObject
	leaving bool // being unmapped
}

// memoryObject is memory of a context that the guest maps.
type memoryObject struct {
	ctx    *contextObject
	driver Mapper
	memory uint64 // the driver's number
	size   uint64
	mapped int         // number of mappings of it
	shared *madeShare  // nil: no other process may import it
	from   *ShareToken // set if another process shares it; nil: it is this session's own
}

// maxReservations bounds the reservations of a session.
const maxReservations = 16 << 10

// at returns the index of the reservation that begins at an address, or the index
// at which it would be inserted.
func (m *mappings) at(address uint64) (index int, found bool) {
	return slices.BinarySearchFunc(m.reserved, address, byBase)
}

// holds reports whether one reservation contains all of a range.
func (m *mappings) holds(w abi.Window) bool {
	i, found := m.at(w.Base)
	if !found {
		i--
	}
	return i >= 0 && m.reserved[i].Contains(w.Base, w.Size)
}

// first returns the index of the first mapping that ends above an address.
func (m *mappings) first(address uint64) int {
	i, _ := slices.BinarySearchFunc(m.mapped, address, func(x *mapping, at uint64) int {
		if x.Base+x.Size <= at {
			return -1
		}
		return 1
	})
	return i
}

// free reports whether nothing is mapped in a range.
func (m *mappings) free(w abi.Window) bool {
	i := m.first(w.Base)
	return i == len(m.mapped) || m.mapped[i].Base >= w.Base+w.Size
}

// whole returns the mappings that a range consists of, or none if it does not
// consist of whole mappings.
func (m *mappings) whole(w abi.Window) (list []*mapping) {
	at := w.Base
	for i := m.first(w.Base); at < w.Base+w.Size; i++ {
		if i == len(m.mapped) || m.mapped[i].Base != at || m.mapped[i].leaving {
			return nil
		}
		list = append(list, m.mapped[i])
		at += m.mapped[i].Size
	}
	if at != w.Base+w.Size {
		return nil
	}
	return list
}

// remove removes a mapping from the list.
func (m *mappings) remove(x *mapping) {
	m.mapped = slices.DeleteFunc(m.mapped, func(o *mapping) bool { return o == x })
	x.of.mapped--
}

// granular checks a range that the guest sent: whole granules, and no overflow.
func granular(address, size uint64) (abi.Window, error) {
	if size == 0 || size%abi.MapGranule != 0 || address%abi.MapGranule != 0 || size > abi.MaxWindow || address > abi.WindowEnd {
		return abi.Window{}, abi.ErrInvalidValue
	}
	return abi.Window{Base: address, Size: size}, nil
}

// memReserve handles MemReserve.
func (s *Session) memReserve(c *command) error {
	a := abi.DecodeMemReserve(c.argBytes)
	w, err := granular(0, a.Size)
	if err != nil || a.Align&(a.Align-1) != 0 {
		return abi.ErrInvalidValue
	}
	if len(s.mappings.reserved) >= maxReservations {
		return abi.ErrOutOfMemory
	}
	align := max(a.Align, abi.MapGranule)
	if w.Base = a.Wish; a.Wish%align != 0 || !s.window.AllocateAt(a.Wish, a.Size) && !s.reserveOutside(w) {
		if w.Base, err = s.window.Allocate(a.Size, align); err != nil {
			return err
		}
	}
	s.mappings.reserved = insert(s.mappings.reserved, w)
	c.value0 = w.Base
	return nil
}

// reserveOutside reserves addresses outside of the window with the device, and reports
// whether it could: the guest's process has reserved them too. They must be where a window
// could be.
func (s *Session) reserveOutside(w abi.Window) bool {
	d, ok := s.driver.(Reserver)
	if !ok || w.Base < abi.WindowLowest || w.Base > abi.WindowEnd-w.Size || s.window.Overlaps(w) || overlap(s.mappings.reserved, w) >= 0 {
		return false
	}
	if err := d.Reserve(w); err != nil {
		s.log.Debug("reserve addresses outside of the window failed", "addresses", w, "error", err)
		return false
	}
	return true
}

// memUnreserve handles MemUnreserve.
func (s *Session) memUnreserve(c *command) error {
	a := abi.DecodeMemUnreserve(c.argBytes)
	m := &s.mappings
	i, found := m.at(a.Address)
	if !found || m.reserved[i].Size != a.Size || !m.free(m.reserved[i]) {
		return abi.ErrInvalidValue
	}
	w := m.reserved[i]
	m.reserved = slices.Delete(m.reserved, i, i+1)
	if s.window.Overlaps(w) {
		return s.window.Free(a.Address)
	}
	return s.driver.(Reserver).Unreserve(w)
}

// memCreate handles MemCreate.
func (s *Session) memCreate(c *command) error {
	a := abi.DecodeMemCreate(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	driver, ok := ctx.driver.(Mapper)
	if !ok {
		return abi.ErrNotSupported
	}
	if _, err := granular(0, a.Size); err != nil {
		return err
	}
	if err := s.handles.free(a.Memory, 1); err != nil {
		return err
	}
	return s.charge(c, Accounted(a.Size), func(c *command) error {
		return s.obtain(c, &obtaining{
			ctx: ctx, size: a.Size, ask: driver.MemCreate, drop: driver.MemRelease,
			enter: func(_ *command, memory uint64) error {
				if err := s.handles.free(a.Memory, 1); err != nil {
					return err
				}
				s.handles.add(a.Memory, ctx, &memoryObject{ctx: ctx, driver: driver, memory: memory, size: a.Size})
				return nil
			},
		})
	})
}

// memory returns the memory that a command refers to.
func (s *Session) memory(c *command, handle uint64) (*memoryObject, error) {
	o, err := lookup[*memoryObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	return o, c.use(o.ctx)
}

// memDestroy handles MemDestroy.
func (s *Session) memDestroy(c *command) error {
	handle := abi.DecodeMemDestroy(c.argBytes).Memory
	o, err := s.memory(c, handle)
	if err != nil {
		return err
	}
	if o.mapped > 0 {
		return abi.ErrInvalidValue
	}
	if o.shared != nil && !o.shared.ready {
		return abi.ErrUnavailable // another thread is sharing it
	}
	if err := o.driver.MemRelease(o.memory); err != nil {
		return err
	}
	s.handles.remove(handle, o.ctx)
	return s.freeAfterwards(c, allocation{ctx: o.ctx, size: o.size, shared: o.shared, from: o.from})
}

// memMap handles MemMap.
func (s *Session) memMap(c *command) error {
	a := abi.DecodeMemMap(c.argBytes)
	o, err := s.memory(c, a.Memory)
	if err != nil {
		return err
	}
	w, err := granular(a.Address, a.Size)
	m := &s.mappings
	if err != nil || a.Size > o.size || !m.holds(w) || !m.free(w) {
		return abi.ErrInvalidValue
	}
	if a.Size < o.size {
		return fmt.Errorf("%w: cannot map %d of %d bytes of memory: this GPU maps only whole allocations", abi.ErrNotSupported, a.Size, o.size)
	}
	if len(m.mapped) >= abi.MaxMappings {
		return abi.ErrOutOfMemory
	}
	if err := o.driver.MemMap(a.Address, a.Size, o.memory); err != nil {
		return err
	}
	m.mapped = slices.Insert(m.mapped, m.first(a.Address), &mapping{Window: w, of: o})
	o.mapped++
	return nil
}

// wholeMappings returns the mappings that a command refers to by a range.
func (s *Session) wholeMappings(c *command, address, size uint64) ([]*mapping, error) {
	w, err := granular(address, size)
	if err != nil {
		return nil, err
	}
	list := s.mappings.whole(w)
	if list == nil {
		return nil, abi.ErrInvalidValue
	}
	for _, x := range list {
		if x.of.ctx.dead {
			return nil, abi.ErrInvalidValue
		}
		if err := c.use(x.of.ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// memAccess handles MemAccess.
func (s *Session) memAccess(c *command) error {
	a := abi.DecodeMemAccess(c.argBytes)
	access := Access(a.Access)
	if access != AccessNone && access != AccessRead && access != AccessReadWrite {
		return abi.ErrInvalidValue
	}
	list, err := s.wholeMappings(c, a.Address, a.Size)
	if err != nil {
		return err
	}
	for _, x := range list {
		if err := x.of.driver.MemSetAccess(x.Base, access); err != nil {
			return err
		}
	}
	return nil
}

// memUnmap handles MemUnmap. The addresses are free again when the last mapping is
// removed; the removal counts as a request, so that a session's end waits for it.
func (s *Session) memUnmap(c *command) error {
	a := abi.DecodeMemUnmap(c.argBytes)
	list, err := s.wholeMappings(c, a.Address, a.Size)
	if err != nil {
		return err
	}
	if s.requests >= maxRequests {
		return abi.ErrUnavailable
	}
	later := *c
	later.argBytes, later.inlineBytes = nil, nil
	s.requests++
	left := 1
	one := func() {
		if left--; left > 0 {
			return
		}
		s.requests--
		if s.shared != nil {
			s.finish(&later, err)
		}
	}
	for _, x := range list {
		x.leaving = true
		left++
		if err = x.of.driver.MemUnmap(x.Base, func() {
			s.post(func() {
				s.mappings.remove(x)
				one()
			})
		}); err != nil {
			x.leaving = false
			left--
			break
		}
	}
	one()
	return errLater
}

// dropMappings removes the mappings of a context that was destroyed.
func (s *Session) dropMappings(ctx *contextObject) {
	s.mappings.mapped = slices.DeleteFunc(s.mappings.mapped, func(x *mapping) bool { return x.of.ctx == ctx })
}
