package device

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const maxStreams = 4096

// Context is one CUDA context of a soft GPU. It implements worker.Context, and is
// safe for concurrent use.
type Context struct {
	worker.NoCalls

	d        *device
	gate     worker.Gate
	spaces   ir.Spaces
	room     uint64        // size of the address range for MemAlloc, in bytes
	output   exec.Output   // set before the first launch, or nil
	stop     atomic.Bool   // ends kernels between instructions
	ended    chan struct{} // closed after stop is set
	clock    func() int64  // clock of kernels, in nanoseconds
	engine   *engine
	machines exec.MachinePool
	issue    sync.Mutex // guards the order of enqueueing; locked before mu
	table    atomic.Pointer[[]exec.Region]
	// textures has the texture and surface objects by number; the map is replaced, never
	// changed
	textures  atomic.Pointer[map[uint64]*exec.Texture]
	textureOf func(object uint64) *exec.Texture // the method texture, bound once
	// Cooperative launches are executed one after another, as they share a workspace.
	cooperative sync.Mutex
	running     sync.WaitGroup // stream goroutines
	move        sync.Mutex     // one Evict or Restore at a time; locked before mu

	mu       sync.Mutex
	legacy   *stream
	streams  []*stream // not destroyed, legacy first
	orphans  []*op     // last operations of destroyed streams
	poisoned error
	closed   bool
	modules  map[*module]bool
	lastCode uint64            // the highest address of a function
	allocs   map[uint64]extent // by device address, not freed yet
	hosts    map[uint64]bool   // by address: host memory
	mappings mappings
	shared   map[uint64]*sharedMemory // by device address, or number
	imported map[uint64]extent        // by number: extents that refer to memory of another process
	barrier  uint64                   // workspace of cooperative launches, 0 if there is none yet
	away     away
}

func newContext(d *device, gate worker.Gate, e *engine, w *worker.Window) *Context {
	c := &Context{d: d, gate: gate, engine: e, ended: make(chan struct{}), spaces: ir.NewSpaces(w.Window), modules: map[*module]bool{}, allocs: map[uint64]extent{}, hosts: map[uint64]bool{}, shared: map[uint64]*sharedMemory{}, imported: map[uint64]extent{}, mappings: mappings{at: map[uint64]*mapped{}, shown: map[uint64]bool{}}, away: away{host: map[uint64][]byte{}}}
	c.room = d.mem.split(c.spaces.DeviceBytes())
	d.KeepIn(w)
	c.table.Store(&[]exec.Region{})
	c.textures.Store(&map[uint64]*exec.Texture{})
	c.clock = func() int64 { return d.o.Clock().UnixNano() }
	c.textureOf = c.texture
	c.legacy = c.newStream(false)
	c.streams = []*stream{c.legacy}
	return c
}

// PrintTo implements worker.Printer.
func (c *Context) PrintTo(output func(to uint32, text []byte)) { c.output = output }

// MemAlloc implements worker.Context.
func (c *Context) MemAlloc(size uint64) (uint64, error) { return c.allocating(size, c.allocLocked) }

