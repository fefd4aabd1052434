package null

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// mapped is memory at an address of the guest's choice; only the numbers are
// recorded.
type mapped struct {
	size   uint64
	access worker.Access
}

// MemCreate implements worker.Mapper. The memory is a block whose place is not an
// address.
func (c *Context) MemCreate(size uint64) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return 0, err
	}
	if size == 0 {
		return 0, abi.ErrInvalidValue
	}
	return c.d.mem.alloc(c, block{size: size, hidden: true}, c.evicted)
}

// MemRelease implements worker.Mapper.
func (c *Context) MemRelease(memory uint64) error { return c.d.mem.free(c, memory) }

// MemMap implements worker.Mapper.
func (c *Context) MemMap(address, size, memory uint64) error {
	if err := c.d.mem.has(c, memory, size); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.mapped[address]; twice || !c.window.Device().Contains(address, size) {
		return abi.ErrInvalidValue
	}
	c.mapped[address] = mapped{size: size}
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

// MemUnmap implements worker.Mapper. Queued work does not use memory, but completes first.
func (c *Context) MemUnmap(address uint64, done func()) error {
	c.mu.Lock()
	_, ok := c.mapped[address]
	c.mu.Unlock()
	if !ok {
		return abi.ErrInvalidValue
	}
	gone := func(error) {
		c.mu.Lock()
		delete(c.mapped, address)
		c.mu.Unlock()
		done()
	}
	if err := c.submit(nil, operation{complete: gone}); err != nil {
		gone(err) // no operation runs any more
	}
	return nil
}

// mapping reports whether size bytes from an address on are mapped with access, in one
// mapping or several adjacent ones.
func (c *Context) mapping(address, size uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, m := range c.mapped {
		if address < at || address-at >= m.size {
			continue
		}
		for m.access != worker.AccessNone {
			left := at + m.size - address
			if size <= left {
				return true
			}
			address, size = at+m.size, size-left
			at, m = address, c.mapped[address]
		}
		break
	}
	return false
}
