package gpud

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// account is what gpud knows of the memory that a session holds and does not use.
// All of it counts as held, so the ledger is right whatever a worker reports.
type account struct {
	kept     bool   // the worker keeps an account and serves recall
	greeting bool   // its registration is not answered yet: nothing may be sent
	stale    bool   // what it holds was last stored by an earlier gpud that was killed
	asked    uint64 // recalls sent
	answered uint64 // recalls answered
	again    bool   // another recall must follow the answer to this one
	late     bool   // it has let a recall time out
	waiting  int    // reserves and queries of its own that wait for a recall
}

// recall is an operation that waits until workers have given back the memory that
// they do not use, or until a deadline.
type recall struct {
	card  *card
	waits map[*session]uint64 // the number of the recall that each must answer; 0: its worker must reconnect
	until sched.Time
	then  func()
}

const (
	// recallWithin is how long a worker may take to answer. After that, others
	// continue without it, and do not wait for it again until it has answered.
	recallWithin = 2 * time.Second
	// maxWaiting bounds the waiting operations of one session; it is the same
	// limit as the worker's.
	maxWaiting = 4096
	// maxSpare bounds what a session gets beyond what it asks for, in bytes.
	maxSpare = 64 << 20
	// spareShare is the number of bytes that must stay free for each byte that
	// may be unused.
	spareShare = 8
)

// ask sends a recall, unless one is unanswered, and returns the number of the
// recall whose answer gives the current state.
func (s *session) ask() uint64 {
	a := &s.account
	if a.asked != a.answered { // the answer may have been sent already
		a.again = true
		return a.asked + 1
	}
	a.asked++
	s.link.send(wire.FromNode{Op: wire.OpRecall, ID: a.asked})
	return a.asked
}

// recall asks sessions for the memory that they do not use. It calls then, in the
// core's goroutine, when all have answered or have ended.
func (c *core) recall(card *card, from []*session, at sched.Time, then func()) {
	r := &recall{card: card, waits: map[*session]uint64{}, until: at + recallWithin, then: then}
	for _, s := range from {
		if s.comesBack() {
			r.waits[s] = 0
			r.until = at + c.cfg.DetachGrace
			continue
		}
		r.waits[s] = s.ask()
	}
	c.recalls = append(c.recalls, r)
}

// recalled handles a worker's answer: it has given back that many bytes.
func (c *core) recalled(s *session, id, bytes uint64, at sched.Time) {
	a := &s.account
	if id == a.asked && a.answered != a.asked {
		a.answered, a.late = id, false
		if s.vgpu.sole == s {
			s.vgpu.sole = nil
		}
		for _, r := range c.recalls {
			if n, waits := r.waits[s]; waits && n <= id {
				delete(r.waits, s)
			}
		}
		if a.again {
			a.again = false
			s.ask()
		}
	}
	if bytes > 0 {
		c.release(s, bytes, at)
	}
}

// noRecall ends all waiting for a session: it will not answer as it was.
func (c *core) noRecall(s *session) {
	for _, r := range c.recalls {
		delete(r.waits, s)
	}
	if s.vgpu.sole == s {
		s.vgpu.sole = nil
	}
	s.account = account{}
}

// resume runs the operations that have waited long enough. It is called between
// events.
func (c *core) resume(at sched.Time) {
	var due []*recall
	c.recalls = slices.DeleteFunc(c.recalls, func(r *recall) bool {
		over := len(r.waits) == 0 || at >= r.until
		if over {
			due = append(due, r)
		}
		return over
	})
	for _, r := range due {
		for s := range r.waits {
			s.account.late = true
			c.cfg.Log.Warn("worker did not report its unused memory in time", "vgpu", s.vgpu.id, "session", s.id)
		}
		r.then()
	}
}

// recalling reports whether an operation on the card waits for memory that others
// do not use: until it is done, no session gets more than it needs.
func (c *core) recalling(card *card) bool {
	return slices.ContainsFunc(c.recalls, func(r *recall) bool { return r.card == card })
}

// greeted records that the session's registration is being answered.
func (c *core) greeted(s *session, account bool) {
	s.account.greeting, s.account.kept = false, account
	for _, r := range c.recalls {
		if n, waits := r.waits[s]; waits && n == 0 {
			delete(r.waits, s)
		}
	}
}

// comesBack reports whether a session may hold less than gpud knows until its
// worker reconnects: gpud does not learn what the worker frees in the meantime.
func (s *session) comesBack() bool {
	return s.state == detached && (s.held > 0 || s.account.stale || s.sharesAny()) || s.state == live && s.account.greeting
}

