package gpud

import (
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// sessionState is the state of a session; the package comment describes the
// transitions.
type sessionState string

const (
	live     sessionState = "live"
	detached sessionState = "detached"
	ended    sessionState = "ended"
)

// session is the session of one worker, with its part of the vGPU's ledger and
// meter.
type session struct {
	id       string
	vgpu     *vgpu
	state    sessionState
	changed  sched.Time // when the state last changed
	pid      uint32     // in the guest
	name     string
	held     uint64 // bytes of VRAM
	peak     uint64 // the highest usage that gpud has observed
	gauge    gauge
	settled  sched.Time // until when held has been counted
	counter  counter
	link     *link // nil unless live
	host     process
	acquire  uint64
	presence presence
	account  account
	warned   sched.Time // when false totals were last logged
}

// key returns the session's name for gpu/sched: sessions of two vGPUs never
// collide, whatever IDs their workers choose.
func (s *session) key() sched.SessionID { return sched.SessionID(string(s.vgpu.id) + "/" + s.id) }

func (c *core) session(v sched.VGPUID, key sched.SessionID) *session {
	if v := c.vgpus[v]; v != nil {
		return v.sessions[strings.TrimPrefix(string(key), string(v.id)+"/")]
	}
	return nil
}

func (c *core) sessionByKey(key sched.SessionID) *session {
	v, _, _ := strings.Cut(string(key), "/")
	return c.session(sched.VGPUID(v), key)
}

// settle counts the VRAM that the session has held since it was last counted.
func (s *session) settle(at sched.Time) {
	if s.state == live {
		s.vgpu.usage.VRAM.add(s.held, at-s.settled)
		s.vgpu.usage.Swapped.add(min(s.presence.swapped, s.held), at-s.settled)
		s.settled = at
	}
}

// settle counts the VRAM of all sessions up to now.
func (c *core) settle(at sched.Time) {
	for _, v := range c.vgpus {
		if v.settleShares(at) {
			c.save.dirty = true
		}
		for _, s := range v.sessions {
			if s.state == live && s.held > 0 {
				s.settle(at)
				c.save.dirty = true
			}
		}
	}
}

// register begins a session, or continues one that gpud knew before.
func (c *core) register(l *link, r wire.Register, at sched.Time) (*session, *wire.Error) {
	if r.Version != wire.Version {
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("worker has protocol version %d, want %d", r.Version, wire.Version)}
	}
	v := c.vgpus[sched.VGPUID(r.VGPU)]
	if v == nil || v.deleted {
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("vGPU %q does not exist", r.VGPU)}
	}
	if !v.knows(r.Token) {
		return nil, &wire.Error{Code: wire.CodeForbidden, Message: fmt.Sprintf("wrong token for vGPU %s", v.id)}
	}
	if c.cards[v.on()] == nil {
		return nil, &wire.Error{Code: wire.CodeUnavailable, Message: fmt.Sprintf("vGPU %s: %v", v.id, errNoCard)}
	}
	s := v.sessions[r.Session]
	if s == nil {
		if v.active() >= maxSessionsPerVGPU {
			return nil, &wire.Error{Code: wire.CodeBusy, Message: fmt.Sprintf("vGPU %s already has %d processes, the maximum", v.id, maxSessionsPerVGPU)}
		}
		s = &session{id: r.Session, vgpu: v, counter: counter{Base: r.Totals, Since: at}, state: ended}
	} else { // it may have run since its last lease here, or since its connection was closed
		last := s.changed
		if s.state == live { // it reconnected before its old connection was seen to be closed
			last = max(last, s.presence.used)
			s.link.close() // if that is a different process, it has to end
			c.end(s, at)
		}
		if s.state == ended {
			s.counter.Leased += at - last
		}
	}
	known := uint64(0) // bytes that it is known to hold
	if s.state == detached {
		known = s.held
	}
	pieces, shared := v.unknown(r.Shares)
	if len(v.shares)+pieces > maxSharesPerVGPU {
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("worker reports %d pieces of shared memory, which exceed the limits of vGPU %s", pieces, v.id)}
	}
	if others := v.held() - known; r.Held+shared > max(known, v.spec.VRAMBytes-min(others, v.spec.VRAMBytes)) {
		code := wire.CodeInvalid
		if v.awaits(s) { // they may hold less by now: it asks again
			code = wire.CodeUnavailable
		}
		return nil, &wire.Error{Code: code, Message: fmt.Sprintf("worker reports %d bytes of memory, more than vGPU %s can have allocated to it", r.Held, v.id)}
	}
	if s.state == detached {
		// It held its memory, and may have run, since gpud last counted.
		v.usage.VRAM.add(s.held, at-s.settled)
		v.usage.Swapped.add(min(s.presence.swapped, s.held), at-s.settled)
		s.counter.Leased += at - s.settled
	}
	s.state, s.changed, s.settled, s.link, s.acquire = live, at, at, l, 0
	s.pid, s.name, s.held, s.host = r.PID, r.Name, r.Held, l.host
	v.sessions[s.id] = s
	c.restoreShares(s, r.Shares, at)
	s.peak = max(s.peak, s.shows())
	card := c.cards[v.on()]
	c.gone(card, s, at)
	s.presence = presence{evictable: r.Evictable, swapped: r.Swapped, used: at}
	s.account.greeting = true
	if r.Out {
		c.leave(card, s, at)
	}
	v.gauge.note(at, v.usage.Work.GPUNanos)
	s.gauge.note(at, s.counter.Counted.GPUNanos)
	c.totals(s, r.Totals, at)
	c.save.dirty = true
	c.cfg.Log.Info("worker registered", "vgpu", v.id, "session", s.id, "pid", s.pid, "name", s.name, "held", s.held)
	return s, nil
}