// allocating calls allocate for the guest, with mu held.
func (c *Context) allocating(size uint64, allocate func(size uint64) (uint64, error)) (uint64, error) {
	if f := c.d.o.Faults.Alloc; f != nil {
		if err := f(size); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poisoned != nil {
		return 0, c.poisoned
	}
	return allocate(size)
}

func (c *Context) allocLocked(size uint64) (uint64, error) {
	addr, e, err := c.obtain(size, func(size uint64) (uint64, error) { return c.d.mem.place(size, c.room) })
	if err != nil {
		return 0, err
	}
	c.insertRegion(exec.Region{Base: addr, Data: c.d.mem.arena[e.off : e.off+size : e.off+size]})
	return addr, nil
}

// obtain allocates memory at an offset that place returns. The caller must hold mu.
func (c *Context) obtain(size uint64, place func(size uint64) (uint64, error)) (addr uint64, e extent, err error) {
	if c.closed {
		return 0, e, abi.ErrInvalidContext
	}
	if size == 0 {
		return 0, e, abi.ErrInvalidValue
	}
	if size > c.d.mem.limit {
		return 0, e, abi.ErrOutOfMemory
	}
	if !c.away.evicted {
		if err := c.d.mem.take(rounded(size)); err != nil {
			return 0, e, err
		}
	}
	off, err := place(size)
	if err != nil {
		if !c.away.evicted {
			c.d.mem.release(rounded(size))
		}
		return 0, e, err
	}
	addr, e = c.spaces.Device+off, extent{off, size}
	if c.away.evicted {
		c.away.host[addr] = make([]byte, size)
	}
	c.allocs[addr] = e
	return addr, e, nil
}

// insertRegion inserts a region into the table. The caller must hold mu.
func (c *Context) insertRegion(r exec.Region) {
	old := *c.table.Load()
	at := sort.Search(len(old), func(i int) bool { return old[i].Base >= r.Base })
	table := slices.Insert(slices.Clone(old), at, r)
	c.table.Store(&table)
}

// removeRegion removes the region that begins at an address from the table. Work that is
// running may still use the old table. The caller must hold mu.
func (c *Context) removeRegion(addr uint64) {
	table := slices.DeleteFunc(slices.Clone(*c.table.Load()), func(r exec.Region) bool { return r.Base == addr })
	c.table.Store(&table)
}

// MemFree implements worker.Context. The bytes count as free at once; the memory itself
// is freed after the work enqueued so far.
func (c *Context) MemFree(addr uint64) error {
	c.mu.Lock()
	e, ok := c.allocs[addr]
	if !ok || c.closed {
		c.mu.Unlock()
		return abi.ErrInvalidValue
	}
	delete(c.allocs, addr)
	wait := c.tailsLocked()
	c.d.mem.release(c.away.left(addr, e))
	c.mu.Unlock()
	if len(wait) == 0 {
		c.forget(addr, e)
		return nil
	}
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		await(c, wait)
		c.forget(addr, e)
	}()
	return nil
}

func (c *Context) forget(addr uint64, e extent) {
	c.mu.Lock()
	if c.away.moving {
		c.away.condemned = append(c.away.condemned, func() { c.forget(addr, e) })
		c.mu.Unlock()
		return
	}
	if e.off < c.d.mem.half { // else the number may be the address of a mapping
		c.removeRegion(addr)
	}
	c.dropShared(addr)
	delete(c.away.host, addr)
	c.mu.Unlock()
	c.d.mem.free(e.off)
}

// tailsLocked returns the last operations of all streams that are not done. The caller
// must hold mu.
func (c *Context) tailsLocked() []*op {
	c.orphans = slices.DeleteFunc(c.orphans, (*op).done)
	list := slices.Clone(c.orphans)
	for _, s := range c.streams {
		if s.tail != nil && !s.tail.done() {
			list = append(list, s.tail)
		}
	}
	return list
}

func (c *Context) memory(addr, size uint64) ([]byte, error) {
	return exec.SliceRegion(*c.table.Load(), addr, size) //nolint:wrapcheck // it names the address
}

// copying enqueues a copy of size bytes.
func (c *Context) copying(s worker.Stream, size uint64, done func(error), run func() error) error {
	return c.enqueue(s, &op{report: done, run: func() error {
		if f := c.d.o.Faults.Copy; f != nil {
			if err := f(size); err != nil {
				return err
			}
		}
		if err := c.enter(); err != nil {
			return err
		}
		defer c.leave(0, 0) // the copy runs on the host's processor and uses no time of the device
		if c.d.o.Fault == model.Slow {
			defer c.slowCopy(time.Now())
		}
		return run()
	}})
}

