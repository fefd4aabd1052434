package sched

import (
	"maps"
	"slices"
	"time"
)

// Policy divides the time of one card among vGPUs. The caller reports all events
// to it; it does not read a clock.
type Policy interface {
	// SetClaims sets the vGPUs of the card. The policy keeps its state of those
	// that remain.
	SetClaims(claims map[VGPUID]Claim)
	// Next returns which of the waiting vGPUs is next (waiting is sorted, never
	// empty, and has only known vGPUs) and the length of its lease, which is
	// positive.
	Next(waiting []VGPUID) (VGPUID, time.Duration)
	// Charge records how long a vGPU held the card.
	Charge(v VGPUID, used time.Duration)
}

// Time is a point in time: the time since an epoch that the caller chooses.
type Time = time.Duration

// Event is a change of a session (Want, Drop, SwappedOut or SwappedIn) or the passing of time
// (Pass).
type Event interface{ event() }

// Want means that the session has work and waits for the card. If the session holds
// the card, Want also releases its current lease.
type Want struct {
	Session SessionID
	VGPU    VGPUID
}

// Drop means that the session releases its lease or leaves the queue. It has no
// effect on a session that has neither.
type Drop struct{ Session SessionID }

// SwappedOut means that the session's memory is not on the card. The session keeps its
// place in the queue, but is skipped until SwappedIn.
type SwappedOut struct{ Session SessionID }

// Pass means that time has passed. A holder whose lease has ended while no session
// waits gets a new one: it owes nothing for that time and is not overdue.
type Pass struct{}

// SwappedIn ends SwappedOut, even for a session that has ended.
type SwappedIn struct{ Session SessionID }

func (Want) event()       {}
func (Drop) event()       {}
func (SwappedOut) event() {}
func (SwappedIn) event()  {}
func (Pass) event()       {}

// Action is what the node must do: Grant, YieldRequest or Used.
type Action interface{ action() }

// Grant lets the session run for the duration For.
type Grant struct {
	Session SessionID
	VGPU    VGPUID
	For     time.Duration
}

// YieldRequest tells the holder that others wait; it should release the card as soon as it has
// no work.
type YieldRequest struct{ Session SessionID }

// Used means that the session has held the card for the duration For.
type Used struct {
	Session SessionID
	VGPU    VGPUID
	For     time.Duration
}

func (Grant) action()        {}
func (YieldRequest) action() {}
func (Used) action()         {}

// Leases is the state of one card: which session holds it and which ones wait.
type Leases struct {
	policy     Policy
	known      map[VGPUID]Claim
	holder     *holder
	waiting    map[VGPUID][]SessionID // FIFO; never an empty slice
	swappedOut map[SessionID]bool
}

type holder struct {
	session      SessionID
	vgpu         VGPUID
	since, until Time
	hurried      bool
}

// NewLeases returns the state of a card without a holder.
func NewLeases(p Policy) *Leases {
	return &Leases{policy: p, waiting: map[VGPUID][]SessionID{}, swappedOut: map[SessionID]bool{}}
}

// SetClaims sets the card's vGPUs and their claims. Sessions of a vGPU that no
// longer exists are removed from the queue; the holder remains until it drops.
func (l *Leases) SetClaims(claims map[VGPUID]Claim) {
	l.known = maps.Clone(claims)
	l.policy.SetClaims(l.known)
	for v := range l.waiting {
		if _, ok := claims[v]; !ok {
			delete(l.waiting, v)
		}
	}
}

// Step applies an event at a time and returns the actions to perform, in order.
// Times must not decrease.
func (l *Leases) Step(now Time, e Event) (actions []Action) {
	switch e := e.(type) {
	case Want:
		if _, ok := l.known[e.VGPU]; !ok {
			return nil
		}
		actions = l.release(now, e.Session)
		l.leaveQueue(e.Session)
		l.waiting[e.VGPU] = append(l.waiting[e.VGPU], e.Session)
	case Drop:
		actions = l.release(now, e.Session)
		l.leaveQueue(e.Session)
	case SwappedOut:
		l.swappedOut[e.Session] = true
	case SwappedIn:
		delete(l.swappedOut, e.Session)
	case Pass:
		actions = l.renew(now)
	}
	return append(actions, l.advance(now)...)
}

