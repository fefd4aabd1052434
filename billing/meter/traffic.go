package meter

import (
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Traffic is what one node has counted of a resource's outgoing traffic, and how much
// of that has been recorded. Several nodes may count the same resource at the same
// time, each its own part: their records have different IDs.
type Traffic struct {
	At  time.Time `json:"at"`  // up to when it has been recorded; zero: never
	Seq uint64    `json:"seq"` // of the last record: 1, 2, …
	// Counted is bytes by counter, at the last reading.
	Counted map[string]uint64 `json:"counted,omitempty"`
	Owed    uint64            `json:"owed,omitempty"` // bytes that are counted but not recorded
}

// maxCounters limits the remembered counters of a resource. It has a few at a time;
// missing ones are kept as long as there is room, since they may only be temporarily
// invisible.
const maxCounters = 64

// Count processes the current values of the counters. They only grow: one that is new,
// or smaller than before, has counted from zero.
func (t Traffic) Count(now map[string]uint64) Traffic {
	next := t
	next.Counted = maps.Clone(t.Counted)
	if next.Counted == nil {
		next.Counted = map[string]uint64{}
	}
	for id, bytes := range now {
		if was := t.Counted[id]; bytes >= was {
			next.Owed += bytes - was
		} else {
			next.Owed += bytes
		}
		next.Counted[id] = bytes
	}
	for _, id := range slices.Sorted(maps.Keys(next.Counted)) {
		if _, here := now[id]; !here && len(next.Counted) > maxCounters {
			delete(next.Counted, id)
		}
	}
	return next
}

// Record records what was counted. Traffic counted across a full hour is assigned to
// the hour that contains the larger part of the interval: reading the counters right
// after each full hour gives the right one.
func (t Traffic) Record(r Resource, now time.Time) (Traffic, []api.Command) {
	now = now.UTC()
	end, next := now, t
	if hour := now.Truncate(time.Hour); !t.At.IsZero() && t.At.Before(hour) && now.Sub(hour) < hour.Sub(t.At) {
		end = hour
	}
	next.At = now
	if now.Before(t.At) { // the clock went back
		end, next.At = t.At, t.At
	}
	if t.Owed == 0 {
		return next, nil
	}
	start := t.At
	if start.IsZero() {
		start = end
	}
	next.Seq, next.Owed = t.Seq+1, 0
	id := RecordID(r.ID+"@"+string(r.Node), next.Seq, api.MeterEgress, start, end)
	return next, []api.Command{command(id, r, api.PriceSelector{}, api.MeterEgress, start, end, t.Owed)}
}
