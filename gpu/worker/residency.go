package worker

import (
	"errors"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// residency records where the memory of the session's contexts is: all of it on
// the device, or some of it in host memory. The gate makes sure that no work runs
// while it is being copied or is off the device.
type residency struct {
	mu       sync.Mutex // guards the following; not held while memory is copied
	away     bool
	contexts map[Context]bool // true: evicted
}

// add brings a new context into the same state as the others; it has no memory
// yet, so this is quick.
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

// next returns a context that is evicted, or one that is not.
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

// evict evicts at least bytes, or all, from the device. An error means that some
// contexts could not be evicted; moved is what was.
func (r *residency) evict(bytes uint64) (moved uint64, err error) {
	r.mu.Lock()
	r.away = true // new contexts begin evicted from here on
	r.mu.Unlock()
	asked := map[Context]bool{}
	for _, evicted := range []bool{false, true} { // contexts that are evicted already may have more
		for c, ok := r.next(evicted, asked); ok; c, ok = r.next(evicted, asked) {
			asked[c] = true
			n, failed := c.Evict(bytes - min(moved, bytes))
			if moved += n; failed == nil {
				r.mark(c, true)
			} else if !errors.Is(failed, abi.ErrInvalidContext) { // otherwise it is being destroyed
				err = errors.Join(err, failed)
			}
		}
	}
	return moved, err
}

const everything = 1 << 62 // bytes

// restore restores all memory, or leaves all of it off the device.
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
			continue // a new context was added
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

// settled reports whether all contexts are in the same state; it is called with
// mu held.
func (r *residency) settled() bool {
	for _, evicted := range r.contexts {
		if evicted {
			return false
		}
	}
	return true
}

// evict handles the host's request: work waits at the gate in the meantime, and
// from then on until a lease has restored the memory.
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

// maxRestores bounds how often in a row the host may grant a lease without room
// for the memory; then the waiting work fails.
const maxRestores = 100

// restore restores the memory at the beginning of a lease. It is called with mu
// held, and releases it in the meantime. The lease counts from when the memory is
// on the device.
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
		return nil // the host makes more room and grants another lease
	}
	return err
}

// wait waits for a change of the gate. It is called with mu held.
func (g *leaseGate) wait() {
	g.waiting++
	g.change.Wait()
	g.waiting--
}