func (v *vgpu) active() (n int) {
	for _, s := range v.sessions {
		if s.state != ended {
			n++
		}
	}
	return n
}

// release gives back bytes, at most what the session holds.
func (c *core) release(s *session, bytes uint64, at sched.Time) {
	s.settle(at)
	if bytes > s.held {
		c.cfg.Log.Warn("worker released more than it held", "vgpu", s.vgpu.id, "session", s.id, "bytes", bytes, "held", s.held)
		bytes = s.held
	}
	s.held -= bytes
	s.presence.swapped -= min(bytes, s.presence.swapped) // only the worker knows where the released memory was
	c.save.dirty = true
	c.applyResidency(c.cards[s.vgpu.on()], at)
}

// totals meters what the worker reports.
func (c *core) totals(s *session, t worker.Totals, at sched.Time) {
	card := c.cards[s.vgpu.on()]
	var holding time.Duration
	if card != nil {
		holding = card.leases.Holding(at, s.key())
	}
	added, clamped := s.counter.count(t, holding, at)
	s.vgpu.usage.work(added, s.vgpu.tier())
	s.vgpu.gauge.note(at, s.vgpu.usage.Work.GPUNanos)
	s.gauge.note(at, s.counter.Counted.GPUNanos)
	if added != (worker.Totals{}) {
		c.save.dirty = true
	}
	if clamped && at-s.warned > time.Minute {
		s.warned = at
		c.cfg.Log.Warn("worker reported implausible totals, not all are counted", "vgpu", s.vgpu.id, "session", s.id,
			"reported", t, "counted", s.counter.Counted, "leased", s.counter.Leased+holding)
	}
}

// hungUp handles a connection that has ended without a bye. A worker that closed it
// because gpud did not run reconnects at once: until then the session keeps what it
// holds, as after a restart.
func (c *core) hungUp(s *session, l *link, at sched.Time) {
	if c.woke == 0 || at-c.woke > c.cfg.DetachGrace || l.left || l.pidfd >= 0 && exited(l.pidfd) {
		c.end(s, at)
		return
	}
	s.settle(at)
	c.step(s.vgpu.on(), at, sched.Drop{Session: s.key()})
	swapped := s.presence.swapped
	if card := c.cards[s.vgpu.on()]; card != nil {
		c.gone(card, s, at)
	}
	s.presence.swapped = swapped
	s.state, s.changed, s.link, s.acquire = detached, at, nil, 0
	c.save.dirty = true
}

// end frees what the session has. Its counter is kept for a while.
func (c *core) end(s *session, at sched.Time) {
	if s.state == ended {
		return
	}
	s.settle(at)
	c.partAll(s, at)
	c.step(s.vgpu.on(), at, sched.Drop{Session: s.key()})
	s.state, s.changed, s.held, s.link, s.acquire = ended, at, 0, nil, 0
	if card := c.cards[s.vgpu.on()]; card != nil {
		c.gone(card, s, at)
		c.applyResidency(card, at)
	}
	c.save.dirty = true
	c.kick()
	c.cfg.Log.Info("worker session ended", "vgpu", s.vgpu.id, "session", s.id, "pid", s.pid, "gpuNanos", s.counter.Counted.GPUNanos)
}

// expire ends detached sessions whose workers have ended or did not reconnect in
// time, and deletes old ended sessions.
func (c *core) expire(v *vgpu, at sched.Time) {
	for id, s := range v.sessions {
		switch {
		case s.state == detached && s.host.gone():
			c.end(s, at)
		case s.state == detached && at-max(s.changed, c.started+c.missed) > c.cfg.DetachGrace:
			if killed, err := s.host.kill(); killed || err != nil {
				c.cfg.Log.Warn("killed worker that did not reconnect", "vgpu", v.id, "session", s.id, "pid", s.host.PID, "error", err)
			}
			c.end(s, at)
		case s.state == ended && (at-s.changed > keepEnded || len(v.sessions)-v.active() > maxEndedPerVGPU && v.oldestEnded() == s):
			delete(v.sessions, id)
			c.save.dirty = true
		}
	}
	if v.deleted && at-v.deletedAt > keepDeleted {
		delete(c.vgpus, v.id)
		c.save.dirty = true
	}
}

func (v *vgpu) oldestEnded() (oldest *session) {
	for _, s := range v.sessions {
		if s.state == ended && (oldest == nil || s.changed < oldest.changed) {
			oldest = s
		}
	}
	return oldest
}

// overdue ends a session that has held the card too long after the end of its
// lease.
func (c *core) overdue(card *card, key sched.SessionID) {
	at := now()
	if s := c.sessionByKey(key); s != nil && s.state == live {
		c.cfg.Log.Warn("kernel exceeded its time slice, killing worker", "gpu", card.ID, "vgpu", s.vgpu.id, "session", s.id, "limit", c.cfg.Overrun)
		c.endSession(s, at, fmt.Sprintf("a kernel ran more than %s past its time slice", c.cfg.Overrun))
		return
	}
	c.step(card.ID, at, sched.Drop{Session: key}) // its worker no longer reacts
}

// endSession ends a session from gpud's side: it tells the worker, and kills the
// worker's process when it does not exit in time.
func (c *core) endSession(s *session, at sched.Time, why string) {
	if l := s.link; l != nil {
		l.send(wire.FromNode{Op: wire.OpLost, Code: wire.CodeLost, Message: why})
		l.left = true
		c.scheduleKill(l, at+c.cfg.KillAfter)
	}
	c.end(s, at)
}
