package device

import (
	"errors"
	"fmt"
	"maps"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// away is the state of a context's memory that has been evicted. The start of an
// allocation is evicted first, in pieces; the bytes on the device are zero then.
type away struct {
	evicted   bool
	inside    int               // number of operations between enter and leave
	moving    bool              // bytes are being copied, without mu: nothing may be freed
	condemned []func()          // frees that are deferred until the end of the move
	host      map[uint64][]byte // by device address: the evicted bytes
}

const (
	// evictPiece is the minimum number of bytes that are evicted.
	evictPiece = 64 << 10
	// copyPiece is the number of bytes that are copied between two checks of whether to
	// stop.
	copyPiece = 16 << 20
)

// left returns how many bytes of an allocation count as used on the device.
func (a *away) left(addr uint64, e extent) uint64 {
	n := uint64(len(a.host[addr]))
	if n == e.size {
		return 0
	}
	return rounded(e.size) - n
}

// enter passes the gate. It returns an error if memory is evicted: the worker must not
// admit work then, and the mistake must not go unnoticed.
func (c *Context) enter() error {
	if err := c.gate.Enter(); err != nil {
		return err
	}
	c.mu.Lock()
	evicted := c.away.evicted
	if !evicted {
		c.away.inside++
	}
	c.mu.Unlock()
	if evicted {
		c.gate.Leave(0, 0)
		return fmt.Errorf("%w: work began while the memory of its context is evicted", abi.ErrIllegalAddress)
	}
	return nil
}

func (c *Context) leave(busy, launches uint64) {
	c.mu.Lock()
	c.away.inside--
	c.mu.Unlock()
	c.gate.Leave(busy, launches)
}

// backing returns the bytes of an allocation for a module that is being loaded,
// wherever they are. The caller must hold mu, and the allocation must be new, so that
// it is either completely on the device or completely evicted.
func (c *Context) backing(addr uint64) []byte {
	if b, ok := c.away.host[addr]; ok {
		return b
	}
	r, _ := exec.FindRegion(*c.table.Load(), addr)
	return r.Data
}

// beginMove begins an Evict or Restore, and endMove ends it. beginMove returns an error
// if work is in progress.
func (c *Context) beginMove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return abi.ErrInvalidContext
	}
	if c.away.inside > 0 {
		return errors.New("move memory of the context: work uses it, want none in progress")
	}
	c.away.moving = true
	return nil
}

func (c *Context) endMove() {
	c.mu.Lock()
	condemned := c.away.condemned
	c.away.moving, c.away.condemned = false, nil
	c.mu.Unlock()
	for _, free := range condemned {
		free()
	}
}

// departure is a part of an allocation that is evicted.
type departure struct {
	addr uint64
	e    extent
	from uint64 // number of bytes that were evicted before
	host []byte // all bytes that are evicted after it
}

// Evict implements worker.Context.
func (c *Context) Evict(bytes uint64) (moved uint64, err error) {
	if f := c.d.o.Faults.Evict; f != nil {
		if err := f(); err != nil {
			return 0, err
		}
	}
	c.move.Lock()
	defer c.move.Unlock()
	if err := c.beginMove(); err != nil {
		return 0, err
	}
	defer c.endMove()
	list, moved := c.choose(bytes)
	for _, d := range list {
		if err := c.copyOut(d.host, d.e.off, d.from); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range list {
		c.d.mem.zero(d.e.off+d.from, uint64(len(d.host))-d.from)
		before := c.away.left(d.addr, d.e)
		c.away.host[d.addr] = d.host
		if _, counts := c.allocs[d.addr]; counts { // not freed in the meantime
			c.d.mem.release(before - c.away.left(d.addr, d.e))
		}
	}
	c.away.evicted = true
	return moved, nil
}

// choose returns the parts to evict: at least bytes, or everything.
func (c *Context) choose(bytes uint64) (list []departure, moved uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, e := range c.allocs {
		if moved >= bytes {
			break
		}
		gone := uint64(len(c.away.host[addr]))
		if gone == e.size || c.shared[addr] != nil { // other processes use it too
			continue
		}
		n := min(e.size-gone, (bytes-moved+evictPiece-1)&^(evictPiece-1))
		if bytes-moved > e.size {
			n = e.size - gone // also keeps the rounding from wrapping around
		}
		host := make([]byte, gone+n)
		copy(host, c.away.host[addr])
		list = append(list, departure{addr, e, gone, host})
		moved += worker.Accounted(gone+n) - worker.Accounted(gone)
	}
	return list, moved
}

// copyOut copies the bytes on the device to host, from index from on.
func (c *Context) copyOut(host []byte, off, from uint64) error {
	for at := from; at < uint64(len(host)); at += copyPiece {
		if c.stop.Load() {
			return abi.ErrInvalidContext
		}
		n := min(copyPiece, uint64(len(host))-at)
		copy(host[at:at+n], c.d.mem.arena[off+at:off+at+n])
	}
	return nil
}

// Restore implements worker.Context. The copies in host memory are kept until
// everything is restored.
func (c *Context) Restore() error {
	c.move.Lock()
	defer c.move.Unlock()
	if err := c.beginMove(); err != nil {
		return err
	}
	defer c.endMove()
	c.mu.Lock()
	if !c.away.evicted {
		c.mu.Unlock()
		return nil
	}
	list, taken := maps.Clone(c.away.host), c.need()
	c.mu.Unlock()
	if err := c.d.mem.take(taken); err != nil {
		return err
	}
	back := func(addr uint64, host []byte) error {
		off := addr - c.spaces.Device
		for at := 0; at < len(host); at += copyPiece {
			if c.stop.Load() {
				return abi.ErrInvalidContext
			}
			copy(c.d.mem.arena[off+uint64(at):], host[at:min(at+copyPiece, len(host))])
		}
		return nil
	}
	undo := func(err error) error {
		for addr, host := range list {
			c.d.mem.zero(addr-c.spaces.Device, uint64(len(host)))
		}
		c.d.mem.release(taken)
		return err
	}
	for addr, host := range list {
		if err := back(addr, host); err != nil {
			return undo(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if need := c.need(); need > taken { // allocated in the meantime
		if err := c.d.mem.take(need - taken); err != nil {
			return undo(err)
		}
	} else {
		c.d.mem.release(taken - need)
	}
	for addr, host := range c.away.host {
		if _, done := list[addr]; !done {
			_ = back(addr, host) // fails only if the context is being destroyed
		}
	}
	clear(c.away.host)
	c.away.evicted = false
	return nil
}

// need returns how many bytes the evicted memory counts on the device. The caller must
// hold mu.
func (c *Context) need() (bytes uint64) {
	for addr, e := range c.allocs {
		bytes += rounded(e.size) - c.away.left(addr, e)
	}
	return bytes
}
