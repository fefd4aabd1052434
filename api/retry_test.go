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
				t.Errorf("%s after %d failures: %v, want about %v, always the same", id, n, got, want)
			}
		}
	}
	if b.Wait("img-1", 9) == b.Wait("img-2", 9) {
		t.Error("all try at once")
	}
}

func TestRetry(t *testing.T) {
	b, now := Backoff{time.Second, time.Minute}, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	of := Tried(Meta{Generation: 1}, ImageAssignment{Node: "node-a"})
	var r *Retry
	for n := range int64(10) {
		if wait, never := r.Left(of, now, b); wait != 0 || never {
			t.Fatalf("try %d has to wait %v, %t", n, wait, never)
		}
		r = r.After("img-1", of, now, b)
		if again := r.After("img-1", of, now, b); again != r || r.Attempts != n+1 {
			t.Fatalf("%+v, and at the same moment %+v", r, again)
		}
		now = *r.NextAt
	}
	if wait, _ := r.Left(of, now.Add(-24*time.Hour), b); wait > b.Last*6/5 {
		t.Errorf("a clock that went back: %v", wait)
	}
	for _, other := range []string{Tried(Meta{Generation: 2}, ImageAssignment{Node: "node-a"}), Tried(Meta{Generation: 1}, ImageAssignment{Node: "node-b"}),
		Tried(Meta{Generation: 1, DeletedAt: &now}, ImageAssignment{Node: "node-a"})} {
		if wait, never := r.Last(of).Left(other, now, b); wait != 0 || never {
			t.Errorf("what was changed waits: %v, %t", wait, never)
		}
	}
	if _, never := r.Last(of).Left(of, now.Add(time.Hour), b); !never {
		t.Error("what fails for good is tried again")
	}
}