// CopyHtoD implements worker.Context. Ranges are checked at the call, as in the driver
// API.
func (c *Context) CopyHtoD(s worker.Stream, dst uint64, src []byte, done func(error)) error {
	n := uint64(len(src))
	if _, err := c.memory(dst, n); err != nil && n > 0 {
		return abi.ErrInvalidValue
	}
	return c.copying(s, n, done, func() error {
		d, err := c.memory(dst, n)
		if n > 0 && err != nil {
			return err
		}
		copy(d, src)
		return nil
	})
}

// CopyDtoH implements worker.Context.
func (c *Context) CopyDtoH(s worker.Stream, dst []byte, src uint64, done func(error)) error {
	n := uint64(len(dst))
	if _, err := c.memory(src, n); err != nil && n > 0 {
		return abi.ErrInvalidValue
	}
	return c.copying(s, n, done, func() error {
		b, err := c.memory(src, n)
		if n > 0 && err != nil {
			return err
		}
		copy(dst, b)
		return nil
	})
}

// CopyDtoD implements worker.Context.
func (c *Context) CopyDtoD(s worker.Stream, dst, src, size uint64, done func(error)) error {
	for _, a := range [2]uint64{dst, src} {
		if _, err := c.memory(a, size); err != nil && size > 0 {
			return abi.ErrInvalidValue
		}
	}
	return c.copying(s, size, done, func() error {
		if size == 0 {
			return nil
		}
		d, err := c.memory(dst, size)
		if err != nil {
			return err
		}
		b, err := c.memory(src, size)
		if err != nil {
			return err
		}
		copy(d, b)
		return nil
	})
}

// Memset implements worker.Context.
func (c *Context) Memset(s worker.Stream, dst uint64, value, width uint32, count uint64, done func(error)) error {
	w := uint64(width)
	if w != 1 && w != 2 && w != 4 || count > 1<<48 || dst%w != 0 {
		return abi.ErrInvalidValue
	}
	size := count * w
	if _, err := c.memory(dst, size); err != nil && size > 0 {
		return abi.ErrInvalidValue
	}
	return c.copying(s, size, done, func() error {
		if size == 0 {
			return nil
		}
		d, err := c.memory(dst, size)
		if err != nil {
			return err
		}
		for i := range w {
			d[i] = byte(value >> (8 * i))
		}
		for n := w; n < size; n *= 2 {
			copy(d[n:], d[:n])
		}
		return nil
	})
}

// Notify implements worker.Context.
func (c *Context) Notify(done func(error)) error {
	c.mu.Lock()
	wait := c.tailsLocked()
	err := c.poisoned
	if c.closed {
		err = abi.ErrInvalidContext
	}
	c.mu.Unlock()
	if done == nil {
		return nil
	}
	if len(wait) == 0 {
		done(err)
		return nil
	}
	go func() {
		await(c, wait)
		done(c.poison())
	}()
	return nil
}

// Destroy implements worker.Context. Running kernels stop between instructions; queued
// operations fail.
func (c *Context) Destroy() error {
	c.stop.Store(true)
	c.issue.Lock()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.issue.Unlock()
		return nil
	}
	c.closed = true
	close(c.ended)
	if c.poisoned == nil {
		c.poisoned = abi.ErrInvalidContext
	}
	for _, s := range c.streams {
		s.closed = true
		close(s.queue)
	}
	c.mu.Unlock()
	c.issue.Unlock()
	c.d.waits.notice()
	c.running.Wait()
	c.move.Lock() // a move in progress ends because of stop
	defer c.move.Unlock()
	c.mu.Lock()
	for addr, e := range c.allocs {
		c.d.mem.release(c.away.left(addr, e))
		c.d.mem.free(e.off)
	}
	c.allocs = map[uint64]extent{}
	for _, m := range c.shared {
		m.close()
	}
	clear(c.shared)
	for _, e := range c.imported {
		c.d.mem.free(e.off)
	}
	clear(c.imported)
	c.dropMappings()
	empty := []exec.Region{}
	c.table.Store(&empty)
	c.mu.Unlock()
	c.d.mu.Lock()
	delete(c.d.contexts, c)
	c.d.mu.Unlock()
	return nil
}
