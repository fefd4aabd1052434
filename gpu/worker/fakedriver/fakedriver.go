// Package fakedriver is a Driver for tests: memory is host memory, a launch
// sleeps, and the test selects faults.
//
// A context executes one operation after the other in one goroutine, an order
// that every stream allows. Kernels are chosen by name, from a module whose image
// is their names separated by spaces.
package fakedriver

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// These are the kernels that a module can contain.
const (
	KernelNop   = "nop"
	KernelSleep = "sleep" // parameters: u64 nanoseconds
	KernelFault = "fault" // abi.ErrIllegalAddress
	KernelHang  = "hang"  // until the context is destroyed
	// KernelStore writes parameter 1, a u64, to the address in parameter 0.
	KernelStore = "store"
	// KernelDelay sleeps for parameter 2, a u64 in nanoseconds, and then stores.
	KernelDelay = "delay"
	// KernelPrint prints parameter 1 lines to the stream in parameter 0.
	KernelPrint = "print"
)

// Options configure the driver.
type Options struct {
	VRAM uint64 // VRAM of the card in bytes; 0: 1 GiB
	// Global is the size in bytes of the variable of a module whose image has
	// "global".
	Global uint64
	// Pinned means that contexts cannot be evicted.
	Pinned bool
	// FailEvict and FailRestore make these calls fail with this error, when not
	// nil.
	FailEvict, FailRestore func() error
	// FailAlloc makes MemAlloc fail with this error, when not nil.
	FailAlloc func() error
	// Loading is called, when not nil, when a module begins to be loaded; it may
	// block.
	Loading func(image []byte)
	// FailHost makes HostRegister fail with this error, when not nil.
	FailHost func() error
	// FailShare makes Share fail with this error, when not nil.
	FailShare func() error
	// LimitOutput is called, when not nil, for each limit of a context's output.
	LimitOutput func(size uint64) error
}

// Driver implements worker.Driver.
type Driver struct {
	o Options

	mu       sync.Mutex
	contexts map[*Context]struct{}
	used     uint64
	outside  []abi.Window // reserved outside of windows
}

// New returns a driver.
func New(o Options) *Driver {
	if o.VRAM == 0 {
		o.VRAM = 1 << 30
	}
	d := &Driver{o: o, contexts: map[*Context]struct{}{}}
	return d
}

// Used returns how many bytes of memory are allocated.
func (d *Driver) Used() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// Contexts returns the number of contexts.
func (d *Driver) Contexts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.contexts)
}

// Info implements worker.Driver.
func (d *Driver) Info() abi.DeviceInfoReply {
	return abi.DeviceInfoReply{
		TotalMemory: d.o.VRAM, Attributes: []int32{0, 1024, 1024, 1024, 64}, Name: "Fake GPU",
		DriverVersion: "550.163.01", CUDAVersion: 12040,
	}
}

// Multiprocessors implements worker.Partitioner.
func (d *Driver) Multiprocessors() uint32 { return FakeMultiprocessors }

// Evicts implements worker.Driver.
func (d *Driver) Evicts() bool { return !d.o.Pinned }

// ImageInfo implements worker.Driver.
func (d *Driver) ImageInfo(image []byte) (info abi.ModuleInfo, err error) {
	for name := range strings.FieldsSeq(string(image)) {
		info.Functions = append(info.Functions, abi.FunctionInfo{Name: name})
	}
	return info, nil
}

// Close implements worker.Driver.
func (d *Driver) Close() error { return nil }

// NewContext implements worker.Driver.
func (d *Driver) NewContext(_ uint32, gate worker.Gate, w *worker.Window) (worker.Context, error) {
	c := &Context{d: d, gate: gate, window: w, memory: map[uint64][]byte{}, hosts: map[uint64][]byte{}, mapped: map[uint64]mapped{}, shared: map[uint64]bool{}, away: map[uint64][]byte{}, freeing: map[uint64]bool{}, objects: map[uint64]bool{}, end: make(chan struct{}), stopped: make(chan struct{})}
	c.wake = sync.NewCond(&c.mu)
	d.mu.Lock()
	d.contexts[c] = struct{}{}
	d.mu.Unlock()
	go c.run()
	return c, nil
}

type operation struct {
	stream *stream
	event  *event
	work   func() error
	kernel bool
	copies bool // passes the gate and is not a launch
	done   func(error)
}

type stream struct{ pending int }

type event struct {
	record  uint64 // number of records; the last one is done when done reaches it
	done    uint64
	at      time.Time
	waiters []waiter
}

type waiter struct {
	record uint64
	done   func(error)
}

type function struct{ name string }

