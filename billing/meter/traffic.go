package meter

import (
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Traffic is what one node has counted of what a resource sent out, and how
// much of that has been recorded. Several nodes may count the same resource at
// once, each what left there: their records have ids of their own.
type Traffic struct {
	At  time.Time `json:"at"`  // up to when it has been recorded; zero: never
	Seq uint64    `json:"seq"` // of the last record: 1, 2, …
	// Counted bytes by counter, when it was read last.
	Counted map[string]uint64 `json:"counted,omitempty"`
	Owed    uint64            `json:"owed,omitempty"` // bytes that are counted and not recorded
}

// maxCounters of a resource that are remembered. It has a few at a time; those
// that are not there any more are kept as long as there is room, for they may
// only have been out of sight.
const maxCounters = 64

// Count takes in what the counters say now. They only grow: one that is smaller
// than before, or new, has counted from zero.
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

// Record what is owed. What was counted across a full hour is of the hour in
// which more of the time lay: whoever reads the counters right after each full
// hour has it in the right one.
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
