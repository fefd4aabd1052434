package null

import (
	"fmt"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Limits on what a guest may make a context hold.
const (
	maxStreams = 4096
	// maxInCall is the most bytes that a copy from the device writes within the
	// call; the context's goroutine writes larger copies.
	maxInCall = 1 << 20
	// batchOperations and batchBytes are roughly how much completes between two
	// checks of whether the lease has expired.
	batchOperations = 256
	batchBytes      = 64 << 20
)

// Context is one CUDA context of a null device: worker.Context.
type Context struct {
	worker.NoCalls

	d      *device
	gate   worker.Gate
	window abi.Window
	wake   chan struct{} // there is work for run, or the context is closed; holds one signal
	ended  chan struct{} // run has returned
	move   sync.Mutex    // one Evict or Restore at a time; locked before mu

	mu       sync.Mutex  // guards the following
	queue    []operation // bounded by the worker
	busy     bool        // run has incomplete operations
	inside   bool        // of the gate
	used     bool        // work has arrived since run last checked
	done     uint64
	launched uint64 // operations done, and launches, since the gate was entered
	evicted  bool
	closed   bool
	err      error // the first asynchronous error
	streams  int
	pending  map[*stream]int // number of queued operations by stream; nil is the default stream
	modules  map[*module]bool
	recorded time.Time         // time of the latest record of an event
	hosts    map[uint64]uint64 // host memory: size in bytes by address
	mapped   map[uint64]mapped // by address
}

// operation is an operation that completes in its turn.
type operation struct {
	stream   *stream // nil: the default stream
	device   bool    // passes the gate
	launch   bool
	zero     []byte      // to be cleared
	event    *event      // to be recorded
	complete func(error) // may be nil; called without mu
}

type stream struct {
	c      *Context
	closed bool // guarded by Context.mu
}

func newContext(d *device, gate worker.Gate, w abi.Window) *Context {
	c := &Context{
		d: d, gate: gate, window: w, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		pending: map[*stream]int{}, modules: map[*module]bool{}, hosts: map[uint64]uint64{}, mapped: map[uint64]mapped{},
	}
	go c.run()
	return c
}

// usable returns why the context accepts no more work, or nil; callers hold mu.
func (c *Context) usable() error {
	if c.err != nil {
		return c.err
	}
	if c.closed {
		return abi.ErrInvalidContext
	}
	return nil
}

// submit completes an operation within the call if no other is before it and it
// need not wait for the gate; otherwise it queues the operation.
func (c *Context) submit(s worker.Stream, o operation) error {
	c.mu.Lock()
	var err error
	if o.stream, err = c.stream(s); err != nil {
		c.mu.Unlock()
		return err
	}
	if err := c.usable(); err != nil {
		c.mu.Unlock()
		return err
	}
	if o.event != nil {
		o.event.recorded++
	}
	if len(c.queue) == 0 && !c.busy && (!o.device || c.inside && len(o.zero) <= maxInCall && !c.gate.Expired()) {
		c.account(o)
		c.mu.Unlock()
		o.finish(nil)
		return nil
	}
	c.queue = append(c.queue, o)
	c.pending[o.stream]++
	c.mu.Unlock()
	c.signal()
	return nil
}

func (c *Context) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// account counts an operation that completes without error; callers hold mu.
func (c *Context) account(o operation) {
	if o.device {
		c.used = true
		c.done++
	}
	if o.launch {
		c.launched++
	}
	if o.event != nil {
		o.event.record(nil)
	}
}

// finish completes an operation; it is called without mu.
func (o operation) finish(err error) {
	if err == nil {
		clear(o.zero)
	}
	if o.complete != nil {
		o.complete(err)
	}
}

// run completes queued operations until Destroy.
func (c *Context) run() {
	defer close(c.ended)
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for {
		c.mu.Lock()
		inside, closed, waiting := c.inside, c.closed, len(c.queue) > 0
		c.mu.Unlock()
		switch {
		case waiting:
			c.drain()
			continue
		case inside && closed:
			c.leave()
			continue
		case closed:
			return
		case !inside:
			<-c.wake
			continue
		}
		idle.Reset(linger)
		select {
		case <-c.wake:
			continue
		case <-idle.C:
		}
		c.mu.Lock()
		used := c.used
		c.used = false
		c.mu.Unlock()
		if !used || c.gate.Expired() {
			c.leave()
		}
	}
}

// drain completes the operations at the front of the queue. Those before the
// first one that needs the gate do not wait for it.
func (c *Context) drain() {
	c.mu.Lock()
	n := 0
	for n < len(c.queue) && !c.queue[n].device {
		n++
	}
	if n == 0 && c.usable() == nil {
		inside := c.inside
		c.mu.Unlock()
		if inside && c.gate.Expired() {
			c.leave()
			inside = false
		}
		if !inside {
			c.enter()
		}
		c.mu.Lock()
	}
	if n == 0 {
		for bytes := 0; n < len(c.queue) && n < batchOperations && bytes < batchBytes; n++ {
			bytes += len(c.queue[n].zero)
		}
	}
	batch := c.queue[:n]
	c.queue = c.queue[n:]
	if len(c.queue) == 0 {
		c.queue = nil
	}
	c.busy = true
	err := c.usable()
	c.mu.Unlock()
	for _, o := range batch {
		if err == nil {
			clear(o.zero)
		}
		c.mu.Lock()
		if err == nil {
			c.account(o)
		} else if o.event != nil {
			o.event.record(err)
		}
		if c.pending[o.stream]--; c.pending[o.stream] == 0 {
			delete(c.pending, o.stream)
		}
		var waiters []func(error)
		if o.event != nil {
			waiters = o.event.reached()
		}
		c.mu.Unlock()
		o.zero = nil
		o.finish(err)
		for _, w := range waiters {
			w(err)
		}
	}
	c.mu.Lock()
	c.busy = false
	c.mu.Unlock()
}

// enter enters the gate. A failure is the context's error from then on. Admission
// while memory is evicted is an error of the worker that must be detected.
func (c *Context) enter() {
	err := c.gate.Enter()
	c.mu.Lock()
	entered := err == nil
	if entered && c.evicted {
		err = fmt.Errorf("%w: work started while its memory is evicted", abi.ErrIllegalAddress)
	}
	c.inside = err == nil
	if err != nil && c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	if entered && err != nil {
		c.gate.Leave(0, 0)
	}
}

func (c *Context) leave() {
	c.mu.Lock()
	done, launched := c.done, c.launched
	c.inside, c.done, c.launched = false, 0, 0
	c.mu.Unlock()
	c.gate.Leave(done, launched)
}

// Notify implements worker.Context.
func (c *Context) Notify(done func(error)) error {
	return c.submit(nil, operation{complete: done})
}

// Destroy implements worker.Context. Work that waits for the gate fails when the
// gate admits it or ends.
func (c *Context) Destroy() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.ended
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.ended
	c.move.Lock()
	c.d.mem.forget(c)
	c.move.Unlock()
	c.d.mu.Lock()
	delete(c.d.contexts, c)
	c.d.mu.Unlock()
	return nil
}