// awaits reports whether a worker of the vGPU other than but has yet to
// reconnect.
func (v *vgpu) awaits(but *session) bool {
	for _, s := range v.sessions {
		if s != but && s.state == detached {
			return true
		}
	}
	return false
}

// mayKeep reports whether a session may hold memory that it does not use and can be
// asked to give back.
func (s *session) mayKeep() bool {
	return s.state == live && s.account.kept && !s.account.late && !s.account.greeting
}

// keepers returns the sessions to recall memory from before g is refused or evicts
// another session. If another session was told that it is alone in the vGPU, that
// is revoked first.
func (c *core) keepers(card *card, s *session, g grow) (all []*session) {
	v := s.vgpu
	if v.sole != nil && v.sole != s && v.sole.mayKeep() {
		all = append(all, v.sole)
	}
	add := func(o *session) {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	used, limit := v.held(), v.spec.VRAMBytes
	over := used > limit || g.bytes > limit-used
	onCard := c.sharedOn(card.ID)
	held := onCard
	for _, o := range c.sessionsOn(card.ID) {
		onCard += o.resident()
		held += o.held
		if o.vgpu != v || o == s && !o.mayKeep() {
			continue
		}
		if o.account.stale || over && (o.comesBack() || o.held > 0 && o.mayKeep()) {
			add(o)
		}
	}
	full := g.bytes > card.VRAM-min(onCard, card.VRAM) && !s.presence.out
	if all := card.VRAM + card.SwapBytes; full || g.bytes > all-min(held, all) {
		for _, o := range c.sessionsOn(card.ID) {
			if o.mayKeep() && o.held > 0 { // including memory that it has freed and not given back yet
				add(o)
			}
		}
	}
	return all
}

// await postpones what a session wants until others have answered a recall.
func (c *core) await(card *card, s *session, from []*session, at sched.Time, then func(at sched.Time)) {
	l := s.link
	s.account.waiting++
	c.recall(card, from, at, func() {
		if s.link != l || l == nil { // it has ended, or has reconnected
			return
		}
		s.account.waiting--
		then(now())
	})
}

// spareFor returns how much more than it asks for a session gets, given the
// memory that is then free in its vGPU and on the card: so little that it does
// not restrict others.
func spareFor(want, vgpuFree, cardFree uint64) uint64 {
	return min(want, maxSpare, vgpuFree/spareShare, cardFree/spareShare) &^ (wire.MemoryUnit - 1)
}

// spare returns how much more than it asks for s gets with g, which fits.
func (c *core) spare(card *card, s *session, g grow) uint64 {
	a := &s.account
	if g.spare == 0 || !a.kept || a.asked != a.answered || s.presence.out || card.contended() || c.recalling(card) {
		return 0
	}
	onCard := g.bytes + c.sharedOn(card.ID)
	for _, o := range c.sessionsOn(card.ID) {
		onCard += o.resident()
	}
	used := s.vgpu.held() + g.bytes
	return spareFor(g.spare, s.vgpu.spec.VRAMBytes-min(used, s.vgpu.spec.VRAMBytes), card.VRAM-min(onCard, card.VRAM))
}

// alone reports whether no other session of the vGPU has memory or waits for some,
// and records that s was told so. If another session was told so, it has to be
// recalled first; that happens with the next reserve of s.
func (c *core) alone(s *session) bool {
	v := s.vgpu
	if !s.account.kept || s.account.asked != s.account.answered || v.sole != nil && v.sole != s {
		return false
	}
	if len(v.shares) > 0 { // others may have opened what s has given up
		return false
	}
	for _, o := range v.sessions {
		if o != s && o.state != ended && (o.held > 0 || o.account.waiting > 0 || len(o.presence.grows) > 0) {
			return false
		}
	}
	v.sole = s
	return true
}

// exact calls then when the memory that the sessions of the vGPU hold is the
// memory that they use.
func (c *core) exact(s *session, but *session, at sched.Time, then func(at sched.Time)) {
	card := c.cards[s.vgpu.on()]
	var from []*session
	for _, o := range s.vgpu.sessions {
		if o != but && (o.comesBack() || o.held > 0 && o.mayKeep()) {
			from = append(from, o)
		}
	}
	if card == nil || len(from) == 0 || s.account.waiting >= maxWaiting {
		then(at)
		return
	}
	away, until := slices.ContainsFunc(from, (*session).comesBack), at+c.cfg.DetachGrace
	c.await(card, s, from, at, func(at sched.Time) {
		if away && at < until { // they have reconnected: now they can be asked
			c.exact(s, but, at, then)
			return
		}
		then(at)
	})
}