// Overdue returns the holder if its lease ended at least grace ago.
func (l *Leases) Overdue(now Time, grace time.Duration) (SessionID, bool) {
	if l.holder == nil || now < l.holder.until+grace {
		return "", false
	}
	return l.holder.session, true
}

// Skip removes d from the current lease. Call it for a time in which gpud did not
// run, so that the holder could not release the card: it is not charged for that time
// and does not become overdue by it.
func (l *Leases) Skip(d time.Duration) {
	if l.holder != nil {
		l.holder.since += d
		l.holder.until += d
	}
}

// Holding returns how long the session has held its current lease, or 0 if it has
// none.
func (l *Leases) Holding(now Time, s SessionID) time.Duration {
	if l.holder == nil || l.holder.session != s {
		return 0
	}
	return max(0, now-l.holder.since)
}

// Holder returns the session that holds the card.
func (l *Leases) Holder() (SessionID, bool) {
	if l.holder == nil {
		return "", false
	}
	return l.holder.session, true
}

// Busy reports whether a session holds the card.
func (l *Leases) Busy() bool { return l.holder != nil }

func (l *Leases) release(now Time, s SessionID) []Action {
	h := l.holder
	if h == nil || h.session != s {
		return nil
	}
	l.holder = nil
	used := max(0, now-h.since)
	if _, ok := l.known[h.vgpu]; ok {
		l.policy.Charge(h.vgpu, used)
	}
	return []Action{Used{Session: s, VGPU: h.vgpu, For: used}}
}

// renew charges a holder while no session waits, and begins its next lease. The
// holder is not notified: it may run until another session waits.
func (l *Leases) renew(now Time) []Action {
	h := l.holder
	if h == nil || now < h.until || len(l.waiting) > 0 {
		return nil
	}
	if _, ok := l.known[h.vgpu]; !ok {
		return nil
	}
	used := now - h.since
	l.policy.Charge(h.vgpu, used)
	_, length := l.policy.Next([]VGPUID{h.vgpu})
	h.since, h.until, h.hurried = now, now+length, false
	return []Action{Used{Session: h.session, VGPU: h.vgpu, For: used}}
}

// leaveQueue removes the session from the queue that it is in.
func (l *Leases) leaveQueue(s SessionID) {
	for v, q := range l.waiting {
		if i := slices.Index(q, s); i >= 0 {
			if q = slices.Delete(q, i, i+1); len(q) == 0 {
				delete(l.waiting, v)
			} else {
				l.waiting[v] = q
			}
		}
	}
}

// present returns the vGPUs that have a waiting session which is not away,
// sorted.
func (l *Leases) present() (all []VGPUID) {
	for v, q := range l.waiting {
		if slices.ContainsFunc(q, func(s SessionID) bool { return !l.swappedOut[s] }) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// advance grants a free card to the next session, or tells the holder that others
// wait.
func (l *Leases) advance(now Time) []Action {
	waiting := l.present()
	if len(waiting) == 0 {
		return nil
	}
	if h := l.holder; h != nil {
		if h.hurried {
			return nil
		}
		h.hurried = true
		return []Action{YieldRequest{Session: h.session}}
	}
	v, length := l.policy.Next(waiting)
	q := l.waiting[v]
	s := q[slices.IndexFunc(q, func(s SessionID) bool { return !l.swappedOut[s] })]
	l.leaveQueue(s)
	l.holder = &holder{session: s, vgpu: v, since: now, until: now + length}
	actions := []Action{Grant{Session: s, VGPU: v, For: length}}
	if len(l.present()) > 0 {
		l.holder.hurried = true
		actions = append(actions, YieldRequest{Session: s})
	}
	return actions
}
