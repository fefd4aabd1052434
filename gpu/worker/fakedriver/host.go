package fakedriver

import "github.com/basalt-gpu/basalt/gpu/abi"

// HostRegister implements worker.Context.
func (c *Context) HostRegister(address uint64, memory []byte) error {
	if f := c.d.o.FailHost; f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return abi.ErrInvalidContext
	}
	if _, twice := c.hosts[address]; twice {
		return abi.ErrInvalidValue
	}
	c.hosts[address] = memory
	return nil
}

// HostUnregister implements worker.Context. The context executes one operation
// after the other: only those before this one in the queue can use the memory.
func (c *Context) HostUnregister(address uint64, done func()) error {
	c.mu.Lock()
	_, ok := c.hosts[address]
	c.mu.Unlock()
	if !ok {
		return abi.ErrInvalidValue
	}
	gone := func(error) {
		c.mu.Lock()
		delete(c.hosts, address)
		c.mu.Unlock()
		done()
	}
	if err := c.enqueue(nil, operation{done: gone}); err != nil {
		gone(err) // no operation runs any more
	}
	return nil
}
