package api

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{time.Second, time.Minute}
	for n, want := range map[int64]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 40: time.Minute, 1 << 40: time.Minute} {
		for _, id := range []string{"img-1", "img-2"} {
			if got := b.Wait(id, n); got < want*4/5 || got > want*6/5 || got != b.Wait(id, n) {
				t.Errorf("Wait(%s) after %d failures = %v, want about %v, and the same on every call", id, n, got, want)
			}
		}
	}
	if b.Wait("img-1", 9) == b.Wait("img-2", 9) {
		t.Error("Wait after 9 failures is the same for two objects, want different delays")
	}
}

func TestRetry(t *testing.T) {
	b, now := Backoff{time.Second, time.Minute}, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	of := Tried(Meta{Generation: 1}, ImageAssignment{Node: "node-a"})
	var r *Retry
	for n := range int64(10) {
		if wait, never := r.Left(of, now, b); wait != 0 || never {
			t.Fatalf("before failure %d: Left = %v, %t; want 0, false", n+1, wait, never)
		}
		r = r.After("img-1", of, now, b)
		if again := r.After("img-1", of, now, b); again != r || r.Attempts != n+1 {
			t.Fatalf("state after a failure = %+v, and after a second one at the same time %+v; want both the same with %d attempts", r, again, n+1)
		}
		now = *r.NextAt
	}
	if wait, _ := r.Left(of, now.Add(-24*time.Hour), b); wait > b.Last*6/5 {
		t.Errorf("Left after the clock was set back by a day = %v, want at most %v", wait, b.Last*6/5)
	}
	for _, other := range []string{Tried(Meta{Generation: 2}, ImageAssignment{Node: "node-a"}), Tried(Meta{Generation: 1}, ImageAssignment{Node: "node-b"}),
		Tried(Meta{Generation: 1, DeletedAt: &now}, ImageAssignment{Node: "node-a"})} {
		if wait, never := r.Last(of).Left(other, now, b); wait != 0 || never {
			t.Errorf("Left for a changed request = %v, %t; want 0, false", wait, never)
		}
	}
	if _, never := r.Last(of).Left(of, now.Add(time.Hour), b); !never {
		t.Error("Left after a permanent failure allows another try, want never")
	}
}
