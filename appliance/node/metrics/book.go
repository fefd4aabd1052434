// Package metrics keeps what was measured on one node for charts: of each
// resource (an instance, the node, a card) some series, each as a bounded ring
// in two resolutions. It is in memory alone and leaves the node only when it is
// asked for: a restart of its process is a gap at the beginning, and nothing is
// ever charged by it.
//
// Time is what has passed on the monotonic clock since the book was begun; UTC
// is what the wall clock says when it is asked, so that setting the clock moves
// the whole chart and tears no hole.
package metrics

import (
	"errors"
	"math"
	"sync"
	"time"
)

// Limits of a book: it never grows with what it is told.
const (
	maxResources = 2048
	maxSeries    = 16 // of a resource
	// MaxValues is the most of a series in one answer.
	MaxValues = coarseSlots
)

// Reading is one quantity at one moment.
type Reading struct {
	Name string
	// Level is what it is now; of a counter what one unit of its growth per
	// second counts.
	Level   float64
	Total   uint64
	counter bool
}

// Level is a quantity that is what it is: bytes held.
func Level(name string, v float64) Reading { return Reading{Name: name, Level: v} }

// Counter is a sum that grows: its rate per second, times scale, is kept.
func Counter(name string, total uint64, scale float64) Reading {
	return Reading{Name: name, Level: scale, Total: total, counter: true}
}

// Book of a node.
type Book struct {
	begun time.Time // with a monotonic reading; a whole minute of the wall's clock

	mu        sync.Mutex
	resources map[string]*resource
}

type resource struct {
	names  []string // in the order in which they came
	series map[string]*series
}

// NewBook begins a book. now is time.Now, with its monotonic reading.
func NewBook(now time.Time) *Book {
	return &Book{begun: now.Add(-now.Sub(now.Round(0).Truncate(Coarse))), resources: map[string]*resource{}}
}

func (b *Book) since(now time.Time) time.Duration { return now.Sub(b.begun) }

// Next is how long after now the next reading is due: in the middle of a slot,
// so that one that comes late by less than half a slot is still in it.
func (b *Book) Next(now time.Time) time.Duration {
	const half = Fine / 2
	return Fine - (b.since(now)+Fine-half)%Fine
}

// Note what was read of a resource. What does not fit into the book's limits is
// dropped.
func (b *Book) Note(id string, now time.Time, readings ...Reading) {
	at := b.since(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.resources[id]
	if r == nil {
		if len(b.resources) >= maxResources {
			return
		}
		r = &resource{series: map[string]*series{}}
		b.resources[id] = r
	}
	for _, x := range readings {
		s := r.series[x.Name]
		if s == nil {
			if len(r.series) >= maxSeries {
				continue
			}
			s = newSeries()
			r.series[x.Name], r.names = s, append(r.names, x.Name)
		}
		v := x.Level
		if x.counter {
			perSecond, ok := s.counter.rate(at, x.Total)
			if !ok {
				continue
			}
			v *= perSecond
		}
		s.put(at, v)
	}
}

// Keep forgets the resources that are not wanted any more.
func (b *Book) Keep(wanted func(id string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.resources {
		if !wanted(id) {
			delete(b.resources, id)
		}
	}
}

// Span is what is asked for: from a time on, in steps. Zero: the last quarter of
// an hour, and the finest steps that reach so far.
type Span struct {
	From time.Time
	Step time.Duration
}

// Errors of a span.
var (
	ErrStep = errors.New("must be a multiple of 5 seconds below one minute, else a multiple of a minute, and at most a day")
	ErrMany = errors.New("too many values for one response")
)

// Series as it was.
type Series struct {
	Name   string
	Values []float64 // means of steps; NaN: nobody looked
}

// Chart is an answer.
type Chart struct {
	From   time.Time // of the first value, UTC
	Step   time.Duration
	Series []Series // in the order in which they came to be
}

// Read what was noted of a resource until now. One that nothing is known of has
// no series. From is moved to how far back the book goes.
func (b *Book) Read(id string, span Span, now time.Time) (Chart, error) {
	slot, first, count, step, err := b.slots(span, now)
	if err != nil {
		return Chart{}, err
	}
	each := int64(step / slot)
	begin := b.begun.Add(time.Duration(first*each) * slot)
	// The wall's clock may have been set since the book was begun.
	c := Chart{From: now.Round(0).Add(-now.Sub(begin)).Round(time.Second).UTC(), Step: step}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.resources[id]
	if r == nil {
		return c, nil
	}
	for _, name := range r.names {
		ring := &r.series[name].coarse
		if slot == Fine {
			ring = &r.series[name].fine
		}
		values := make([]float64, count)
		for i := range values {
			values[i] = mean(ring, (first+int64(i))*each, each)
		}
		c.Series = append(c.Series, Series{name, values})
	}
	return c, nil
}

// Last is the mean of a series over the time before now; NaN: nobody looked.
func (b *Book) Last(id, name string, over time.Duration, now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.resources[id]
	if r == nil || r.series[name] == nil {
		return math.NaN()
	}
	n := int64(over / Fine)
	return mean(&r.series[name].fine, int64(b.since(now)/Fine)-n+1, n)
}

// slots returns which ring answers, and which steps of it.
func (b *Book) slots(span Span, now time.Time) (slot time.Duration, first, count int64, step time.Duration, err error) {
	at := b.since(now)
	back := fineSlots * Fine
	if !span.From.IsZero() {
		back = max(now.Round(0).Sub(span.From.Round(0)), 0)
	}
	if step = span.Step; step == 0 {
		step = Fine
		if back > fineSlots*Fine {
			step = Coarse
		}
	}
	if step < Fine || step%Fine != 0 || step > Coarse && step%Coarse != 0 || step > coarseSlots*Coarse {
		return 0, 0, 0, 0, ErrStep
	}
	slot, reach := Coarse, coarseSlots*Coarse
	if step%Coarse != 0 {
		slot, reach = Fine, fineSlots*Fine
	}
	last := int64(at / step)
	count = int64((min(back, reach) + step - 1) / step)
	first = last - count + 1
	if count > MaxValues {
		return 0, 0, 0, 0, ErrMany
	}
	return slot, first, count, step, nil
}

// mean of n slots of a ring, of those that have a value.
func mean(r *ring, from, n int64) float64 {
	sum, of := 0.0, 0
	for i := from; i < from+n; i++ {
		if v := r.get(i); !math.IsNaN(v) {
			sum += v
			of++
		}
	}
	if of == 0 {
		return math.NaN()
	}
	return sum / float64(of)
}
