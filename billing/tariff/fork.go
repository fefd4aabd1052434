package tariff

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Fork is a rater that goes on from what was added to r, which stays as it is,
// in a period that ends at another time; nil when the beginning would have been
// rated in another way, because commitments hold in one period only.
func (r *Rater) Fork(from, was, to time.Time) *Rater {
	if !slices.Equal(commitments(r.book, from, was), commitments(r.book, from, to)) {
		return nil
	}
	f := &Rater{book: r.book, Piece: r.Piece, last: r.last, begun: r.begun,
		meters: make(map[api.Meter]*counter, len(r.meters)), charges: make(map[Key]*charge, len(r.charges))}
	for k, c := range r.charges {
		copied := *c
		f.charges[k] = &copied
	}
	for m, n := range r.meters {
		copied := *n
		copied.charges = make(map[owner]*charge, len(n.charges))
		for o, c := range n.charges {
			copied.charges[o] = f.charges[c.key]
		}
		f.meters[m] = &copied
	}
	if r.counter != nil {
		f.counter = f.meters[r.last.Meter]
	}
	return f
}

// Charges there are so far.
func (r *Rater) Charges() int { return len(r.charges) }
