package device

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// HostRegister implements worker.Context. The memory becomes a region of the table, in
// which kernels, copies and memsets search every address.
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
	c.insertRegion(exec.Region{Base: address, Data: memory})
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
	c.retire(func() { c.removeRegion(address) }, done)
	return nil
}

// retire removes memory from use. First it waits for the enqueued work, which needs the
// memory; then it calls hide with mu held, which removes it from the table; then it
// waits for the work that began with the old table in the meantime, and calls gone. It
// returns at once. The caller must hold mu.
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
