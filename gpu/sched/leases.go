package sched

import (
	"maps"
	"slices"
	"time"
)

// Policy divides one card's time among vGPUs. It is told what happens and
// never looks at a clock.
type Policy interface {
	// SetClaims names the vGPUs of the card. What it knows of those that stay,
	// it keeps.
	SetClaims(claims map[VGPUID]Claim)
	// Next chooses one of those that wait (sorted, never empty, all of them
	// known) and the length of its lease, which is positive.
	Next(waiting []VGPUID) (VGPUID, time.Duration)
	// Charge is told how long a vGPU really held the card.
	Charge(v VGPUID, used time.Duration)
}

// Time is a moment: the time since an epoch that the caller chose.
type Time = time.Duration

// Event is something that happened to a session, Want, Drop, Away or Back, or Pass.
type Event interface{ event() }

// Want means that the session has work and waits for the card. From the holder it also
// gives back the present lease.
type Want struct {
	Session SessionID
	VGPU    VGPUID
}

// Drop means that the session gives back its lease or place in the queue. Dropping
// what one does not have changes nothing.
type Drop struct{ Session SessionID }

// Away means that the session's memory is not on the card: it keeps its place in
// the queue, and is passed over, until Back.
type Away struct{ Session SessionID }

// Pass means that time has passed. A holder whose lease is over while nobody waits has
// a new one: it owes nothing for that time, and is not overdue.
type Pass struct{}

// Back ends Away, also of a session that has ended.
type Back struct{ Session SessionID }

func (Want) event() {}
func (Drop) event() {}
func (Away) event() {}
func (Back) event() {}
func (Pass) event() {}

// Action is what the node must do: Grant, Hurry or Used.
type Action interface{ action() }

// Grant lets the session run, for this long.
type Grant struct {
	Session SessionID
	VGPU    VGPUID
	For     time.Duration
}

// Hurry tells the holder that others wait; it should give back as soon as it has no work.
type Hurry struct{ Session SessionID }

// Used means that the session held the card for this long.
type Used struct {
	Session SessionID
	VGPU    VGPUID
	For     time.Duration
}

func (Grant) action() {}
func (Hurry) action() {}
func (Used) action()  {}

// Leases is the state of one card: who holds it and who waits.
type Leases struct {
	policy  Policy
	known   map[VGPUID]Claim
	holder  *holder
	waiting map[VGPUID][]SessionID // FIFO; never an empty slice
	away    map[SessionID]bool
}

type holder struct {
	session      SessionID
	vgpu         VGPUID
	since, until Time
	hurried      bool
}

// NewLeases is a card that nobody holds.
func NewLeases(p Policy) *Leases {
	return &Leases{policy: p, waiting: map[VGPUID][]SessionID{}, away: map[SessionID]bool{}}
}

// SetClaims names the card's vGPUs and what they may have of it. Sessions of a
// vGPU that is no longer there lose their place in the queue; the holder
// remains until it drops.
func (l *Leases) SetClaims(claims map[VGPUID]Claim) {
	l.known = maps.Clone(claims)
	l.policy.SetClaims(l.known)
	for v := range l.waiting {
		if _, ok := claims[v]; !ok {
			delete(l.waiting, v)
		}
	}
}

// Step takes an event at a time and returns what to do, in order. Times must
// not go back.
func (l *Leases) Step(now Time, e Event) (actions []Action) {
	switch e := e.(type) {
	case Want:
		if _, ok := l.known[e.VGPU]; !ok {
			return nil
		}
		actions = l.giveBack(now, e.Session)
		l.leaveQueue(e.Session)
		l.waiting[e.VGPU] = append(l.waiting[e.VGPU], e.Session)
	case Drop:
		actions = l.giveBack(now, e.Session)
		l.leaveQueue(e.Session)
	case Away:
		l.away[e.Session] = true
	case Back:
		delete(l.away, e.Session)
	case Pass:
		actions = l.renew(now)
	}
	return append(actions, l.advance(now)...)
}

// Overdue is the holder when its lease ended more than grace ago.
func (l *Leases) Overdue(now Time, grace time.Duration) (SessionID, bool) {
	if l.holder == nil || now < l.holder.until+grace {
		return "", false
	}
	return l.holder.session, true
}

// Skip takes d out of the present lease: a time in which its caller did not run,
// so that the holder could not give back. Nobody is charged for it, or overdue by it.
func (l *Leases) Skip(d time.Duration) {
	if l.holder != nil {
		l.holder.since += d
		l.holder.until += d
	}
}

// Holding is how long the session has held its present lease, 0 if it has none.
func (l *Leases) Holding(now Time, s SessionID) time.Duration {
	if l.holder == nil || l.holder.session != s {
		return 0
	}
	return max(0, now-l.holder.since)
}

// Holder is the session that has the card.
func (l *Leases) Holder() (SessionID, bool) {
	if l.holder == nil {
		return "", false
	}
	return l.holder.session, true
}

// Busy reports whether somebody holds the card.
func (l *Leases) Busy() bool { return l.holder != nil }

func (l *Leases) giveBack(now Time, s SessionID) []Action {
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

// renew charges a holder for whom nobody waits, and begins its next lease. It is not
// told: it runs on until somebody waits.
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

// leaveQueue takes the session out of whichever queue it is in.
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

// present are the vGPUs with a session that waits and is not away, sorted.
func (l *Leases) present() (all []VGPUID) {
	for v, q := range l.waiting {
		if slices.ContainsFunc(q, func(s SessionID) bool { return !l.away[s] }) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// advance gives a free card to the next, or tells the holder that others wait.
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
		return []Action{Hurry{Session: h.session}}
	}
	v, length := l.policy.Next(waiting)
	q := l.waiting[v]
	s := q[slices.IndexFunc(q, func(s SessionID) bool { return !l.away[s] })]
	l.leaveQueue(s)
	l.holder = &holder{session: s, vgpu: v, since: now, until: now + length}
	actions := []Action{Grant{Session: s, VGPU: v, For: length}}
	if len(l.present()) > 0 {
		l.holder.hurried = true
		actions = append(actions, Hurry{Session: s})
	}
	return actions
}