// Context implements worker.Context.
type Context struct {
	worker.NoCalls

	d       *Driver
	window  *worker.Window
	gate    worker.Gate
	end     chan struct{}
	stopped chan struct{}
	output  func(to uint32, text []byte)

	mu      sync.Mutex // guards the following
	wake    *sync.Cond
	queue   []operation
	memory  map[uint64][]byte
	away    map[uint64][]byte // evicted
	hosts   map[uint64][]byte // host memory, by address
	mapped  map[uint64]mapped // by address
	shared  map[uint64]bool   // by address; true: memory that other contexts may use
	evicted bool
	inside  bool // the gate
	freeing map[uint64]bool
	err     error
	ending  bool
	legacy  stream

	objects    map[uint64]bool // textures, and, with the value true, surfaces
	lastObject uint64
	lastBound  abi.TextureCreate // bound to a reference
}

func (c *Context) run() {
	defer close(c.stopped)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.queue) == 0 && !c.ending {
			c.wake.Wait()
		}
		if len(c.queue) == 0 {
			return
		}
		op := c.queue[0]
		c.queue = c.queue[1:]
		err := c.err
		if c.ending && err == nil {
			err = abi.ErrDeinitialized
		}
		if err == nil {
			c.mu.Unlock()
			err = c.execute(op)
			c.mu.Lock()
			if err != nil {
				c.err = err
			}
		}
		c.finish(op, err)
	}
}

func (c *Context) execute(op operation) error {
	if op.work == nil {
		return nil
	}
	if !op.kernel && !op.copies {
		return op.work()
	}
	if err := c.gate.Enter(); err != nil {
		return err
	}
	c.mu.Lock()
	evicted := c.evicted
	c.inside = !evicted
	c.mu.Unlock()
	if evicted {
		c.gate.Leave(0, 0)
		return fmt.Errorf("%w: work started while its memory is evicted", abi.ErrIllegalAddress)
	}
	start := time.Now()
	err := op.work()
	c.mu.Lock()
	c.inside = false
	c.mu.Unlock()
	if op.kernel {
		c.gate.Leave(uint64(time.Since(start)), 1)
	} else {
		c.gate.Leave(0, 0)
	}
	return err
}

// finish completes an operation; it is called with mu held.
func (c *Context) finish(op operation, err error) {
	op.stream.pending--
	var dones []func(error)
	if op.done != nil {
		dones = append(dones, op.done)
	}
	if e := op.event; e != nil {
		e.done++
		e.at = time.Now()
		var left []waiter
		for _, w := range e.waiters {
			if w.record <= e.done {
				dones = append(dones, w.done)
			} else {
				left = append(left, w)
			}
		}
		e.waiters = left
	}
	c.mu.Unlock()
	for _, done := range dones {
		done(err)
	}
	c.mu.Lock()
}

func (c *Context) streamOf(s worker.Stream) *stream {
	if s == nil {
		return &c.legacy
	}
	return s.(*stream)
}

func (c *Context) enqueue(s worker.Stream, op operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.ending {
		return abi.ErrInvalidContext
	}
	op.stream = c.streamOf(s)
	op.stream.pending++
	c.queue = append(c.queue, op)
	c.wake.Signal()
	return nil
}

type module struct{ global uint64 }

// ModuleLoad implements worker.Context.
func (c *Context) ModuleLoad(image []byte, _ worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	var functions []worker.Function
	if c.d.o.Loading != nil {
		c.d.o.Loading(image)
	}
	c.mu.Lock()
	err := c.err
	if c.ending {
		err = abi.ErrInvalidContext
	}
	c.mu.Unlock()
	if err != nil {
		return nil, nil, info, err
	}
	m := &module{}
	for _, name := range strings.Fields(strings.TrimRight(string(image), "\x00")) {
		switch name {
		case KernelNop, KernelSleep, KernelFault, KernelHang, KernelStore, KernelDelay, KernelPrint:
			info.Functions = append(info.Functions, abi.FunctionInfo{Name: name, Params: []abi.ParamInfo{{Offset: 0, Size: 8}, {Offset: 8, Size: 8}}})
			functions = append(functions, &function{name})
		case "global":
			var err error
			if m.global, err = c.MemAlloc(c.d.o.Global); err != nil {
				return nil, nil, info, err
			}
			info.Globals = append(info.Globals, abi.GlobalInfo{Name: name, Address: m.global, Size: c.d.o.Global})
		default:
			return nil, nil, abi.ModuleInfo{ErrorLog: "no kernel is called " + name}, abi.ErrInvalidPTX
		}
	}
	info.InfoLog = "loaded"
	return m, functions, info, nil
}

// ModuleUnload implements worker.Context.
func (c *Context) ModuleUnload(m worker.Module) error {
	if g := m.(*module).global; g != 0 {
		return c.MemFree(g)
	}
	return nil
}

// FuncSetAttribute implements worker.Context.
func (c *Context) FuncSetAttribute(worker.Function, int32, int32) error { return nil }

// OccupancyMaxActiveBlocksPerMultiprocessor implements worker.Context.
func (c *Context) OccupancyMaxActiveBlocksPerMultiprocessor(_ worker.Function, blockSize int32, _ uint64) (int32, error) {
	if blockSize <= 0 {
		return 0, abi.ErrInvalidValue
	}
	return 2048 / blockSize, nil
}

