package metrics

import (
	"math"
	"time"
)

// Two resolutions: what is kept of each series.
//
//	fine    5 s × 180 = 15 min      720 B
//	coarse 60 s × 1440 = 24 h     5,760 B
//
// As float32, whose 24 bits show 64 GiB to 4 KiB: 6.5 kB a series, 78 kB an
// instance of twelve, 160 MB for the most resources that a Book takes.
const (
	Fine                   = 5 * time.Second
	Coarse                 = time.Minute
	fineSlots, coarseSlots = 180, 1440
)

var nan = float32(math.NaN())

// ring holds the latest slots of a series; what it has no value of is NaN.
type ring struct {
	slots []float32
	last  int64 // the newest slot, counted from the book's beginning; -1: none
}

func newRing(n int) ring {
	r := ring{slots: make([]float32, n), last: -1}
	for i := range r.slots {
		r.slots[i] = nan
	}
	return r
}

// put a value into a slot. Slots between that nobody has filled are gaps. What
// is older than the ring is dropped.
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

// get is a slot's value, or NaN.
func (r *ring) get(slot int64) float64 {
	if n := int64(len(r.slots)); slot < 0 || slot > r.last || slot <= r.last-n {
		return math.NaN()
	}
	return float64(r.slots[slot%int64(len(r.slots))])
}

// series is one quantity of a resource.
type series struct {
	fine, coarse ring
	// The minute that is being filled.
	minute int64
	sum    float64
	n      int
	// Of a counter: what it stood at, and when.
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

// counter turns a sum that grows into a rate.
type counter struct {
	at    time.Duration
	total uint64
	known bool
}

// longest is how long ago the reading before may be: a rate over more than that
// would be drawn at one point and belong to many, so it is a gap.
const longest = 3 * Fine

// rate is the growth per second since the last reading; false: there is none,
// because it is the first, the sum has begun anew, or nobody looked for long.
func (c *counter) rate(at time.Duration, total uint64) (perSecond float64, ok bool) {
	was := *c
	*c = counter{at, total, true}
	if !was.known || total < was.total || at <= was.at || at-was.at > longest {
		return 0, false
	}
	return float64(total-was.total) / (at - was.at).Seconds(), true
}
