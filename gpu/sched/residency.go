package sched

import (
	"cmp"
	"slices"
	"time"
)

// Tenant describes a session for residency: how much of the card's memory it has,
// how much it needs to run, and its state. Memory is in bytes.
type Tenant struct {
	Session SessionID
	// Held is the session's whole footprint, Resident the part of it that is on
	// the card.
	Held, Resident uint64
	Out            bool   // must not run: not all of its memory is on the card
	Pinned         bool   // it cannot be evicted
	Leaving        uint64 // bytes that it was asked to evict and has not yet confirmed
	Holder         bool   // it holds the card
	Waits          bool   // it waits for the card
	Asked          Time   // when it began to wait
	Share          int    // guaranteed share of its vGPU, in percent; 0 is best effort
	Tier           Tier
	Used           Time // when it last held the card
	Until          Time // end of its quantum: until then it may stay on the card
}

// Residency divides a card's memory among working sets that do not fit together.
// It schedules their presence on the card in quanta that are long enough to be
// worth the swap; sessions on the card share it in leases of milliseconds.
// Working sets that fit together are never swapped.
type Residency struct {
	VRAM uint64 // bytes
	Rate uint64 // of copies between card and host, in bytes per second
}

// Swap is what to do now.
type Swap struct {
	In   SessionID     // the quantum of In
	Stay time.Duration // In's quantum
	Out  []Eviction    // these must evict and confirm before another session can come in
	Stop SessionID     // the holder, which has had its quantum and must release the card
	Next Time          // when to call again even if nothing happens; 0: not needed

	short bool // evicting all candidates would still not free enough
}

// Eviction is a session and how many bytes of its memory it must evict.
type Eviction struct {
	Session SessionID
	Bytes   uint64
}

const (
	// lossPercent is the part of the time that swapping may cost. Moving 20 GB
	// out and 20 GB in at 55 GB/s takes 0.73 s, so the quantum is 7.3 s.
	lossPercent = 10
	// shortestQuantum keeps small footprints from being swapped all the time;
	// longestQuantum bounds how long the other sessions wait.
	shortestQuantum = 100 * time.Millisecond
	longestQuantum  = time.Minute
	// largestWeight bounds how many quanta a share is worth.
	largestWeight = 8
)

// Quantum returns how long a tenant stays on the card so that swapping bytes, out
// and in together, costs at most lossPercent of the time.
func (r Residency) Quantum(bytes uint64) time.Duration {
	return min(max(100/lossPercent*r.transfer(bytes), shortestQuantum), longestQuantum)
}

// transfer returns how long copying bytes takes, at most an hour.
func (r Residency) transfer(bytes uint64) time.Duration {
	return time.Duration(min(float64(bytes)/float64(max(r.Rate, 1)), 3600) * float64(time.Second))
}

// weight returns how many quanta a tenant gets for one of the active tenant with
// the smallest share: tenants with a guaranteed share stay in proportion to it.
func weight(t Tenant, all []Tenant) time.Duration {
	share, least := max(t.Share, 1), FullShare
	for _, o := range all {
		if o.Waits || o.Holder {
			least = min(least, max(o.Share, 1))
		}
	}
	return time.Duration(min(max(share/least, 1), largestWeight))
}

// Admit decides about the session that is out and has waited longest: it comes in if its
// footprint fits; otherwise Out has the sessions to evict for it. No other session
// overtakes it, so every session comes in eventually.
func (r Residency) Admit(now Time, all []Tenant) Swap {
	line := slices.DeleteFunc(slices.Clone(all), func(t Tenant) bool { return !t.Out || !t.Waits || t.Leaving > 0 })
	if len(line) == 0 {
		return Swap{}
	}
	first := slices.MinFunc(line, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(a.Asked, b.Asked), cmp.Compare(a.Session, b.Session))
	})
	need, free := first.Held-min(first.Resident, first.Held), r.free(all)
	if need <= free {
		return Swap{In: first.Session, Stay: r.Quantum(2*need) * weight(first, all)}
	}
	return r.evictFor(now, all, first.Session, need-free)
}

// Fits reports whether bytes more fit on the card now.
func (r Residency) Fits(all []Tenant, bytes uint64) bool { return bytes <= r.free(all) }

// Grow returns the sessions to evict at once so that a tenant on the card can have
// bytes more: a program that allocates does not wait for quanta. Call it when they do
// not fit. It returns no sessions if enough is being evicted already. ok is false when
// only the holder, or the tenant itself, could free enough.
func (r Residency) Grow(now Time, all []Tenant, of SessionID, bytes uint64) (out []Eviction, ok bool) {
	others := slices.DeleteFunc(slices.Clone(all), func(t Tenant) bool { return t.Holder })
	for i := range others {
		others[i].Until = 0
	}
	free := r.free(all)
	s := r.evictFor(now, others, of, bytes-min(free, bytes))
	return s.Out, !s.short
}

func (r Residency) free(all []Tenant) uint64 {
	used := uint64(0)
	for _, t := range all {
		used += t.Resident
	}
	return r.VRAM - min(used, r.VRAM)
}

// ready returns when a tenant may be evicted: when its quantum is over, or sooner
// if it has been idle for as long as its own swap takes.
func (r Residency) ready(t Tenant) Time {
	if t.Holder || t.Waits {
		return t.Until
	}
	return min(t.Until, t.Used+r.transfer(t.Resident))
}

// evictFor chooses the sessions that give up the missing bytes, each as much as is
// still missing: best effort before guaranteed shares, lower tiers before better
// ones, then the sessions that have not used the card for longest.
func (r Residency) evictFor(now Time, all []Tenant, who SessionID, missing uint64) (s Swap) {
	var can []Tenant
	for _, t := range all {
		missing -= min(t.Leaving, missing) // these bytes are being evicted already
		if t.Session != who && !t.Pinned && t.Leaving == 0 && t.Resident > 0 {
			can = append(can, t)
		}
	}
	slices.SortFunc(can, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(min(a.Share, 1), min(b.Share, 1)), cmp.Compare(a.Tier.weight(), b.Tier.weight()), cmp.Compare(a.Used, b.Used), cmp.Compare(a.Session, b.Session))
	})
	var later []Tenant
	for _, t := range can {
		if t.Holder || r.ready(t) > now {
			later = append(later, t)
			continue
		}
		if n := min(missing, t.Resident); n > 0 {
			s.Out = append(s.Out, Eviction{t.Session, n})
			missing -= n
		}
	}
	if missing == 0 {
		return s
	}
	// Not enough yet: find the session that is ready next, and whether it is the
	// holder.
	s.Out = nil
	slices.SortStableFunc(later, func(a, b Tenant) int { return cmp.Compare(r.ready(a), r.ready(b)) })
	for _, t := range later {
		if ready := r.ready(t); ready > now {
			s.Next = max(s.Next, ready)
		} else if t.Holder {
			s.Stop = t.Session
		}
		if missing -= min(missing, t.Resident); missing == 0 {
			return s
		}
	}
	return Swap{short: true}
}
