package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// RoundRobin is weighted round robin with credit: every round gives each vGPU
// that waits its part of Period, a lease spends it, and what was overrun is a
// debt that later rounds pay. It is work-conserving: rounds pass at once when
// everybody who waits has no credit, so no time is kept for those who do not
// ask.
//
// A guaranteed share is the weight. Those without one (best effort) divide
// what is not guaranteed by their tiers' weights, at least bestEffortFloor
// together: a card whose shares are all sold gives its tenants 100/101 of what
// they were promised and starves nobody.
//
// A better tier's turn comes first. That changes how long one waits, and not
// how much one gets: a premium vGPU that has nothing to pay back goes next even
// when the round has nothing left for it, and later rounds pay for that.
type RoundRobin struct {
	// Period is the length of a round when all of it is used.
	Period time.Duration
	// Shortest and Longest bound one lease.
	Shortest, Longest time.Duration

	entries map[VGPUID]*entry
	order   []VGPUID // sorted: the order of turns
	turn    VGPUID   // whose turn it is
}

type entry struct {
	tier   Tier
	weight int64 // thousandths of a per cent
	credit time.Duration
}

// bestEffortFloor is in per cent.
const bestEffortFloor = 1

// NewRoundRobin has leases from 1 to 10 ms: long enough that handing over
// (some tens of microseconds) costs little, short enough that a tenant waits
// for no more than a frame.
func NewRoundRobin() *RoundRobin {
	return &RoundRobin{Period: 20 * time.Millisecond, Shortest: time.Millisecond, Longest: 10 * time.Millisecond, entries: map[VGPUID]*entry{}}
}

// SetClaims implements Policy.
func (r *RoundRobin) SetClaims(claims map[VGPUID]Claim) {
	var sold int
	var bestEffort int64 // sum of the tiers' weights
	for _, c := range claims {
		if c.SharePercent > 0 {
			sold += c.SharePercent
		} else {
			bestEffort += c.Tier.weight()
		}
	}
	old := r.entries
	r.entries = make(map[VGPUID]*entry, len(claims))
	for v, c := range claims {
		e := old[v]
		if e == nil {
			e = &entry{}
		}
		e.tier, e.weight = cmp.Or(c.Tier, Standard), int64(c.SharePercent)*1000
		if c.SharePercent <= 0 {
			e.weight = max(1, int64(max(FullShare-sold, bestEffortFloor))*1000*c.Tier.weight()/bestEffort)
		}
		r.entries[v] = e
	}
	r.order = slices.Sorted(maps.Keys(r.entries))
}

// Next implements Policy.
func (r *RoundRobin) Next(waiting []VGPUID) (VGPUID, time.Duration) {
	v, ok := r.withCredit(waiting, true)
	if !ok {
		r.pay(waiting)
		v, _ = r.withCredit(waiting, false)
	}
	r.turn = v
	return v, min(max(r.entries[v].credit, r.Shortest), r.Longest)
}

// Charge implements Policy.
func (r *RoundRobin) Charge(v VGPUID, used time.Duration) { r.entries[v].credit -= used }

// withCredit is the first of those waiting that has credit, of the best tier,
// from whose turn it is (or from the one after) around.
func (r *RoundRobin) withCredit(waiting []VGPUID, fromTurn bool) (VGPUID, bool) {
	start, found := slices.BinarySearch(r.order, r.turn)
	if found && !fromTurn {
		start++
	}
	for _, tier := range Tiers {
		for i := range r.order {
			v := r.order[(start+i)%len(r.order)]
			e := r.entries[v]
			if e.tier != tier || e.credit < 0 || e.credit == 0 && tier != Premium {
				continue
			}
			if _, waits := slices.BinarySearch(waiting, v); waits {
				return v, true
			}
		}
	}
	return "", false
}

// pay lets as many rounds pass as it takes until one of those waiting has
// credit. Nobody among them has any before, so nobody has more than one
// round's part after. The others' debts shrink too, but they save nothing up.
func (r *RoundRobin) pay(waiting []VGPUID) {
	var total int64
	for _, v := range waiting {
		total += r.entries[v].weight
	}
	part := func(e *entry) time.Duration {
		return max(time.Microsecond, time.Duration(int64(r.Period)*e.weight/total))
	}
	rounds := time.Duration(1<<63 - 1)
	for _, v := range waiting {
		e := r.entries[v]
		rounds = min(rounds, -e.credit/part(e)+1)
	}
	for v, e := range r.entries {
		if _, waits := slices.BinarySearch(waiting, v); waits {
			e.credit += rounds * part(e)
		} else {
			e.credit = min(0, e.credit+rounds*min(part(e), r.Period))
		}
	}
}
