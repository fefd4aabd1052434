package client

import (
	"testing"
	"time"
)

// TestPaceKeepsThePart checks that a session keeps the part of the card's time
// that it had.
func TestPaceKeepsThePart(t *testing.T) {
	for name, c := range map[string]struct {
		used, waited time.Duration // in each turn, with gpud
		want         float64       // part of the time, without gpud
	}{
		"alone":          {10 * time.Millisecond, 0, 1},
		"half":           {10 * time.Millisecond, 10 * time.Millisecond, 0.5},
		"a tenth":        {5 * time.Millisecond, 45 * time.Millisecond, 0.1},
		"tiny kernels":   {20 * time.Microsecond, 60 * time.Microsecond, 0.25},
		"never had it":   {0, time.Second, 1},
		"never asked":    {0, 0, 1},
		"long swapped":   {10 * time.Millisecond, time.Hour, 10.0 / 410},
		"clock set back": {-time.Hour, -time.Hour, 1},
	} {
		var p pace
		for range 5000 {
			p.wait(c.waited)
			p.use(c.used)
		}
		var used, waited time.Duration
		for range 5000 {
			const each = time.Millisecond
			p.useOffline(each)
			used += each
			waited += p.due()
		}
		waited += p.owes
		if got := float64(used) / float64(used+waited); got < c.want*0.8 || got > c.want*1.2 {
			t.Errorf("%s: part of the time = %.3f, want %.3f", name, got, c.want)
		}
	}
}
