package metrics

import (
	"math"
	"time"
)

// Fine and Coarse are the two resolutions in which each series is stored.
//
//	fine    5 s × 180 = 15 min      720 B
//	coarse 60 s × 1440 = 24 h     5,760 B
//
// Values are float32, whose 24 bits resolve 64 GiB to 4 KiB: 6.5 kB per series, 78
// kB for an instance with twelve, 160 MB for the maximum of resources in a Recorder.
const (
	Fine                   = 5 * time.Second
	Coarse                 = time.Minute
	fineSlots, coarseSlots = 180, 1440
)

var nan = float32(math.NaN())

// ring has the latest slots of a series; a slot without a value is NaN.
type ring struct {
	slots []float32
	last  int64 // the newest slot, counted from the start of the recorder; -1 if none
}

func newRing(n int) ring {
	r := ring{slots: make([]float32, n), last: -1}
	for i := range r.slots {
		r.slots[i] = nan
	}
	return r
}

// put stores a value in a slot. Slots in between without a value are gaps. A value
// that is older than the ring is dropped.
func (r *ring) put(slot int64, v float64) {
	n := int64(len(r.slots))
	if slot < 0 || slot <= r.last-n {
		return
	}
	for i := max(r.last+1, slot-n+1); i < slot; i++ {
		r.slots[i%n] = nan
	}
	r.last = max(r.last, slot)
	r.slots[slot%n] = float32(v)
}

// get returns a slot's value, or NaN.
func (r *ring) get(slot int64) float64 {
	if n := int64(len(r.slots)); slot < 0 || slot > r.last || slot <= r.last-n {
		return math.NaN()
	}
	return float64(r.slots[slot%int64(len(r.slots))])
}

// series is one quantity of a resource.
type series struct {
	fine, coarse ring
	// The current minute, with the sum and number of its values.
	minute int64
	sum    float64
	n      int
	// For counters: the last total, and when it was read.
	counter counter
}

func newSeries() *series { return &series{fine: newRing(fineSlots), coarse: newRing(coarseSlots)} }

func (s *series) put(at time.Duration, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	s.fine.put(int64(at/Fine), v)
	if m := int64(at / Coarse); m != s.minute {
		s.minute, s.sum, s.n = m, 0, 0
	}
	s.sum += v
	s.n++
	s.coarse.put(s.minute, s.sum/float64(s.n))
}

// counter converts a growing sum into a rate.
type counter struct {
	at    time.Duration
	total uint64
	known bool
}

// longest is the longest time between two readings for a rate: a rate over more
// than that would be drawn at one point and belong to many, so it is a gap.
const longest = 3 * Fine

// rate returns the growth per second since the last reading. It is not ok if there
// is no rate, because this is the first reading, the sum has restarted, or the last
// reading is too old.
func (c *counter) rate(at time.Duration, total uint64) (perSecond float64, ok bool) {
	was := *c
	*c = counter{at, total, true}
	if !was.known || total < was.total || at <= was.at || at-was.at > longest {
		return 0, false
	}
	return float64(total-was.total) / (at - was.at).Seconds(), true
}
