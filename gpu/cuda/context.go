package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// context is a CUcontext with its queues. Its loop goroutine owns the fields
// below "loop"; mu is never held while a done function or libcuda is called.
type context struct {
	d      *driver
	handle uintptr
	gate   worker.Gate
	wake   chan struct{} // something has arrived; holds one signal
	quit   chan struct{} // closed by Destroy
	once   sync.Once
	ended  chan struct{} // closed when the loop has ended

	def *stream // the legacy default stream, CUstream 0

	virtual *virtual // nil: the card has no virtual memory management, and memory stays on it

	output Output                       // nil: what kernels print is lost
	print  func(to uint32, text []byte) // receives it; nil: nobody

	calls sync.RWMutex // read-locked while a module is loaded or memory allocated, locked by Destroy

	mu        sync.Mutex // guards the following, and the counters of streams and records of events
	arrived   []*op      // not taken by the loop yet
	sequence  uint64     // of the latest
	over      bool       // the loop takes no more operations
	err       error      // why the context is poisoned
	allocated map[uint64]bool
	globals   map[uint64]bool // addresses of modules' variables
	blocking  []*op           // copies to the host that the default stream's next operation needs

	copyBytes func(dst, src []byte) int // copies bytes of the guest; copy, except in tests

	// loop
	clock    uintptr // a stream for the start times of batches
	zero     uintptr // a stream that zeroes new memory (not used by the loop)
	begin    uintptr // event
	free     []uintptr
	waiting  []*stream // with operations that have not been submitted
	active   []*stream // with work in this batch
	barriers []*op     // with operations that wait for all others to be done, in order
	drains   []func()
	pending  int // number of operations on the device
	launches uint64
	prints   bool // a kernel that may print has been submitted
	printed  bool // such a kernel has ended, and its output has not been collected
	staging  []*chunk
	moving   int      // number of parts whose bytes are being copied
	moved    chan *op // those that have ended
}

// op is an operation in the queue.
type op struct {
	stream   *stream
	submit   func(cu uintptr) error // submits it to the CUDA stream; nil: nothing to submit
	done     func(error)
	part     *part // of a copy through staging memory
	launches uint64
	prints   bool // it is a kernel that may print
	barrier  bool // done when everything before it, in all streams, is done
	drained  func()
	event    *event      // the event that it records or waits for
	records  bool        // it records the event
	sequence uint64      // its number among all enqueued operations
	needs    []*op       // copies to the host that are reported before it
	over     atomic.Bool // it has been reported
	result   error       // of the device
	entered  time.Time
}

const (
	// submitAtOnce is how many operations are submitted between two polls.
	submitAtOnce = 64
	// spinFor is how long the loop polls without sleeping, because a guest that
	// synchronizes waits for it. After that it sleeps sleepFor between polls.
	spinFor  = 100 * time.Microsecond
	sleepFor = 20 * time.Microsecond
)

func newContext(d *driver, handle uintptr, gate worker.Gate, w *worker.Window) (*context, error) {
	c := &context{
		d: d, handle: handle, gate: gate, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
		def: &stream{blocking: true, depth: firstDepth}, allocated: map[uint64]bool{}, globals: map[uint64]bool{},
		moved: make(chan *op, chunkCount), copyBytes: func(dst, src []byte) int { return copy(dst, src) },
	}
	if d.granule != 0 {
		c.virtual = &virtual{granule: d.granule, window: w}
	}
	var err error
	if c.clock, err = c.newStream(worker.StreamNonBlocking, 0); err == nil {
		if c.zero, err = c.newStream(worker.StreamNonBlocking, 0); err == nil {
			if c.begin, err = c.newEvent(0); err == nil {
				err = c.makeStaging()
			}
		}
	}
	if err != nil {
		return nil, err // the caller destroys the CUcontext with everything in it
	}
	go c.loop()
	return c, nil
}

// passOn calls a function that older drivers may lack.
func (c *context) passOn(f function, args ...uintptr) error {
	if err := c.failed(); err != nil {
		return err
	}
	if !c.d.lib.has(f) {
		return fmt.Errorf("%w: the driver does not have function %s", abi.ErrNotSupported, f.name())
	}
	return c.call(f, args...)
}

func (c *context) call(f function, args ...uintptr) error {
	if err := c.d.lib.call(c.handle, f, args...); err != nil {
		return fmt.Errorf("%s: %w", f.name(), err)
	}
	return nil
}

