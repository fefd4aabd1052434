package worker

import (
	"errors"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// residency is where the memory of the session's contexts is: all of it on the
// device, or some of it in the host's memory. The gate sees to it that nothing
// runs while it moves or is away.
type residency struct {
	mu       sync.Mutex // guards below; not held while memory moves
	away     bool
	contexts map[Context]bool // true: evicted
}

// add makes a new context like the others; it has no memory yet, so this is quick.
func (r *residency) add(c Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		if _, err := c.Evict(0); err != nil {
			return err
		}
	}
	r.contexts[c] = r.away
	return nil
}

func (r *residency) remove(c Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.contexts, c)
}

// next is a context that is evicted, or is not.
func (r *residency) next(evicted bool, but map[Context]bool) (Context, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, out := range r.contexts {
		if out == evicted && !but[c] {
			return c, true
		}
	}
	return nil, false
}

func (r *residency) mark(c Context, evicted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.contexts[c]; there {
		r.contexts[c] = evicted
	}
}

// evict moves at least bytes, or all, off the device. An error says that some
// contexts would not go; what has moved has moved.
func (r *residency) evict(bytes uint64) (moved uint64, err error) {
	r.mu.Lock()
	r.away = true // new contexts, from here on, begin evicted
	r.mu.Unlock()
	asked := map[Context]bool{}
	for _, evicted := range []bool{false, true} { // the latter have more to give, perhaps
		for c, ok := r.next(evicted, asked); ok; c, ok = r.next(evicted, asked) {
			asked[c] = true
			n, failed := c.Evict(bytes - min(moved, bytes))
			if moved += n; failed == nil {
				r.mark(c, true)
			} else if !errors.Is(failed, abi.ErrInvalidContext) { // else it goes anyway
				err = errors.Join(err, failed)
			}
		}
	}
	return moved, err
}

const everything = 1 << 62 // bytes

// restore brings all back, or leaves all of it away.
func (r *residency) restore() error {
	for {
		c, ok := r.next(true, nil)
		if !ok {
			r.mu.Lock()
			if r.settled() {
				r.away = false
				r.mu.Unlock()
				return nil
			}
			r.mu.Unlock()
			continue // a new context came
		}
		err := c.Restore()
		if errors.Is(err, abi.ErrInvalidContext) { // it is being destroyed
			r.remove(c)
		} else if err != nil {
			_, more := r.evict(everything)
			return errors.Join(err, more)
		}
		r.mark(c, false)
	}
}

// settled is called with mu held.
func (r *residency) settled() bool {
	for _, evicted := range r.contexts {
		if evicted {
			return false
		}
	}
	return true
}

// evict serves the host's request: work waits at the gate meanwhile, and from
// then on until a lease has brought the memory back.
func (g *leaseGate) evict(bytes uint64) (moved uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.moving {
		g.wait()
	}
	g.moving = true
	for g.users > 0 {
		g.wait()
	}
	if g.ctx.Err() == nil {
		g.mu.Unlock()
		moved, err = g.residency.evict(bytes)
		g.mu.Lock()
		g.away = true
	} else {
		err = abi.ErrUnavailable
	}
	g.moving = false
	g.change.Broadcast()
	if g.waiting == 0 {
		g.yieldUnused()
	}
	return moved, err
}

// maxRestores bounds how often in a row the host may give a lease without room
// for the memory; then the work that waits fails.
const maxRestores = 100

// restore is called with mu held, and gives it up meanwhile. The lease counts
// from when the memory is there.
func (g *leaseGate) restore() error {
	g.moving = true
	g.mu.Unlock()
	err := g.residency.restore()
	g.host.Restored(err)
	g.mu.Lock()
	g.moving = false
	g.change.Broadcast()
	if err == nil {
		g.away, g.failed = false, 0
		return nil
	}
	g.yieldUnused()
	if g.failed++; g.failed < maxRestores {
		return nil // the host makes more room and gives another lease
	}
	return err
}

// wait is called with mu held.
func (g *leaseGate) wait() {
	g.waiting++
	g.change.Wait()
	g.waiting--
}
