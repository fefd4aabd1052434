package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// RoundRobin is weighted round robin with credit: every round gives each waiting
// vGPU its part of Period, a lease spends it, and an overrun is a debt that later
// rounds pay. It is work-conserving: rounds pass at once when no waiting vGPU has
// credit, so no time is reserved for those that do not wait.
//
// A guaranteed share is the weight. vGPUs without one (best effort) divide what
// is not guaranteed by the weights of their tiers, and have at least
// bestEffortFloor together: on a card whose shares are all allocated, each vGPU
// gets 100/101 of its guarantee and none starves.
//
// A vGPU of a better tier has its turn earlier. That changes how long it waits,
// not how much time it gets: a premium vGPU without debt is next even when it has
// no credit left in this round, and later rounds pay for that.
type RoundRobin struct {
	// Period is the length of a round when all of it is used.
	Period time.Duration
	// Shortest and Longest bound one lease.
	Shortest, Longest time.Duration

	entries map[VGPUID]*entry
	order   []VGPUID // sorted: the order of turns
	turn    VGPUID   // the vGPU whose turn it is
}

type entry struct {
	tier   Tier
	weight int64 // thousandths of a percent
	credit time.Duration
}

// bestEffortFloor is in percent.
const bestEffortFloor = 1

// NewRoundRobin returns a policy with leases of 1 to 10 ms: long enough that a
// hand-over (some tens of microseconds) costs little, and short enough that a
// session waits no longer than a video frame takes.
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

// withCredit returns the first waiting vGPU of the best tier that has credit, in
// the order of turns: from the current turn if fromTurn is set, or else from the
// one after it.
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

// pay lets as many rounds pass as are needed until a waiting vGPU has credit. No
// waiting vGPU has any before, so none has more than one round's part afterwards.
// The debts of the others shrink as well, but they do not save up credit.
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
