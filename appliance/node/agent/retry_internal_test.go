package agent

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// TestNextIsNeverNone checks that an object is reconciled again although writing the
// status of the failure took longer than the delay until the next attempt.
func TestNextIsNeverNone(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	co := &core{}
	co.o.Now = func() time.Time { return now }
	var r *api.Retry
	r = r.After("vol-1", "generation 1", now, retryHere)
	if wait := co.next(r, "generation 1", retryHere); wait <= 0 || wait > retryHere.First*6/5 {
		t.Errorf("next attempt after %v, want about %v", wait, retryHere.First)
	}
	now = now.Add(time.Minute)
	if wait := co.next(r, "generation 1", retryHere); wait <= 0 {
		t.Errorf("next attempt after %v, which means never; want one soon", wait)
	}
}
