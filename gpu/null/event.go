package null

import (
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// event marks a point in the order of its context; all fields are guarded by
// Context.mu.
type event struct {
	c        *Context
	timed    bool
	recorded uint64 // number of requested records
	done     uint64 // number of completed records
	at       time.Time
	waiters  []waiter
	closed   bool
}

// waiter waits for a record.
type waiter struct {
	record uint64
	done   func(error)
}

// record completes the next record. Times are distinct and increase.
func (e *event) record(err error) {
	e.done++
	if err == nil {
		now := time.Now()
		if last := e.c.recorded; !now.After(last) {
			now = last.Add(time.Nanosecond)
		}
		e.c.recorded, e.at = now, now
	}
}

// reached removes and returns the waiters whose record is complete.
func (e *event) reached() (all []func(error)) {
	left := e.waiters[:0]
	for _, w := range e.waiters {
		if w.record <= e.done {
			all = append(all, w.done)
		} else {
			left = append(left, w)
		}
	}
	e.waiters = left
	return all
}

// event returns the event of a caller's handle; callers hold mu.
func (c *Context) event(e worker.Event) (*event, error) {
	ev, ok := e.(*event)
	if !ok || ev == nil || ev.c != c || ev.closed {
		return nil, abi.ErrInvalidHandle
	}
	return ev, nil
}

// EventCreate implements worker.Context.
func (c *Context) EventCreate(flags uint32) (worker.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	return &event{c: c, timed: flags&worker.EventDisableTiming == 0}, nil
}

// EventDestroy implements worker.Context. Its waiters are notified.
func (c *Context) EventDestroy(e worker.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, err := c.event(e)
	if err == nil {
		ev.closed = true
	}
	return err
}

// EventRecord implements worker.Context.
func (c *Context) EventRecord(e worker.Event, s worker.Stream) error {
	c.mu.Lock()
	ev, err := c.event(e)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.submit(s, operation{event: ev})
}

// EventQuery implements worker.Context.
func (c *Context) EventQuery(e worker.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, err := c.event(e)
	if err != nil {
		return err
	}
	if err := c.usable(); err != nil {
		return err
	}
	if ev.done < ev.recorded {
		return abi.ErrNotReady
	}
	return nil
}

// EventNotify implements worker.Context.
func (c *Context) EventNotify(e worker.Event, done func(error)) error {
	c.mu.Lock()
	ev, err := c.event(e)
	if err == nil {
		err = c.usable()
	}
	if err != nil {
		c.mu.Unlock()
		return err
	}
	if ev.done < ev.recorded {
		if done != nil {
			ev.waiters = append(ev.waiters, waiter{ev.recorded, done})
		}
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	if done != nil {
		done(nil)
	}
	return nil
}

// EventElapsedTime implements worker.Context.
func (c *Context) EventElapsedTime(start, end worker.Event) (float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := c.event(start)
	if err != nil {
		return 0, err
	}
	b, err := c.event(end)
	if err != nil {
		return 0, err
	}
	if err := c.usable(); err != nil {
		return 0, err
	}
	if a.recorded == 0 || b.recorded == 0 || !a.timed || !b.timed {
		return 0, abi.ErrInvalidHandle
	}
	if a.done < a.recorded || b.done < b.recorded {
		return 0, abi.ErrNotReady
	}
	return float32(b.at.Sub(a.at).Seconds() * 1000), nil
}
