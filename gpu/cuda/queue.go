package cuda

import (
	"math"
	"slices"
	"time"
)

// Operations wait for the device in their streams: a stream that has as many
// operations on the device as it may have delays no other stream. Between streams
// the loop keeps the order that the CUDA driver would see if everything was
// submitted in the guest's order:
//
//   - the default stream and those that block on it submit in one order;
//   - operations on one event are submitted in order, also those of other contexts.
//
// The oldest operation of all is delayed only by its stream's depth, and that
// only by work that is on the device with everything before it: so all streams
// make progress.

// A stream's depth is how many of its operations may be on the device. It is
// limited so that a lease can end: about as many as take between shallow and
// deep, and at least two, because the device must not wait for this goroutine.
const (
	firstDepth = 4
	leastDepth = 2
	mostDepth  = 512
	shallow    = time.Millisecond
	deep       = 4 * time.Millisecond
)

// adapt changes the depth by how long the operation that ends at sequence, one of
// pending, was on the device, including the time that it waited there.
func (s *stream) adapt(sequence uint64) {
	i, found := slices.BinarySearchFunc(s.pending, sequence, func(o *op, n uint64) int {
		switch {
		case o.sequence < n:
			return -1
		case o.sequence > n:
			return 1
		}
		return 0
	})
	if !found || s.pending[i].entered.IsZero() {
		return
	}
	switch took := time.Since(s.pending[i].entered); {
	case took > deep:
		s.depth = max(s.depth/2, leastDepth)
	case took < shallow:
		s.depth = min(2*s.depth, mostDepth)
	}
}

// admit takes the operations that have arrived.
func (c *context) admit() {
	c.mu.Lock()
	arrived := c.arrived
	c.arrived = nil
	c.mu.Unlock()
	for _, o := range arrived {
		if o.barrier || o.drained != nil {
			c.barriers = append(c.barriers, o)
			continue
		}
		s := o.stream
		s.waiting = append(s.waiting, o)
		if !s.listed {
			s.listed = true
			c.waiting = append(c.waiting, s)
		}
	}
}

// settle ends operations that need no device, while their stream has nothing on
// it: those that are first in their stream and only mark a point in it, barriers,
// drains, and all operations of a context that has failed.
func (c *context) settle() {
	for failed := c.failed() != nil; ; {
		worked := false
		for _, s := range c.waiting {
			for len(s.waiting) > 0 && c.ready(s) && (failed || s.waiting[0].submit == nil) {
				if o := c.pop(s); failed {
					c.submit(o) // which ends it
				} else {
					c.finish(o, nil)
				}
				worked = true
			}
		}
		c.unlist()
		if !c.passBarriers(true) && !worked {
			return
		}
	}
}

// submitReady submits up to limit operations, taking turns between streams.
func (c *context) submitReady(limit int) (worked bool) {
	for n, more := 0, true; more && n < limit; {
		more = false
		for _, s := range c.waiting {
			if n < limit && len(s.waiting) > 0 && c.ready(s) && c.prepare(s.waiting[0]) {
				c.submit(c.pop(s))
				n++
				more, worked = true, true
			}
		}
	}
	c.unlist()
	return worked
}

// ready reports whether the first operation of s may be submitted, after prepare. Once
// it is true it becomes false only by a smaller depth.
func (c *context) ready(s *stream) bool {
	o := s.waiting[0]
	if len(s.pending) >= s.depth {
		return false
	}
	if o.event != nil && !o.event.first(o) && c.failed() == nil {
		return false
	}
	if s == c.def {
		return !slices.ContainsFunc(c.waiting, func(x *stream) bool {
			return x != s && x.blocking && len(x.waiting) > 0 && x.waiting[0].sequence < o.sequence
		})
	}
	return !s.blocking || len(c.def.waiting) == 0 || c.def.waiting[0].sequence > o.sequence
}

// mayStage reports whether a copy of s may take a chunk. The last chunk is reserved
// for copies that begin at once, so that it is returned.
func (c *context) mayStage(s *stream) bool {
	return s.chunks < chunksPerStream && (len(c.staging) > 1 || len(c.staging) == 1 && c.begins(s))
}

// begins reports whether the card starts at once with an operation of s.
func (c *context) begins(s *stream) bool {
	return len(s.pending) == 0 && !slices.ContainsFunc(c.active, func(x *stream) bool {
		return len(x.pending) > 0 && (s == c.def && x.blocking || s.blocking && x == c.def)
	})
}

// pop removes and returns the first operation of s, which must be ready.
func (c *context) pop(s *stream) *op {
	o := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	if o.event != nil {
		o.event.remove(o)
	}
	return o
}

// unlist removes streams without waiting operations from the list.
func (c *context) unlist() {
	c.waiting = slices.DeleteFunc(c.waiting, func(s *stream) bool {
		s.listed = len(s.waiting) > 0
		return !s.listed
	})
}

// oldest returns the sequence of the oldest operation that is not over.
func (c *context) oldest() uint64 {
	oldest := uint64(math.MaxUint64)
	for _, s := range c.active {
		if len(s.pending) > 0 {
			oldest = min(oldest, s.pending[0].sequence)
		}
	}
	for _, s := range c.waiting {
		if len(s.waiting) > 0 {
			oldest = min(oldest, s.waiting[0].sequence)
		}
	}
	return oldest
}
