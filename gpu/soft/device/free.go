package device

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// MemFreeAsync implements worker.Context. The memory belongs to the context, and is
// evicted and restored with it, until the stream reaches the operation. Work of other
// streams that uses it after that reads zeros or what is allocated there next, as with
// CUDA.
func (c *Context) MemFreeAsync(st worker.Stream, addr uint64, done func(error)) error {
	c.mu.Lock()
	_, ok := c.allocs[addr]
	c.mu.Unlock()
	if !ok {
		return abi.ErrInvalidValue
	}
	return c.enqueue(st, &op{always: func() { c.freeNow(addr) }, report: done})
}

// freeNow frees an allocation whatever work is running.
func (c *Context) freeNow(addr uint64) {
	c.mu.Lock()
	e, ok := c.allocs[addr]
	if !ok || c.closed { // freed by Destroy
		c.mu.Unlock()
		return
	}
	delete(c.allocs, addr)
	c.d.mem.release(c.away.left(addr, e))
	c.mu.Unlock()
	c.forget(addr, e)
}
