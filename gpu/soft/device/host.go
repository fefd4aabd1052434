package device

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// HostRegister implements worker.Context: the memory is one more region of the
// table, in which kernels, copies and memsets look every address up.
func (c *Context) HostRegister(address uint64, memory []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return abi.ErrInvalidContext
	case c.hosts[address] || len(memory) == 0 || address < c.spaces.Host || address-c.spaces.Host > c.spaces.Param-c.spaces.Host ||
		uint64(len(memory)) > c.spaces.Param-address:
		return abi.ErrInvalidValue
	}
	c.hosts[address] = true
	c.show(exec.Region{Base: address, Data: memory})
	return nil
}

// HostUnregister implements worker.Context.
func (c *Context) HostUnregister(address uint64, done func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hosts[address] || c.closed {
		return abi.ErrInvalidValue
	}
	delete(c.hosts, address)
	c.retire(func() { c.hide(address) }, done)
	return nil
}

// retire takes memory away from work. First the work that is enqueued ends, which needs
// the memory; then hide, called with mu, takes it out of the table; and then what ran
// meanwhile ends, because it began with the old table. Then it is gone. Callers hold mu.
func (c *Context) retire(hide, gone func()) {
	before := c.tailsLocked()
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		await(c, before)
		c.mu.Lock()
		hide()
		meanwhile := c.tailsLocked()
		c.mu.Unlock()
		await(c, meanwhile)
		gone()
	}()
}
