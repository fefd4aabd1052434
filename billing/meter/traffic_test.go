package meter

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func sumOf(l ledger) (n int64) {
	for _, r := range l {
		n += r.Quantity
	}
	return n
}

func TestTrafficIsRecordedOnce(t *testing.T) {
	l := ledger{}
	var s Traffic
	var cmds []api.Command
	at := t0
	for i, step := range []struct {
		counters map[string]uint64
		want     int64
	}{
		{map[string]uint64{"4": 100, "6": 10}, 110},
		{map[string]uint64{"4": 100, "6": 10}, 110}, // no traffic
		{map[string]uint64{"4": 150}, 160},          // one is invisible
		{map[string]uint64{"4": 150, "6": 30}, 180}, // … and visible again
		{map[string]uint64{"4": 20, "6": 30}, 200},  // one restarts at zero
		{map[string]uint64{"4b": 7, "6": 30}, 207},  // created again under another name
		{map[string]uint64{}, 207},                  // the switch has no counters
		{map[string]uint64{"4c": 1, "6c": 2}, 210},  // after the switch's restart
		{map[string]uint64{"4c": 1, "6c": 1}, 211},  // less than before: from zero
		{map[string]uint64{"4c": 1, "6c": 1}, 211},  // …
		{map[string]uint64{"4c": 1, "6c": 1e6}, 1000210},
	} {
		at = at.Add(time.Minute)
		s, cmds = s.Count(step.counters).Record(inst, at)
		l.commit(t, cmds)
		l.commit(t, cmds) // as after a crash
		if got := sumOf(l); got != step.want {
			t.Errorf("step %d: %d bytes, want %d", i, got, step.want)
		}
	}
	for _, r := range l {
		if r.Meter != api.MeterEgress || r.Resource != "ins-1" || r.ResourceName != "demo" || r.Node != "node-1" || r.Start.After(r.End) {
			t.Errorf("record = %+v, want egress of ins-1 (demo) on node-1", r)
		}
	}
}

// TestTrafficOfTwoNodes checks that records of two nodes for the same time have
// different IDs.
func TestTrafficOfTwoNodes(t *testing.T) {
	l, other := ledger{}, inst
	other.Node = "node-2"
	for _, r := range []Resource{inst, other} {
		_, cmds := Traffic{At: t0}.Count(map[string]uint64{"c": 5}).Record(r, t0.Add(time.Second))
		l.commit(t, cmds)
	}
	if len(l) != 2 || sumOf(l) != 10 {
		t.Errorf("records of two nodes = %v, want 2 with 10 bytes in total", l)
	}
}

func TestHourOfTraffic(t *testing.T) {
	hour := t0.Truncate(time.Hour).Add(time.Hour)
	for _, c := range []struct{ from, to, want time.Time }{
		{hour.Add(-time.Minute), hour.Add(time.Second), hour.Add(-time.Hour)},
		{hour.Add(-time.Second), hour.Add(time.Minute), hour},
		{hour.Add(-time.Second), hour, hour.Add(-time.Hour)},
		{hour, hour.Add(time.Minute), hour},
		{time.Time{}, hour.Add(time.Minute), hour},
		{hour.Add(time.Minute), hour.Add(time.Second), hour}, // the clock went back
	} {
		next, cmds := Traffic{At: c.from, Owed: 1}.Record(inst, c.to)
		record, err := api.RecordOf(cmds[0], c.to)
		u, ok := api.UseOf(record)
		if err != nil || !ok || !u.Hour.Equal(c.want) {
			t.Errorf("record from %s to %s is in hour %s (valid %v, error %v), want %s", c.from, c.to, u.Hour, ok, err, c.want)
		}
		if next.At.Before(c.from) {
			t.Errorf("next state has time %s, want at least %s", next.At, c.from)
		}
	}
}

// TestTrafficForgetsCounters checks that counters are dropped only if there are too
// many, and never those that exist.
func TestTrafficForgetsCounters(t *testing.T) {
	var s Traffic
	for i := range 10 * maxCounters {
		s = s.Count(map[string]uint64{fmt.Sprint("z", i): 1, "a": uint64(i)})
		if len(s.Counted) > maxCounters || s.Counted["a"] != uint64(i) {
			t.Fatalf("after %d readings: %d counters, a = %v; want at most %d and %d", i, len(s.Counted), s.Counted["a"], maxCounters, i)
		}
	}
	if s.Owed != 10*maxCounters+10*maxCounters-1 {
		t.Errorf("bytes to be recorded = %d, want %d", s.Owed, 10*maxCounters+10*maxCounters-1)
	}
}

// TestTrafficHoweverOften checks that the times of readings and records do not change
// the sum.
func TestTrafficHoweverOften(t *testing.T) {
	for seed := range int64(50) {
		rng, l := rand.New(rand.NewSource(seed)), ledger{}
		var s Traffic
		var cmds []api.Command
		var counter, sent uint64
		at := t0
		for range 200 {
			at = at.Add(time.Duration(rng.Intn(1000)) * time.Second)
			n := uint64(rng.Intn(1 << 30))
			counter, sent = counter+n, sent+n
			if rng.Intn(3) > 0 {
				s = s.Count(map[string]uint64{"c": counter})
			}
			if rng.Intn(5) == 0 {
				s, cmds = s.Record(inst, at)
				l.commit(t, cmds)
			}
		}
		_, cmds = s.Count(map[string]uint64{"c": counter}).Record(inst, at)
		l.commit(t, cmds)
		if got := sumOf(l); got != int64(sent) {
			t.Fatalf("seed %d: %d bytes, want %d", seed, got, sent)
		}
	}
}
