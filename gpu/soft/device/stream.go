package device

import (
	"errors"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// maxQueued is more than the worker allows one stream to have in flight, so that an
// enqueueing call does not block.
const maxQueued = 8192

// stream executes its operations in order on one goroutine.
type stream struct {
	c           *Context
	nonBlocking bool
	queue       chan *op
	tail        *op  // the last operation
	closed      bool // no more operations may be enqueued
	waits       []*op
	priority    int32
	attributes  map[int32]abi.StreamAttrValue // those that were set, under Context.mu
}

// event is a position in a stream.
type event struct {
	flags uint32
	op    *op   // operation of the latest record, nil before the first
	at    int64 // nanoseconds of the latest finished record
}

func (c *Context) newStream(nonBlocking bool) *stream {
	s := &stream{c: c, nonBlocking: nonBlocking, queue: make(chan *op, maxQueued)}
	c.running.Add(1)
	go s.loop()
	return s
}

func (s *stream) loop() {
	defer s.c.running.Done()
	for o := range s.queue {
		await(s.c, o.after)
		o.after = nil
		err := s.c.poison()
		if err == nil && o.run != nil {
			err = o.run()
			if err != nil {
				err = s.c.fail(err)
			}
		}
		if o.always != nil {
			o.always()
		}
		s.finish(o, err)
		s.c.d.waits.notice()
	}
}

// finish marks an operation as done and calls its report and notify functions.
func (s *stream) finish(o *op, err error) {
	s.c.mu.Lock()
	report, notify := o.report, o.notify
	o.run, o.always, o.report, o.notify = nil, nil, nil, nil
	o.end()
	s.c.mu.Unlock()
	if report != nil {
		report(err)
	}
	for _, f := range notify {
		f(err)
	}
}

// enqueue adds an operation to a stream and sets its predecessors. The legacy default
// stream waits for all blocking streams and they wait for it (CUDA driver API, "Stream
// synchronization behavior").
func (c *Context) enqueue(st worker.Stream, o *op) error {
	c.issue.Lock() // keeps the order of enqueueing while mu is not held
	defer c.issue.Unlock()
	c.mu.Lock()
	s, err := c.stream(st)
	if err == nil && c.closed {
		err = abi.ErrInvalidContext
	}
	if err == nil {
		err = c.poisoned
	}
	if err != nil {
		c.mu.Unlock()
		return err
	}
	o.after = append(o.after, s.waits...)
	s.waits = nil
	switch {
	case s == c.legacy:
		for _, other := range c.streams {
			if other != s && !other.nonBlocking && other.tail != nil && !other.tail.done() {
				o.after = append(o.after, other.tail)
			}
		}
	case !s.nonBlocking && c.legacy.tail != nil && !c.legacy.tail.done():
		o.after = append(o.after, c.legacy.tail)
	}
	s.tail = o
	if o.queued != nil {
		o.queued()
	}
	c.mu.Unlock()
	s.queue <- o
	return nil
}

// stream returns the stream of a caller's handle. The caller must hold mu.
func (c *Context) stream(st worker.Stream) (*stream, error) {
	if st == nil {
		return c.legacy, nil
	}
	s, ok := st.(*stream)
	if !ok || s == nil || s.c != c || s.closed {
		return nil, abi.ErrInvalidHandle
	}
	return s, nil
}

// StreamCreate implements worker.Context.
func (c *Context) StreamCreate(flags uint32, priority int32) (worker.Stream, error) {
	if flags&^worker.StreamNonBlocking != 0 {
		return nil, abi.ErrInvalidValue
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, abi.ErrInvalidContext
	}
	if len(c.streams) >= maxStreams {
		return nil, abi.ErrOutOfMemory
	}
	s := c.newStream(flags&worker.StreamNonBlocking != 0)
	s.priority = priority
	c.streams = append(c.streams, s)
	return s, nil
}

// StreamDestroy implements worker.Context. The work in the stream finishes.
func (c *Context) StreamDestroy(st worker.Stream) error {
	c.issue.Lock()
	defer c.issue.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stream(st)
	if err != nil {
		return err
	}
	if s == c.legacy {
		return abi.ErrInvalidHandle
	}
	s.closed = true
	close(s.queue)
	c.streams = slices.DeleteFunc(c.streams, func(x *stream) bool { return x == s })
	if s.tail != nil && !s.tail.done() { // the default stream must still wait for it
		c.orphans = append(slices.DeleteFunc(c.orphans, (*op).done), s.tail)
		if !s.nonBlocking {
			c.legacy.waits = append(c.legacy.waits, s.tail)
		}
	}
	return nil
}

// StreamQuery implements worker.Context.
func (c *Context) StreamQuery(st worker.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stream(st)
	if err != nil {
		return err
	}
	list := []*op{s.tail}
	if s == c.legacy {
		for _, o := range c.streams {
			if !o.nonBlocking {
				list = append(list, o.tail)
			}
		}
	}
	if c.poisoned != nil {
		return c.poisoned
	}
	for _, o := range list {
		if o != nil && !o.done() {
			return abi.ErrNotReady
		}
	}
	return nil
}

// StreamWaitEvent implements worker.Context. Later work of the stream waits for the
// event's latest record.
func (c *Context) StreamWaitEvent(st worker.Stream, ev worker.Event) error {
	e, ok := ev.(*event)
	if !ok || e == nil {
		return abi.ErrInvalidHandle
	}
	c.mu.Lock()
	record := e.op
	_, err := c.stream(st)
	c.mu.Unlock()
	if err != nil || record == nil {
		return err
	}
	return c.enqueue(st, &op{after: []*op{record}})
}

// StreamNotify implements worker.Context.
func (c *Context) StreamNotify(st worker.Stream, done func(error)) error {
	return c.enqueue(st, &op{report: done})
}

// EventCreate implements worker.Context.
func (c *Context) EventCreate(flags uint32) (worker.Event, error) {
	if flags > 7 {
		return nil, abi.ErrInvalidValue
	}
	return &event{flags: flags}, nil
}

// EventDestroy implements worker.Context. Work that waits for the event continues.
func (c *Context) EventDestroy(ev worker.Event) error {
	if e, ok := ev.(*event); !ok || e == nil {
		return abi.ErrInvalidHandle
	}
	return nil
}

// EventRecord implements worker.Context.
func (c *Context) EventRecord(ev worker.Event, st worker.Stream) error {
	e, ok := ev.(*event)
	if !ok || e == nil {
		return abi.ErrInvalidHandle
	}
	o := &op{}
	o.run = func() error {
		now := c.d.o.Clock().UnixNano()
		c.mu.Lock()
		if e.op == o {
			e.at = now
		}
		c.mu.Unlock()
		return nil
	}
	o.queued = func() { e.op = o }
	return c.enqueue(st, o)
}

// EventQuery implements worker.Context.
func (c *Context) EventQuery(ev worker.Event) error {
	e, ok := ev.(*event)
	if !ok || e == nil {
		return abi.ErrInvalidHandle
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poisoned != nil {
		return c.poisoned
	}
	if e.op != nil && !e.op.done() {
		return abi.ErrNotReady
	}
	return nil
}

// EventNotify implements worker.Context.
func (c *Context) EventNotify(ev worker.Event, done func(error)) error {
	e, ok := ev.(*event)
	if !ok || e == nil {
		return abi.ErrInvalidHandle
	}
	c.mu.Lock()
	o := e.op
	if o != nil && !o.done() {
		if done != nil {
			o.notify = append(o.notify, done)
		}
		c.mu.Unlock()
		return nil
	}
	err := c.poisoned
	c.mu.Unlock()
	if done != nil {
		done(err)
	}
	return nil
}

// EventElapsedTime implements worker.Context.
func (c *Context) EventElapsedTime(start, end worker.Event) (float32, error) {
	a, ok1 := start.(*event)
	b, ok2 := end.(*event)
	if !ok1 || !ok2 || a == nil || b == nil || (a.flags|b.flags)&worker.EventDisableTiming != 0 {
		return 0, abi.ErrInvalidHandle
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poisoned != nil {
		return 0, c.poisoned
	}
	if a.op == nil || b.op == nil {
		return 0, abi.ErrInvalidHandle
	}
	if !a.op.done() || !b.op.done() {
		return 0, abi.ErrNotReady
	}
	return float32(float64(b.at-a.at) / 1e6), nil
}

// poison returns the error that ended the context, or nil.
func (c *Context) poison() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.poisoned
}

// fail records an asynchronous error and returns the first one that was recorded.
func (c *Context) fail(err error) error {
	var r abi.Result
	if !errors.As(err, &r) {
		err = errors.Join(abi.ErrLaunchFailed, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poisoned == nil {
		c.poisoned = err
	}
	return c.poisoned
}
