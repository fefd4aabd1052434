package main

import (
	"runtime"
	"testing"
)

func TestRoom(t *testing.T) {
	cpus := runtime.NumCPU()
	for _, c := range []struct {
		running int
		idle    float64
		want    bool
	}{
		{0, 0, true},
		{cpus, 0, true},
		{cpus + 1, spare - 0.01, false},
		{cpus + 1, spare, true},
		{3*cpus - 1, 1, true},
		{3 * cpus, 1, false},
	} {
		if got := canStart(c.running, c.idle); got != c.want {
			t.Errorf("canStart(%d, %v) = %v, want %v", c.running, c.idle, got, c.want)
		}
	}
}

func TestUsage(t *testing.T) {
	before := parseUsage("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n")
	after := parseUsage("cpu  60 10 20 80 20 3 2 5 0 0\n")
	if want := (usage{80, 100}); before != want {
		t.Errorf("parseUsage = %v, want %v", before, want)
	}
	if got := after.idleSince(before); got != 0.2 {
		t.Errorf("idle share = %v, want 0.2", got)
	}
	if got := before.idleSince(after); got != 0 {
		t.Errorf("idle share with decreasing counters = %v, want 0", got)
	}
	if got := parseUsage("intr 1 2"); got != (usage{}) {
		t.Errorf("parseUsage of a line without counters = %v, want zero", got)
	}
	if processors().all == 0 {
		t.Error("processors() returned no ticks of this machine, want some")
	}
}
