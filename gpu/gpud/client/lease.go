package client

import (
	"context"
	"errors"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// leaseState is what the host knows of its lease. A lease that is not in use is
// kept for a moment: a guest that synchronizes after every launch acquires it
// again at once, and then needs no round trip.
type leaseState struct {
	has     bool // granted by gpud and not released yet
	until   time.Time
	inUse   bool      // between Acquire and Yield
	hurried bool      // others wait
	offline bool      // taken without gpud
	since   time.Time // when inUse was set
	due     time.Time // when it is released if it stays unused
	timer   *time.Timer
	set     time.Time // when timer fires, or 0; a use does not always reset it
	pace    pace
}

const (
	// linger is how long an unused lease is kept when no one waits, lingerHurried
	// when others wait: then keeping it costs others time, and is only worth the
	// time that the guest needs for a quick reaction.
	linger        = 2 * time.Millisecond
	lingerHurried = 100 * time.Microsecond
	// tooShort is the remaining time of a lease that is not worth starting work
	// for.
	tooShort = 50 * time.Microsecond
)

// wasOffline drops a lease from before the connection: the new gpud grants its
// own.
func (l *leaseState) wasOffline() {
	l.has, l.offline, l.hurried = false, false, false
}

// begin starts a use of the lease.
func (l *leaseState) begin(now time.Time) { l.inUse, l.since = true, now }

// end ends the use, if there is one.
func (l *leaseState) end(now time.Time) {
	switch {
	case !l.inUse:
	case l.offline:
		l.pace.useOffline(now.Sub(l.since))
	default:
		l.pace.use(now.Sub(l.since))
	}
	l.inUse, l.offline = false, false
}

// Acquire implements worker.Host. The next Acquire releases an expired lease that
// was not yielded.
func (h *Host) Acquire(ctx context.Context) (worker.Lease, error) {
	for {
		h.mu.Lock()
		l := &h.lease
		asked := time.Now()
		l.end(asked)
		if l.has && l.until.Sub(asked) > tooShort {
			l.begin(asked)
			lease := worker.Lease{Until: l.until}
			h.mu.Unlock()
			return lease, nil
		}
		s, t := h.stream, h.totals
		l.has, l.hurried = false, false // acquiring again releases it
		h.mu.Unlock()
		if h.isLost() {
			return worker.Lease{}, h.errLost()
		}
		if (s == nil || s.closed()) && h.isOut() { // only gpud knows whether there is room
			if _, err := h.connected(ctx); err != nil {
				return worker.Lease{}, err
			}
			continue
		}
		if s == nil || s.closed() {
			if lease, ok, err := h.acquireOffline(ctx); ok || err != nil {
				return lease, err
			}
			continue
		}
		reply, err := s.ask(ctx, wire.ToNode{Op: wire.OpAcquire, Totals: &t})
		switch {
		case errors.Is(err, errAway):
			continue
		case err != nil:
			h.mu.Lock()
			h.releaseLease(s) // nobody waits for this lease any more
			h.mu.Unlock()
			return worker.Lease{}, err
		}
		h.mu.Lock()
		if h.stream != s {
			h.mu.Unlock()
			continue // granted over a connection that has ended
		}
		length := time.Duration(reply.GrantNanos)
		now := time.Now()
		l.pace.wait(now.Sub(asked))
		l.has, l.until = true, now.Add(length)
		l.begin(now)
		lease := worker.Lease{Until: l.until}
		h.mu.Unlock()
		return lease, nil
	}
}

// acquireOffline takes a lease without gpud, as often as the session had one with
// it (pace). ok is false when gpud is back before the lease is due.
func (h *Host) acquireOffline(ctx context.Context) (worker.Lease, bool, error) {
	h.mu.Lock()
	due := h.lease.pace.due()
	h.mu.Unlock()
	if due > 0 {
		wait, cancel := context.WithTimeout(ctx, due)
		_, err := h.connected(wait)
		cancel()
		if err == nil {
			return worker.Lease{}, false, nil
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return worker.Lease{}, false, err
		}
	}
	if ctx.Err() != nil {
		return worker.Lease{}, false, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return worker.Lease{}, false, abi.ErrUnavailable
	}
	now := time.Now()
	h.lease.offline, h.lease.until = true, now.Add(offlineLease)
	h.lease.begin(now)
	return worker.Lease{Until: h.lease.until}, true, nil
}

// Yield implements worker.Host.
func (h *Host) Yield() {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, now := &h.lease, time.Now()
	l.end(now)
	if !l.has {
		return
	}
	keep := linger
	if l.hurried {
		keep = lingerHurried
	}
	l.due = now.Add(min(keep, max(0, l.until.Sub(now))))
	if l.set.IsZero() || l.due.Before(l.set) {
		h.setTimer(l.due, now)
	}
}

// setTimer sets the timer; it is called with h.mu held.
func (h *Host) setTimer(due, now time.Time) {
	l := &h.lease
	l.set = due
	if l.timer == nil {
		l.timer = time.AfterFunc(due.Sub(now), h.lingered)
		return
	}
	l.timer.Reset(due.Sub(now))
}

// lingered releases the lease if it has been unused for long enough.
func (h *Host) lingered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, now := &h.lease, time.Now()
	l.set = time.Time{}
	switch {
	case !l.has || l.inUse:
	case now.Before(l.due):
		h.setTimer(l.due, now)
	default:
		h.releaseLease(h.stream)
	}
}

// Contended implements worker.Host. Without gpud it is not known.
func (h *Host) Contended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease.hurried || !h.lease.has || h.lease.offline
}

// yieldRequested records that others wait. An unused lease is released soon, one in use at
// its Yield.
func (h *Host) yieldRequested() {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.lease
	l.hurried = true
	if l.has && !l.inUse {
		h.releaseLease(h.stream)
	}
}

// releaseLease releases the lease; it is called with h.mu held.
func (h *Host) releaseLease(s *stream) {
	h.lease.has, h.lease.hurried = false, false
	t := h.totals
	if s != nil {
		s.send(wire.ToNode{Op: wire.OpYield, Totals: &t})
	}
}
