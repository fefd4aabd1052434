package null

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
)

// HostRegister implements worker.Context. The memory is never read or written:
// only its addresses are recorded.
func (c *Context) HostRegister(address uint64, memory []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return abi.ErrInvalidContext
	}
	if _, there := c.hosts[address]; there || len(memory) == 0 || !c.window.Host().Contains(address, uint64(len(memory))) {
		return abi.ErrInvalidValue
	}
	c.hosts[address] = uint64(len(memory))
	return nil
}

// HostUnregister implements worker.Context. No work uses the memory.
func (c *Context) HostUnregister(address uint64, done func()) error {
	c.mu.Lock()
	_, there := c.hosts[address]
	delete(c.hosts, address)
	c.mu.Unlock()
	if !there {
		return abi.ErrInvalidValue
	}
	done()
	return nil
}

// hosting reports whether size bytes from an address on are in host memory.
func (c *Context) hosting(address, size uint64) bool {
	if !c.window.Host().Contains(address, size) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, n := range c.hosts {
		if address >= at && address-at <= n && size <= n-(address-at) {
			return true
		}
	}
	return false
}
