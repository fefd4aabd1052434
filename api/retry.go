package api

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Backoff defines the delays between failed tries: First, doubled after every failure
// up to Last.
type Backoff struct{ First, Last time.Duration }

// Wait returns the delay after the given number of consecutive failures. It differs by
// up to a fifth between objects, so that not all retry at once, and is deterministic
// for an object, so that every process computes the same.
func (b Backoff) Wait(id string, failures int64) time.Duration {
	wait := b.Last
	if n := max(failures-1, 0); n < 32 && b.First<<n < b.Last && b.First<<n > 0 {
		wait = b.First << n
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d", id, failures) // writing to a hash never fails
	return wait*4/5 + wait*2/5*time.Duration(h.Sum32()%1024)/1024
}

// Tried returns the value of Retry.Of for an object with the given assignment, or the
// part of it that a try depends on. A change of the spec or of that assignment, and a
// deletion, change the value, so that the next try is immediate.
func Tried(m Meta, assignment any) string {
	h := fnv.New64a()
	_, _ = h.Write(Encode(assignment)) // writing to a hash never fails
	return fmt.Sprintf("%d-%t-%x", m.Generation, m.DeletedAt != nil, h.Sum64())
}

// Applies reports whether the failed tries were for the current request. It is false for
// nil, when none have failed.
func (r *Retry) Applies(of string) bool { return r != nil && r.Of == of }

// Left returns how long to wait at the given time before the next try; 0 if it is due.
// never is true if the unchanged request must not be tried again. A clock that was set
// back never makes the delay longer than Last.
func (r *Retry) Left(of string, now time.Time, b Backoff) (wait time.Duration, never bool) {
	if !r.Applies(of) {
		return 0, false
	}
	if r.NextAt == nil {
		return 0, true
	}
	return min(max(r.NextAt.Sub(now), 0), b.Last*6/5), false
}

// After returns the state after a try of the object with that ID has failed at the
// given time. A failure before the next try was due changes nothing, so that the status
// is not written more often than tries are due.
func (r *Retry) After(id, of string, now time.Time, b Backoff) *Retry {
	if wait, never := r.Left(of, now, b); wait > 0 || never {
		return r
	}
	n := &Retry{Attempts: 1, Of: of}
	if r.Applies(of) {
		n.Attempts = r.Attempts + 1
	}
	at := now.UTC().Add(b.Wait(id, n.Attempts)).Truncate(time.Millisecond)
	n.NextAt = &at
	return n
}

// Last returns the state after a permanent failure: the unchanged request is not tried
// again.
func (r *Retry) Last(of string) *Retry {
	n := &Retry{Attempts: 1, Of: of}
	if r.Applies(of) {
		n.Attempts = r.Attempts + 1
	}
	return n
}
