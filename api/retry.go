package api

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Backoff is how long to wait between tries that fail: the first wait, doubled
// after every failure up to the last.
type Backoff struct{ First, Last time.Duration }

// Wait returns how long to wait after the given number of failures in a row. It
// differs by up to a fifth between objects, so that not all try at once, and is
// always the same for an object, so that every process says the same.
func (b Backoff) Wait(id string, failures int64) time.Duration {
	wait := b.Last
	if n := max(failures-1, 0); n < 32 && b.First<<n < b.Last && b.First<<n > 0 {
		wait = b.First << n
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d", id, failures) // a hash takes everything
	return wait*4/5 + wait*2/5*time.Duration(h.Sum32()%1024)/1024
}

// Tried returns what Retry.Of holds for an object whose assignment, or the part of
// it that a try depends on, is given. A change of the spec or of that assignment,
// and a deletion, make it another, which is tried at once.
func Tried(m Meta, assignment any) string {
	h := fnv.New64a()
	_, _ = h.Write(Encode(assignment)) // a hash takes everything
	return fmt.Sprintf("%d-%t-%x", m.Generation, m.DeletedAt != nil, h.Sum64())
}

// Stands reports whether the failed tries were of what is asked for now. Nil: none
// have failed.
func (r *Retry) Stands(of string) bool { return r != nil && r.Of == of }

// Left returns how long the next try has to wait at the given time; 0 if it is due.
// Never is true when it is not to be tried again as it is. A clock that went back
// makes nobody wait longer than a last wait.
func (r *Retry) Left(of string, now time.Time, b Backoff) (wait time.Duration, never bool) {
	if !r.Stands(of) {
		return 0, false
	}
	if r.NextAt == nil {
		return 0, true
	}
	return min(max(r.NextAt.Sub(now), 0), b.Last*6/5), false
}

// After returns the state after a try of the object with that id has failed at the
// given time. One that failed before the next was due changes nothing, so that the
// status is not written more often than the tries are due.
func (r *Retry) After(id, of string, now time.Time, b Backoff) *Retry {
	if wait, never := r.Left(of, now, b); wait > 0 || never {
		return r
	}
	n := &Retry{Attempts: 1, Of: of}
	if r.Stands(of) {
		n.Attempts = r.Attempts + 1
	}
	at := now.UTC().Add(b.Wait(id, n.Attempts)).Truncate(time.Millisecond)
	n.NextAt = &at
	return n
}

// Last returns the state after a try has failed that would fail again: there is no
// other before what is asked for changes.
func (r *Retry) Last(of string) *Retry {
	n := &Retry{Attempts: 1, Of: of}
	if r.Stands(of) {
		n.Attempts = r.Attempts + 1
	}
	return n
}
