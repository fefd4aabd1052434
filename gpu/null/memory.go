package null

import (
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const (
	// addressSpace is the size of the address range in multiples of the limit:
	// evicted memory keeps its addresses.
	addressSpace = 4
	// unit is the alignment of addresses, and the size of the gap after each
	// allocation, so that an access beyond its end is an error.
	unit = worker.AllocUnit
)

// memory is the device's memory: places and counts, without contents. A place is an
// offset in the address window of the block's context.
type memory struct {
	limit uint64 // bytes that may be on the device
	end   uint64 // the first place after the device's range

	mu     sync.Mutex // guards the following
	used   uint64     // bytes on the device
	blocks []block    // sorted by place
	next   uint64     // where the search for a free place begins
}

// block is one allocation.
type block struct {
	at, size uint64
	away     uint64 // bytes that are evicted
	hidden   bool   // created by MemCreate: its place is not an address
	shared   bool   // with other processes: it is not evicted
	foreign  bool   // of another process: it is not counted
	c        *Context
}

// counted returns how many bytes of the device a block occupies.
func (b block) counted() uint64 {
	if b.foreign {
		return 0
	}
	return worker.Accounted(b.size) - worker.Accounted(b.away)
}

func newMemory(limit uint64) *memory {
	return &memory{limit: limit, end: addressSpace*worker.Accounted(limit) + unit}
}

// after returns the index of the first block at or after a place; callers hold
// mu.
func (m *memory) after(at uint64) int {
	return sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].at >= at })
}

// alloc places a block of a context. With away it is not counted, because the
// context is evicted.
func (m *memory) alloc(c *Context, b block, away bool) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.size > m.limit {
		return 0, abi.ErrOutOfMemory // also prevents an overflow of the rounding
	}
	b.c = c
	if away {
		b.away = b.size
	}
	if b.counted() > m.limit-m.used {
		return 0, abi.ErrOutOfMemory
	}
	end := m.room(c.window)
	i, ok := m.place(m.next, end, end, &b)
	if !ok {
		i, ok = m.place(0, m.next, end, &b)
	}
	if !ok {
		return 0, abi.ErrOutOfMemory
	}
	m.used += b.counted()
	m.blocks = slices.Insert(m.blocks, i, b)
	m.next = b.at + worker.Accounted(b.size) + unit
	return c.window.Base + b.at, nil
}

// place finds a free place that begins at or after from, before to if there are
// blocks after it, and that ends at end at most; callers hold mu. There must be
// no block between from and the next block.
func (m *memory) place(from, to, end uint64, b *block) (index int, ok bool) {
	need := worker.Accounted(b.size) + unit
	at := from
	for i := m.after(from); ; i++ {
		limit := end
		if i < len(m.blocks) {
			limit = min(end, m.blocks[i].at)
		}
		if at < limit && limit-at >= need {
			b.at = at
			return i, true
		}
		if i == len(m.blocks) || m.blocks[i].at >= to {
			return 0, false
		}
		at = m.blocks[i].at + worker.Accounted(m.blocks[i].size) + unit
	}
}

// free frees a context's block that begins at an address.
func (m *memory) free(c *Context, address uint64) error {
	if !c.window.Contains(address, 1) {
		return abi.ErrInvalidValue
	}
	at := address - c.window.Base
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.after(at)
	if i == len(m.blocks) || m.blocks[i].at != at || m.blocks[i].c != c {
		return abi.ErrInvalidValue
	}
	m.used -= m.blocks[i].counted()
	m.blocks = slices.Delete(m.blocks, i, i+1)
	return nil
}

// room returns how many bytes of a window blocks may use, from its beginning on.
func (m *memory) room(w abi.Window) uint64 { return min(m.end, w.Device().Size) }

// check reports whether a context has size bytes at an address, in one block or in
// mappings.
func (m *memory) check(c *Context, address, size uint64) error {
	if size == 0 || c.hosting(address, size) || c.mapping(address, size) {
		return nil
	}
	return m.hold(c, address, size, false)
}

// has reports whether a context has memory of at least size bytes, created by MemCreate.
func (m *memory) has(c *Context, memory, size uint64) error { return m.hold(c, memory, size, true) }

// hold reports whether size bytes from an address on are in one block, hidden or not.
func (m *memory) hold(c *Context, address, size uint64, hidden bool) error {
	if !c.window.Contains(address, size) {
		return abi.ErrInvalidValue
	}
	at := address - c.window.Base
	m.mu.Lock()
	defer m.mu.Unlock()
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].at > at })
	if i == 0 {
		return abi.ErrInvalidValue
	}
	b := m.blocks[i-1]
	if off := at - b.at; b.c != c || b.hidden != hidden || off > b.size || size > b.size-off {
		return abi.ErrInvalidValue
	}
	return nil
}

// forget frees all of a context's blocks.
func (m *memory) forget(c *Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocks = slices.DeleteFunc(m.blocks, func(b block) bool {
		if b.c == c {
			m.used -= b.counted()
		}
		return b.c == c
	})
}

// evict evicts at least bytes of a context, or all, from the device.
func (m *memory) evict(c *Context, bytes uint64) (moved uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.blocks {
		b := &m.blocks[i]
		if moved >= bytes {
			break
		}
		if b.c != c || b.away == b.size || b.shared {
			continue
		}
		before := b.counted()
		left := b.size - b.away
		b.away += min(left, worker.Accounted(min(bytes-moved, left)))
		m.used -= before - b.counted()
		moved += before - b.counted()
	}
	return moved
}

// restore restores all of a context's bytes, if there is room for all.
func (m *memory) restore(c *Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var need uint64
	for _, b := range m.blocks {
		if b.c == c {
			need += worker.Accounted(b.away)
		}
	}
	if need > m.limit-m.used {
		return abi.ErrOutOfMemory
	}
	for i := range m.blocks {
		if b := &m.blocks[i]; b.c == c {
			b.away = 0
		}
	}
	m.used += need
	return nil
}

// MemAlloc implements worker.Context.
func (c *Context) MemAlloc(size uint64) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return 0, err
	}
	if size == 0 {
		return 0, abi.ErrInvalidValue
	}
	return c.d.mem.alloc(c, block{size: size}, c.evicted)
}

// MemFree implements worker.Context. Queued work does not use the memory, so it
// is freed at once.
func (c *Context) MemFree(address uint64) error { return c.d.mem.free(c, address) }

// MemFreeAsync implements worker.Context.
func (c *Context) MemFreeAsync(s worker.Stream, address uint64, done func(error)) error {
	if err := c.d.mem.check(c, address, 1); err != nil {
		return err
	}
	return c.submit(s, operation{complete: func(err error) {
		_ = c.d.mem.free(c, address) // fails only if it was freed with its context
		done(err)
	}})
}

// Evict implements worker.Context. Only the counts change.
func (c *Context) Evict(bytes uint64) (moved uint64, err error) {
	c.move.Lock()
	defer c.move.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, abi.ErrInvalidContext
	}
	if c.inside {
		return 0, errors.New("null device: memory cannot be moved while the context is running")
	}
	c.evicted = true
	return c.d.mem.evict(c, bytes), nil
}

// Restore implements worker.Context.
func (c *Context) Restore() error {
	c.move.Lock()
	defer c.move.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return abi.ErrInvalidContext
	}
	if err := c.d.mem.restore(c); err != nil {
		return err
	}
	c.evicted = false
	return nil
}
