package fakedriver

import (
	"encoding/binary"
	"errors"
	"maps"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// reserve counts bytes as used; it fails if not enough are free.
func (d *Driver) reserve(bytes uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes > d.o.VRAM-d.used {
		return abi.ErrOutOfMemory
	}
	d.used += bytes
	return nil
}

func (d *Driver) unreserve(bytes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= bytes
}

// MemAlloc implements worker.Context.
func (c *Context) MemAlloc(size uint64) (uint64, error) {
	if c.d.o.FailAlloc != nil {
		if err := c.d.o.FailAlloc(); err != nil {
			return 0, err
		}
	}
	if size == 0 || size > c.d.o.VRAM {
		return 0, abi.ErrOutOfMemory
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if c.ending {
		return 0, abi.ErrInvalidContext
	}
	// Whole pages, and one that stays unused, so that accesses beyond the end are
	// detected.
	address, err := c.window.Allocate((size+2*abi.PageSize-1)&^(abi.PageSize-1), abi.PageSize)
	if err != nil {
		return 0, err
	}
	if c.evicted {
		c.away[address] = make([]byte, size)
		return address, nil
	}
	if err := c.d.reserve(size); err != nil {
		return 0, errors.Join(err, c.window.Free(address))
	}
	c.memory[address] = make([]byte, size)
	return address, nil
}

// MemFree implements worker.Context.
func (c *Context) MemFree(address uint64) error {
	c.mu.Lock()
	ok := !c.freeing[address] && (c.memory[address] != nil || c.away[address] != nil)
	if ok {
		c.freeing[address] = true
	}
	c.mu.Unlock()
	if !ok {
		return abi.ErrInvalidValue
	}
	return c.enqueue(nil, operation{work: func() error { c.free(address); return nil }})
}

// MemFreeAsync implements worker.Context.
func (c *Context) MemFreeAsync(s worker.Stream, address uint64, done func(error)) error {
	c.mu.Lock()
	ok := !c.freeing[address] && (c.memory[address] != nil || c.away[address] != nil)
	if ok {
		c.freeing[address] = true
	}
	c.mu.Unlock()
	if !ok {
		return abi.ErrInvalidValue
	}
	return c.enqueue(s, operation{work: func() error { c.free(address); return nil }, done: done})
}

func (c *Context) free(address uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.d.unreserve(uint64(len(c.memory[address])))
	delete(c.memory, address)
	delete(c.away, address)
	delete(c.freeing, address)
	delete(c.shared, address)
	_ = c.window.Free(address) // nothing is mapped there
}

// within returns n bytes at an address.
func within(memory map[uint64][]byte, address, n uint64) ([]byte, error) {
	for base, m := range memory {
		if off := address - base; address >= base && off <= uint64(len(m)) && n <= uint64(len(m))-off {
			return m[off : off+n], nil
		}
	}
	return nil, abi.ErrInvalidValue
}

// at returns n bytes on the device.
func (c *Context) at(address, n uint64) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, err := within(c.hosts, address, n); err == nil {
		return b, nil
	}
	if real, ok := c.mapping(address, n); ok {
		address = real
	}
	return within(c.memory, address, n)
}

// check reports whether there are n bytes, on the device or evicted.
func (c *Context) check(address, n uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if real, ok := c.mapping(address, n); ok {
		address = real
	}
	for _, here := range []map[uint64][]byte{c.memory, c.hosts} {
		if _, err := within(here, address, n); err == nil {
			return nil
		}
	}
	_, err := within(c.away, address, n)
	return err
}

// Evict implements worker.Context, allocation by allocation.
func (c *Context) Evict(bytes uint64) (moved uint64, err error) {
	if c.d.o.Pinned {
		return 0, abi.ErrNotSupported
	}
	if f := c.d.o.FailEvict; f != nil {
		if err := f(); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return 0, abi.ErrInvalidContext
	}
	if c.inside {
		return 0, errors.New("fake: evicted while work runs")
	}
	c.evicted = true
	for address, m := range c.memory {
		if moved >= bytes {
			break
		}
		if c.shared[address] {
			continue
		}
		c.away[address] = append([]byte(nil), m...)
		clear(m) // so that a slice that was kept has other contents
		delete(c.memory, address)
		c.d.unreserve(uint64(len(m)))
		moved += worker.Accounted(uint64(len(m)))
	}
	return moved, nil
}

// Restore implements worker.Context.
func (c *Context) Restore() error {
	if c.d.o.Pinned {
		return abi.ErrNotSupported
	}
	if f := c.d.o.FailRestore; f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return abi.ErrInvalidContext
	}
	var need uint64
	for _, m := range c.away {
		need += uint64(len(m))
	}
	if err := c.d.reserve(need); err != nil {
		return err
	}
	maps.Copy(c.memory, c.away)
	clear(c.away)
	c.evicted = false
	return nil
}

// copying enqueues work on n bytes at each of the addresses.
func (c *Context) copying(s worker.Stream, n uint64, done func(error), work func(b [][]byte), addresses ...uint64) error {
	for _, a := range addresses {
		if err := c.check(a, n); err != nil {
			return err
		}
	}
	return c.enqueue(s, operation{copies: true, done: done, work: func() error {
		var all [][]byte
		for _, a := range addresses {
			b, err := c.at(a, n)
			if err != nil {
				return abi.ErrIllegalAddress
			}
			all = append(all, b)
		}
		work(all)
		return nil
	}})
}

// CopyHtoD implements worker.Context.
func (c *Context) CopyHtoD(s worker.Stream, dst uint64, src []byte, done func(error)) error {
	return c.copying(s, uint64(len(src)), done, func(b [][]byte) { copy(b[0], src) }, dst)
}

// CopyDtoH implements worker.Context.
func (c *Context) CopyDtoH(s worker.Stream, dst []byte, src uint64, done func(error)) error {
	return c.copying(s, uint64(len(dst)), done, func(b [][]byte) { copy(dst, b[0]) }, src)
}

// CopyDtoD implements worker.Context.
func (c *Context) CopyDtoD(s worker.Stream, dst, src, size uint64, done func(error)) error {
	return c.copying(s, size, done, func(b [][]byte) { copy(b[0], b[1]) }, dst, src)
}

// Memset implements worker.Context.
func (c *Context) Memset(s worker.Stream, dst uint64, value, width uint32, count uint64, done func(error)) error {
	if count > c.d.o.VRAM {
		return abi.ErrInvalidValue
	}
	return c.copying(s, count*uint64(width), done, func(b [][]byte) {
		var element [4]byte
		binary.LittleEndian.PutUint32(element[:], value)
		for to := b[0]; len(to) > 0; to = to[width:] {
			copy(to, element[:width])
		}
	}, dst)
}
