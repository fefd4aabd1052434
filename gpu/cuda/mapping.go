package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// alias is another mapping of a block's memory, at an address that the guest chooses. The
// block's own address stays mapped: memory is cleared, evicted and restored there. Pieces
// that are on the card are mapped at every address.
type alias struct {
	address, size uint64
	access        worker.Access
	of            *block
}

// part returns the part of an alias that a piece backs: the address and the
// number of bytes.
func (a *alias) part(p *piece) (address, size uint64) {
	off := p.address - a.of.address
	if off >= a.size {
		return 0, 0
	}
	return a.address + off, min(p.size, a.size-off)
}

// maps reports whether the card can map memory in granules of abi.MapGranule.
func (d *driver) maps() bool { return d.granule != 0 && abi.MapGranule%d.granule == 0 }

// MemCreate implements worker.Mapper. The number of the memory is its block's address,
// which no guest may use.
func (c *context) MemCreate(size uint64) (uint64, error) {
	c.calls.RLock()
	defer c.calls.RUnlock()
	if err := c.failed(); err != nil {
		return 0, err
	}
	if !c.d.maps() {
		return 0, fmt.Errorf("%w: the GPU does not support mapping memory", abi.ErrNotSupported)
	}
	if size == 0 || size > c.d.info.TotalMemory {
		return 0, abi.ErrOutOfMemory
	}
	return c.alloc(size)
}

// MemRelease implements worker.Mapper.
func (c *context) MemRelease(memory uint64) error {
	return c.whenDrained(func() { c.unalloc(memory) })
}

// MemMap implements worker.Mapper.
func (c *context) MemMap(address, size, memory uint64) error {
	if err := c.failed(); err != nil {
		return err
	}
	v := c.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	i, found := slices.BinarySearchFunc(v.blocks, memory, func(b *block, a uint64) int { return cmp.Compare(b.address, a) })
	if !found || size > v.blocks[i].size || v.aliases[address] != nil {
		return abi.ErrInvalidValue
	}
	b := v.blocks[i]
	a := &alias{address: address, size: size, of: b}
	for n, p := range b.pieces {
		if err := c.showPiece(a, p, p.handle); err != nil {
			for _, p := range b.pieces[:n] {
				err = errors.Join(err, c.hidePiece(a, p))
			}
			return err
		}
	}
	b.aliases = append(b.aliases, a)
	if v.aliases == nil {
		v.aliases = map[uint64]*alias{}
	}
	v.aliases[address] = a
	return nil
}

// showPiece maps a piece at an alias, if it is on the card; handle is its memory.
func (c *context) showPiece(a *alias, p *piece, handle uint64) error {
	at, size := a.part(p)
	if handle == 0 || size == 0 {
		return nil
	}
	if err := c.call(cuMemMap, uintptr(at), uintptr(size), 0, uintptr(handle), 0); err != nil {
		return err
	}
	if a.access == worker.AccessNone {
		return nil
	}
	if err := c.setAccess(at, size, a.access); err != nil {
		return errors.Join(err, c.call(cuMemUnmap, uintptr(at), uintptr(size)))
	}
	return nil
}

func (c *context) hidePiece(a *alias, p *piece) error {
	at, size := a.part(p)
	if p.handle == 0 || size == 0 {
		return nil
	}
	return c.call(cuMemUnmap, uintptr(at), uintptr(size))
}

// hideAliases unmaps a piece at all addresses except its own.
func (c *context) hideAliases(p *piece) error {
	var errs []error
	for _, a := range p.of.aliases {
		errs = append(errs, c.hidePiece(a, p))
	}
	return errors.Join(errs...)
}

// showAliases maps restored pieces at all their aliases: all of them, or none.
func (c *context) showAliases(list []*piece, handles []uint64) error {
	for i, p := range list {
		for n, a := range p.of.aliases {
			err := c.showPiece(a, p, handles[i])
			if err == nil {
				p.handle = handles[i]
				continue
			}
			for _, shown := range p.of.aliases[:n] {
				err = errors.Join(err, c.hidePiece(shown, p))
			}
			p.handle = 0
			for _, before := range list[:i] {
				err = errors.Join(err, c.hideAliases(before))
				before.handle = 0
			}
			return err
		}
	}
	return nil
}

// MemSetAccess implements worker.Mapper.
func (c *context) MemSetAccess(address uint64, access worker.Access) error {
	if err := c.failed(); err != nil {
		return err
	}
	v := c.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.aliases[address]
	if a == nil {
		return abi.ErrInvalidValue
	}
	for _, p := range a.of.pieces {
		if at, size := a.part(p); p.handle != 0 && size > 0 {
			if err := c.setAccess(at, size, access); err != nil {
				return err
			}
		}
	}
	a.access = access
	c.d.memory.removeMapped(address)
	if access != worker.AccessNone {
		c.d.memory.add(span{start: address, size: a.size, mapped: true})
	}
	return nil
}

// MemUnmap implements worker.Mapper. libcuda may wait for kernels when memory is unmapped,
// so that is done when none runs, as for memory that is freed. In a context that has failed
// or is ending, the mapping remains until the context is destroyed: no new work there could
// use it.
func (c *context) MemUnmap(address uint64, done func()) error {
	v := c.virtual
	v.mu.Lock()
	a := v.aliases[address]
	v.mu.Unlock()
	if a == nil {
		return abi.ErrInvalidValue
	}
	return c.removeWhenDrained(address, func() { c.unalias(a) }, done)
}

// removeWhenDrained removes the mapping at an address from the table at once, and
// unmaps it when the earlier work has ended; then done is called.
func (c *context) removeWhenDrained(address uint64, remove, done func()) error {
	c.d.memory.removeMapped(address)
	var once sync.Once // an operation that the context's end drops is finished, not drained
	tell := func() { once.Do(done) }
	err := c.push(nil, &op{
		drained: func() { remove(); tell() },
		done: func(err error) {
			if err != nil {
				tell()
			}
		},
	})
	if err != nil {
		tell()
	}
	return nil
}

func (c *context) unalias(a *alias) {
	c.virtual.mu.Lock()
	defer c.virtual.mu.Unlock()
	for _, p := range a.of.pieces {
		if err := c.hidePiece(a, p); err != nil {
			c.poison(err) // libcuda keeps it until the context is destroyed
		}
	}
	a.of.aliases = slices.DeleteFunc(a.of.aliases, func(o *alias) bool { return o == a })
	delete(c.virtual.aliases, a.address)
}