// failed returns why the context is poisoned, or nil.
func (c *context) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *context) poison(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// push enqueues an operation; s is nil for the default stream.
func (c *context) push(s worker.Stream, o *op) error {
	st, err := c.streamOf(s)
	if err != nil {
		return err
	}
	o.stream = st
	c.mu.Lock()
	switch {
	case c.err != nil:
		err = c.err
	case c.over:
		err = abi.ErrInvalidContext
	default:
		st.queued++
		c.sequence++
		o.sequence = c.sequence
		if !o.barrier && o.drained == nil { // those wait for everything
			c.orders(o)
		}
		if o.event != nil {
			o.event.enter(o)
		}
		c.arrived = append(c.arrived, o)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// whenDrained calls f from the loop when nothing that was enqueued before is
// running.
func (c *context) whenDrained(f func()) error { return c.push(nil, &op{drained: f}) }

// loop handles operations until Destroy.
func (c *context) loop() {
	defer close(c.ended)
	for {
		select {
		case <-c.quit: // even while more operations arrive
			c.finishAll()
			return
		default:
		}
		c.admit()
		c.settle()
		if len(c.waiting) == 0 {
			if !c.comesSoon() {
				select {
				case <-c.wake:
				case <-c.quit:
				}
			}
			continue
		}
		if c.failed() == nil {
			if err := c.gate.Enter(); err != nil {
				c.poison(fmt.Errorf("%w: %w", abi.ErrUnavailable, err))
			} else {
				c.batch()
			}
		}
	}
}

// comesSoon polls for work for a while without sleeping: a program that waits for its
// launches launches the next one at once, and waking this goroutine takes longer than a
// short kernel.
func (c *context) comesSoon() bool {
	for since := time.Now(); time.Since(since) < spinFor; runtime.Gosched() {
		c.mu.Lock()
		some := len(c.arrived) > 0
		c.mu.Unlock()
		if some {
			return true
		}
	}
	return false
}

// finishAll ends the operations that were enqueued before Destroy, and accepts no
// more.
func (c *context) finishAll() {
	c.poison(abi.ErrInvalidContext)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.admit()
	for len(c.waiting) > 0 {
		c.submitReady(submitAtOnce)
	}
	for _, b := range c.barriers {
		c.finish(b, c.failed())
	}
	c.barriers = nil
}

// batch submits operations until the lease is over or none is left, and leaves
// the gate when the device has done them all.
func (c *context) batch() {
	entered := time.Now()
	c.launches = 0
	if err := c.call(cuEventRecord, c.begin, c.clock); err != nil {
		c.poison(err)
	}
	c.submitReady(1)
	for idle := time.Now(); ; {
		closing := c.gate.Expired() && !c.stuck()
		select {
		case <-c.quit:
			c.poison(abi.ErrInvalidContext)
		default:
		}
		c.admit()
		worked := !closing && c.submitReady(submitAtOnce)
		worked = c.poll() || worked
		if c.pending == 0 && c.moving == 0 && (closing || len(c.waiting) == 0) {
			break
		}
		if worked {
			idle = time.Now()
		} else if time.Since(idle) < spinFor {
			runtime.Gosched()
		} else {
			time.Sleep(sleepFor)
		}
	}
	c.unstageWaiting()
	c.gate.Leave(uint64(c.busy(time.Since(entered))), c.launches)
	if len(c.drains) > 0 && c.quitting() {
		c.waitForDevice() // what Destroy has ended may still run
	}
	for _, f := range c.drains {
		f()
	}
	c.drains, c.active = nil, nil
}

// longKernel is how long work must have been on the device before other work is
// submitted beside it.
const longKernel = 50 * time.Millisecond

// stuck reports whether the lease cannot end because of long-running work, while no
// other session waits. The program's other streams then continue; the batch ends
// when that work is over.
func (c *context) stuck() bool {
	g, ok := c.gate.(worker.LongGate)
	return ok && g.GraceExpired() && slices.ContainsFunc(c.active, func(s *stream) bool {
		return len(s.pending) > 0 && time.Since(s.pending[0].entered) > longKernel
	})
}

// submit submits an operation to the device, or ends it.
func (c *context) submit(o *op) {
	err := c.failed()
	if o.part != nil && *o.part.first != nil {
		err = *o.part.first // an earlier part failed: the rest is not tried
	}
	if err == nil && o.submit != nil {
		o.entered = time.Now()
		if err = o.submit(o.stream.handle); err != nil && o.part == nil && (o.done == nil || sticky(err)) {
			c.poison(err) // no other operation would report it
		}
	}
	if err != nil {
		if o.part != nil {
			*o.part.first = err
		}
		c.unstage(o)
		if sticky(err) {
			c.collectLast()
		}
		c.finish(o, err)
		return
	}
	c.launches += o.launches
	c.prints = c.prints || o.prints
	s := o.stream
	if !s.active {
		s.active = true
		c.active = append(c.active, s)
	}
	s.pending = append(s.pending, o)
	c.pending++
}

// sticky reports whether an error ends a context, as it does on a real card;
// other errors are those of one call.
func sticky(err error) bool {
	var r abi.Result
	return errors.As(err, &r) && r >= 700 && r < 800
}

// poll marks what was submitted, queries what is done, and finishes it.
func (c *context) poll() (worked bool) {
	worked = c.finishMoves()
	err := c.failed()
	var passed uintptr // the latest event
	for _, s := range c.active {
		if err == nil {
			err = c.mark(s)
		}
		for err == nil && len(s.marks) > 0 {
			m := s.marks[0]
			if err = c.call(cuEventQuery, m.event); errors.Is(err, abi.ErrNotReady) {
				err = nil
				break
			}
			if err != nil {
				break
			}
			s.marks = s.marks[1:]
			s.adapt(m.sequence)
			c.reach(s, m.sequence, nil)
			if s.last != 0 {
				c.free = append(c.free, s.last)
			}
			s.last, passed, worked = m.event, m.event, true
		}
	}
	if err == nil {
		err = c.collect(passed)
	}
	if err != nil { // all running operations have this error
		c.poison(err)
		for _, s := range c.active {
			c.reach(s, math.MaxUint64, c.failed())
			for _, m := range s.marks {
				c.free = append(c.free, m.event)
			}
			s.marks = nil
		}
		c.collectLast()
		worked = true
	}
	for _, s := range c.active {
		worked = c.report(s) || worked
	}
	return c.passBarriers(false) || worked
}

// passBarriers ends the barriers that have no operations left before them. Drain
// functions are called when nothing at all is on the device: now, if idle, or
// after the batch.
func (c *context) passBarriers(idle bool) (worked bool) {
	if len(c.barriers) == 0 {
		return false
	}
	oldest := c.oldest()
	for len(c.barriers) > 0 && c.barriers[0].sequence < oldest {
		b := c.barriers[0]
		c.barriers = c.barriers[1:]
		switch {
		case b.drained == nil:
		case idle:
			b.drained()
		default:
			c.drains = append(c.drains, b.drained)
		}
		c.finish(b, c.failed())
		worked = true
	}
	return worked
}

// mark records an event after the operations submitted to the stream.
func (c *context) mark(s *stream) error {
	if len(s.pending) == s.reached {
		return nil
	}
	newest := s.pending[len(s.pending)-1].sequence
	if len(s.marks) > 0 && s.marks[len(s.marks)-1].sequence == newest {
		return nil
	}
	var e uintptr
	if n := len(c.free); n > 0 {
		e, c.free = c.free[n-1], c.free[:n-1]
	} else {
		var err error
		if e, err = c.newEvent(0); err != nil {
			return err
		}
	}
	s.marks = append(s.marks, mark{e, newest})
	return c.call(cuEventRecord, e, s.handle)
}

// reach notes that the device has done a stream's operations up to sequence.
func (c *context) reach(s *stream, sequence uint64, err error) {
	for s.reached < len(s.pending) && s.pending[s.reached].sequence <= sequence {
		o := s.pending[s.reached]
		s.reached++
		o.result = err
		c.printed = c.printed || o.prints
		c.land(o, err)
	}
}

// report reports the operations at the beginning of a stream that are over.
func (c *context) report(s *stream) (worked bool) {
	for s.reached > 0 && c.reportable(s.pending[0]) {
		o := s.pending[0]
		s.pending = s.pending[1:]
		s.reached--
		c.pending--
		c.finish(o, o.result)
		worked = true
	}
	return worked
}

// finish reports that an operation is over.
func (c *context) finish(o *op, err error) {
	c.mu.Lock()
	o.stream.finished++
	c.mu.Unlock()
	o.needs = nil
	o.over.Store(true)
	if o.part != nil && err == nil {
		err = *o.part.first
	}
	if o.done != nil {
		o.done(err)
	}
}

// busy returns the device time of the batch, or wall if the events fail.
func (c *context) busy(wall time.Duration) time.Duration {
	var longest time.Duration
	ms := newOut[float32]()
	defer ms.free()
	for _, s := range c.active {
		s.active = false
		if s.last == 0 {
			continue
		}
		if err := c.call(cuEventElapsedTime, ms.at(), c.begin, s.last); err != nil {
			longest = wall
		} else {
			longest = max(longest, time.Duration(float64(*ms.value)*float64(time.Millisecond)))
		}
		c.free = append(c.free, s.last)
		s.last = 0
	}
	if c.failed() != nil {
		return wall
	}
	return min(longest, wall)
}

// waitForDevice waits until the device has done what was submitted, because memory that a
// kernel uses must not be unmapped: the kernel's fault would end all contexts of the
// process. After an error nothing runs.
func (c *context) waitForDevice() { _ = c.call(cuCtxSynchronize) }

// Notify implements worker.Context.
func (c *context) Notify(done func(error)) error { return c.push(nil, &op{barrier: true, done: done}) }

// Destroy implements worker.Context.
func (c *context) Destroy() error {
	var err error
	c.once.Do(func() {
		close(c.quit)
		<-c.ended
		c.calls.Lock() // those in progress finish first, and what they have made is freed with the rest
		defer c.calls.Unlock()
		c.waitForDevice()
		c.dropAll()
		err = c.destroy()
		for a := range c.allocated {
			_ = c.d.memory.remove(a, false)
		}
		c.mu.Lock()
		for a := range c.globals {
			_ = c.d.memory.remove(a, true)
		}
		clear(c.globals)
		c.mu.Unlock()
		if c.virtual != nil {
			for a := range c.virtual.aliases {
				c.d.memory.removeMapped(a)
			}
		}
		c.d.mu.Lock()
		delete(c.d.contexts, c)
		c.d.mu.Unlock()
		if c.virtual != nil {
			err = errors.Join(err, c.d.vacate(c.virtual.window))
		}
	})
	return err
}
