package cuda

import (
	"fmt"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// stream is a CUstream.
type stream struct {
	handle           uintptr
	blocking         bool   // it and the default stream wait for each other
	queued, finished uint64 // guarded by the context's mu, as are the following
	needs            []*op  // copies to the host that its next operation needs
	landing          *op    // its newest copy to the host
	// The following is owned by the loop.
	waiting []*op // not submitted yet
	listed  bool  // in the context's list of waiting streams
	pending []*op // submitted and not reported
	reached int   // how many of them the device has done
	depth   int   // how many may be submitted
	chunks  int   // of staging, used by them
	marks   []mark
	active  bool
	last    uintptr // the newest event that has passed
}

// mark is an event after all operations up to sequence.
type mark struct {
	event    uintptr
	sequence uint64
}

func (c *context) newStream(flags uint32, priority int32) (uintptr, error) {
	h := newOut[uintptr]()
	defer h.free()
	err := c.call(cuStreamCreateWithPriority, h.at(), uintptr(flags), uintptr(uint32(priority)))
	return *h.value, err
}

// streamOf returns the driver's stream behind the interface; nil is the default
// stream.
func (c *context) streamOf(s worker.Stream) (*stream, error) {
	if s == nil {
		return c.def, nil
	}
	if st, ok := s.(*stream); ok {
		return st, nil
	}
	return nil, abi.ErrInvalidHandle
}

// StreamCreate implements worker.Context.
func (c *context) StreamCreate(flags uint32, priority int32) (worker.Stream, error) {
	if err := c.failed(); err != nil {
		return nil, err
	}
	h, err := c.newStream(flags, priority)
	if err != nil {
		return nil, err
	}
	return &stream{handle: h, blocking: flags&worker.StreamNonBlocking == 0, depth: firstDepth}, nil
}

// StreamDestroy implements worker.Context. The stream is destroyed when its own
// work is done, regardless of other streams: a program may create and destroy
// streams for as long as a batch lasts.
func (c *context) StreamDestroy(s worker.Stream) error {
	st, ok := s.(*stream)
	if !ok || st == c.def {
		return abi.ErrInvalidHandle
	}
	return c.push(st, &op{done: func(error) { _ = c.call(cuStreamDestroy, st.handle) }})
}

// StreamQuery implements worker.Context.
func (c *context) StreamQuery(s worker.Stream) error {
	st, err := c.streamOf(s)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if st.finished != st.queued {
		return abi.ErrNotReady
	}
	return nil
}

// StreamWaitEvent implements worker.Context.
func (c *context) StreamWaitEvent(s worker.Stream, e worker.Event) error {
	ev, ok := e.(*event)
	if !ok {
		return abi.ErrInvalidHandle
	}
	return c.push(s, &op{event: ev, submit: func(cu uintptr) error { return c.call(cuStreamWaitEvent, cu, ev.handle, 0) }})
}

// StreamNotify implements worker.Context.
func (c *context) StreamNotify(s worker.Stream, done func(error)) error {
	return c.push(s, &op{done: done})
}

// event is a CUevent.
type event struct {
	handle uintptr
	timing bool
	record *record // the newest one; guarded by the context's mu

	mu      sync.Mutex // guards the following; contexts may wait for each other's events
	waiting []*op      // operations on it that are not submitted, in the guest's order
}

// enter adds an operation that is being enqueued.
func (e *event) enter(o *op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, o)
}

// first reports whether no operation on the event is before o.
func (e *event) first(o *op) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting[0] == o
}

func (e *event) remove(o *op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = slices.DeleteFunc(e.waiting, func(x *op) bool { return x == o })
}

// record is one recording of an event.
type record struct {
	over    bool
	err     error
	waiters []func(error)
	needs   []*op // copies to the host that work after a wait for it needs
}

func (c *context) newEvent(flags uint32) (uintptr, error) {
	h := newOut[uintptr]()
	defer h.free()
	err := c.call(cuEventCreate, h.at(), uintptr(flags))
	return *h.value, err
}

// EventCreate implements worker.Context.
func (c *context) EventCreate(flags uint32) (worker.Event, error) {
	if err := c.failed(); err != nil {
		return nil, err
	}
	h, err := c.newEvent(flags)
	if err != nil {
		return nil, err
	}
	return &event{handle: h, timing: flags&worker.EventDisableTiming == 0}, nil
}

// EventDestroy implements worker.Context. The event is destroyed when what was
// enqueued before is done, because any stream may wait for it.
func (c *context) EventDestroy(e worker.Event) error {
	ev, ok := e.(*event)
	if !ok {
		return abi.ErrInvalidHandle
	}
	return c.push(nil, &op{barrier: true, done: func(error) { _ = c.call(cuEventDestroy, ev.handle) }})
}

// EventRecord implements worker.Context.
func (c *context) EventRecord(e worker.Event, s worker.Stream) error {
	ev, ok := e.(*event)
	if !ok {
		return abi.ErrInvalidHandle
	}
	r := &record{}
	err := c.push(s, &op{
		event:   ev,
		records: true,
		submit:  func(cu uintptr) error { return c.call(cuEventRecord, ev.handle, cu) },
		done: func(err error) {
			c.mu.Lock()
			r.over, r.err = true, err
			waiters := r.waiters
			r.waiters = nil
			c.mu.Unlock()
			for _, f := range waiters {
				f(err)
			}
		},
	})
	if err == nil {
		st, _ := c.streamOf(s)
		c.mu.Lock()
		ev.record = r
		r.needs = st.owed()
		c.mu.Unlock()
	}
	return err
}

// EventQuery implements worker.Context.
func (c *context) EventQuery(e worker.Event) error {
	ev, ok := e.(*event)
	if !ok {
		return abi.ErrInvalidHandle
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case ev.record == nil:
		return nil
	case !ev.record.over:
		return abi.ErrNotReady
	}
	return ev.record.err
}

// EventNotify implements worker.Context.
func (c *context) EventNotify(e worker.Event, done func(error)) error {
	ev, ok := e.(*event)
	if !ok {
		return abi.ErrInvalidHandle
	}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	r := ev.record
	if r != nil && !r.over {
		r.waiters = append(r.waiters, done)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	var err error
	if r != nil {
		err = r.err
	}
	done(err)
	return nil
}

// EventElapsedTime implements worker.Context. A recording is known here before it
// is known to libcuda.
func (c *context) EventElapsedTime(start, end worker.Event) (float32, error) {
	a, ok1 := start.(*event)
	b, ok2 := end.(*event)
	if !ok1 || !ok2 || !a.timing || !b.timing {
		return 0, abi.ErrInvalidHandle
	}
	c.mu.Lock()
	ra, rb, err := a.record, b.record, c.err
	switch {
	case err != nil:
	case ra == nil || rb == nil:
		err = fmt.Errorf("%w: the event was never recorded", abi.ErrInvalidHandle)
	case !ra.over || !rb.over:
		err = abi.ErrNotReady
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	ms := newOut[float32]()
	defer ms.free()
	err = c.call(cuEventElapsedTime, ms.at(), a.handle, b.handle)
	return *ms.value, err
}
