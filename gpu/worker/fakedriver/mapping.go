package fakedriver

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// mapped is memory at an address that the test or the guest chooses. Only real
// drivers support copies across adjacent mappings.
type mapped struct {
	memory, size uint64
	access       worker.Access
}

// MemCreate implements worker.Mapper.
func (c *Context) MemCreate(size uint64) (uint64, error) { return c.MemAlloc(size) }

// MemRelease implements worker.Mapper.
func (c *Context) MemRelease(memory uint64) error { return c.MemFree(memory) }

// MemMap implements worker.Mapper.
func (c *Context) MemMap(address, size, memory uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.mapped[address]; twice {
		return abi.ErrInvalidValue
	}
	c.mapped[address] = mapped{memory: memory, size: size}
	return nil
}

// MemSetAccess implements worker.Mapper.
func (c *Context) MemSetAccess(address uint64, access worker.Access) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.mapped[address]
	if !ok {
		return abi.ErrInvalidValue
	}
	m.access = access
	c.mapped[address] = m
	return nil
}

// MemUnmap implements worker.Mapper.
func (c *Context) MemUnmap(address uint64, done func()) error {
	gone := func(error) {
		c.mu.Lock()
		delete(c.mapped, address)
		c.mu.Unlock()
		done()
	}
	if err := c.enqueue(nil, operation{done: gone}); err != nil {
		gone(err) // no operation runs any more
	}
	return nil
}

// Reserve implements worker.Reserver.
func (d *Driver) Reserve(w abi.Window) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.outside, w.Overlaps) {
		return abi.ErrInvalidValue
	}
	d.outside = append(d.outside, w)
	return nil
}

// Unreserve implements worker.Reserver.
func (d *Driver) Unreserve(w abi.Window) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.outside, w)
	if i < 0 {
		return abi.ErrInvalidValue
	}
	d.outside = slices.Delete(d.outside, i, i+1)
	return nil
}

// mapping returns the address of what is mapped at an address, with access;
// callers hold mu.
func (c *Context) mapping(address, n uint64) (real uint64, ok bool) {
	for at, m := range c.mapped {
		if off := address - at; address >= at && off < m.size && n <= m.size-off {
			return m.memory + off, m.access != worker.AccessNone
		}
	}
	return 0, false
}
