// Package metrics stores measurements of one node: for each resource (an instance,
// the node, a GPU) some series, each as a bounded ring in two resolutions. They are
// in memory only and leave the node only when they are requested: a restart of the
// process is a gap at the start, and nothing is ever charged by them.
//
// Time is the monotonic time since the recorder was created. It is converted to UTC by
// the wall clock at the time of a request, so that setting the clock moves the
// whole chart and causes no gap.
package metrics

import (
	"errors"
	"math"
	"sync"
	"time"
)

// Limits of a recorder; it never grows beyond them.
const (
	maxResources = 2048
	maxSeries    = 16 // of a resource
	// MaxValues is the maximum number of values of a series in one response.
	MaxValues = coarseSlots
)

// Reading is one quantity at one moment.
type Reading struct {
	Name string
	// Level is the current value; of a counter it is the factor of its growth per
	// second.
	Level   float64
	Total   uint64
	counter bool
}

// Level returns a reading of a quantity that is stored as it is, such as bytes in
// use.
func Level(name string, v float64) Reading { return Reading{Name: name, Level: v} }

// Counter returns a reading of a growing sum, of which the rate per second, times
// scale, is stored.
func Counter(name string, total uint64, scale float64) Reading {
	return Reading{Name: name, Level: scale, Total: total, counter: true}
}

// Recorder stores the measurements of a node. It is safe for concurrent use.
type Recorder struct {
	begun time.Time // with a monotonic reading; a full minute of the wall clock

	mu        sync.Mutex
	resources map[string]*resource
}

type resource struct {
	names  []string // in the order of their first reading
	series map[string]*series
}

// NewRecorder returns an empty recorder. now is time.Now, with its monotonic reading.
func NewRecorder(now time.Time) *Recorder {
	return &Recorder{begun: now.Add(-now.Sub(now.Round(0).Truncate(Coarse))), resources: map[string]*resource{}}
}

func (rec *Recorder) since(now time.Time) time.Duration { return now.Sub(rec.begun) }

// Next returns the time from now until the next reading is due: in the middle of a
// slot, so that one that is late by less than half a slot still belongs to it.
func (rec *Recorder) Next(now time.Time) time.Duration {
	const half = Fine / 2
	return Fine - (rec.since(now)+Fine-half)%Fine
}

// Record stores readings of a resource. What exceeds the recorder's limits is dropped.
func (rec *Recorder) Record(id string, now time.Time, readings ...Reading) {
	at := rec.since(now)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	r := rec.resources[id]
	if r == nil {
		if len(rec.resources) >= maxResources {
			return
		}
		r = &resource{series: map[string]*series{}}
		rec.resources[id] = r
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

// Keep removes the resources that are not wanted any more.
func (rec *Recorder) Keep(wanted func(id string) bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for id := range rec.resources {
		if !wanted(id) {
			delete(rec.resources, id)
		}
	}
}

// Span is the requested part of a chart: from a time on, in steps. The zero value
// is the last 15 minutes in the finest steps.
type Span struct {
	From time.Time
	Step time.Duration
}

// Errors of a Span.
var (
	ErrStep = errors.New("must be a multiple of 5 seconds below one minute, else a multiple of a minute, and at most a day")
	ErrMany = errors.New("too many values for one response")
)

// Series is a series in a Chart.
type Series struct {
	Name   string
	Values []float64 // means of steps; NaN if there is no reading
}

// Chart is the result of Read.
type Chart struct {
	From   time.Time // time of the first value, UTC
	Step   time.Duration
	Series []Series // in the order of their first reading
}

// Read returns what was stored of a resource until now. An unknown resource has no
// series. A From that is before the start of the recorder is moved to it. The errors
// are ErrStep and ErrMany.
func (rec *Recorder) Read(id string, span Span, now time.Time) (Chart, error) {
	slot, first, count, step, err := rec.slots(span, now)
	if err != nil {
		return Chart{}, err
	}
	each := int64(step / slot)
	begin := rec.begun.Add(time.Duration(first*each) * slot)
	// The wall clock may have been set since the recorder was created.
	c := Chart{From: now.Round(0).Add(-now.Sub(begin)).Round(time.Second).UTC(), Step: step}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	r := rec.resources[id]
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

// Last returns the mean of a series over the time before now, or NaN if there is no
// reading.
func (rec *Recorder) Last(id, name string, over time.Duration, now time.Time) float64 {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	r := rec.resources[id]
	if r == nil || r.series[name] == nil {
		return math.NaN()
	}
	n := int64(over / Fine)
	return mean(&r.series[name].fine, int64(rec.since(now)/Fine)-n+1, n)
}

// slots returns the ring to read from, and the steps of it.
func (rec *Recorder) slots(span Span, now time.Time) (slot time.Duration, first, count int64, step time.Duration, err error) {
	at := rec.since(now)
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

// mean returns the mean of n slots of a ring that have a value, or NaN.
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