// Launch implements worker.Context.
func (c *Context) Launch(s worker.Stream, f worker.Function, l worker.Launch, done func(error)) error {
	var params [24]byte
	copy(params[:], l.Params)
	first, second, third := binary.LittleEndian.Uint64(params[:]), binary.LittleEndian.Uint64(params[8:]), binary.LittleEndian.Uint64(params[16:])
	op := operation{kernel: true, done: done}
	switch f.(*function).name {
	case KernelNop:
		op.work = func() error { return nil }
	case KernelSleep:
		op.work = func() error { time.Sleep(time.Duration(first)); return nil }
	case KernelFault:
		op.work = func() error { return abi.ErrIllegalAddress }
	case KernelHang:
		op.work = func() error { <-c.end; return abi.ErrLaunchTimeout }
	case KernelStore, KernelDelay:
		op.work = func() error {
			time.Sleep(time.Duration(third))
			to, err := c.at(first, 8)
			if err != nil {
				return abi.ErrIllegalAddress
			}
			binary.LittleEndian.PutUint64(to, second)
			return nil
		}
	case KernelPrint:
		op.work = func() error {
			for i := range second {
				c.output(uint32(first), fmt.Appendf(nil, "line %d\n", i))
			}
			return nil
		}
	}
	return c.enqueue(s, op)
}

// PrintTo implements worker.Printer.
func (c *Context) PrintTo(output func(to uint32, text []byte)) { c.output = output }

// LimitOutput implements worker.OutputLimiter.
func (c *Context) LimitOutput(size uint64) error {
	if c.d.o.LimitOutput == nil {
		return nil
	}
	return c.d.o.LimitOutput(size)
}

// StreamCreate implements worker.Context.
func (c *Context) StreamCreate(uint32, int32) (worker.Stream, error) { return &stream{}, nil }

// StreamDestroy implements worker.Context.
func (c *Context) StreamDestroy(worker.Stream) error { return nil }

// StreamQuery implements worker.Context.
func (c *Context) StreamQuery(s worker.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.streamOf(s).pending > 0 {
		return abi.ErrNotReady
	}
	return nil
}

// StreamWaitEvent implements worker.Context. The single queue is in order anyway.
func (c *Context) StreamWaitEvent(worker.Stream, worker.Event) error { return nil }

// StreamNotify implements worker.Context.
func (c *Context) StreamNotify(s worker.Stream, done func(error)) error {
	return c.enqueue(s, operation{done: done})
}

// EventCreate implements worker.Context.
func (c *Context) EventCreate(uint32) (worker.Event, error) { return &event{}, nil }

// EventDestroy implements worker.Context.
func (c *Context) EventDestroy(worker.Event) error { return nil }

// EventRecord implements worker.Context.
func (c *Context) EventRecord(e worker.Event, s worker.Stream) error {
	ev := e.(*event)
	err := c.enqueue(s, operation{event: ev})
	if err == nil {
		c.mu.Lock()
		ev.record++
		c.mu.Unlock()
	}
	return err
}

// EventQuery implements worker.Context.
func (c *Context) EventQuery(e worker.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ev := e.(*event)
	switch {
	case c.err != nil:
		return c.err
	case ev.done < ev.record:
		return abi.ErrNotReady
	}
	return nil
}

// EventNotify implements worker.Context.
func (c *Context) EventNotify(e worker.Event, done func(error)) error {
	c.mu.Lock()
	ev := e.(*event)
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	if ev.done < ev.record {
		ev.waiters = append(ev.waiters, waiter{ev.record, done})
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	done(nil)
	return nil
}

// EventElapsedTime implements worker.Context.
func (c *Context) EventElapsedTime(start, end worker.Event) (float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, b := start.(*event), end.(*event)
	if a.record == 0 || b.record == 0 {
		return 0, abi.ErrInvalidHandle
	}
	if a.done < a.record || b.done < b.record {
		return 0, abi.ErrNotReady
	}
	return float32(b.at.Sub(a.at).Seconds() * 1000), nil
}

// Notify implements worker.Context.
func (c *Context) Notify(done func(error)) error { return c.enqueue(nil, operation{done: done}) }

// Destroy implements worker.Context.
func (c *Context) Destroy() error {
	c.mu.Lock()
	if c.ending {
		c.mu.Unlock()
		return abi.ErrInvalidContext
	}
	c.ending = true
	close(c.end)
	c.wake.Signal()
	c.mu.Unlock()
	<-c.stopped
	c.mu.Lock()
	defer c.mu.Unlock()
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	for _, m := range c.memory {
		c.d.used -= uint64(len(m))
	}
	for _, all := range []map[uint64][]byte{c.memory, c.away} {
		for address := range all {
			_ = c.window.Free(address) // nothing is mapped there
		}
	}
	c.memory, c.away = map[uint64][]byte{}, map[uint64][]byte{}
	delete(c.d.contexts, c)
	return nil
}
