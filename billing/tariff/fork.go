package tariff

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Fork returns a rater that continues from the usage added to r, which does not change.
func (r *Rater) Fork() *Rater {
	f := &Rater{book: r.book, Piece: r.Piece, last: r.last, begun: r.begun,
		meters: make(map[api.Meter]*counter, len(r.meters)), charges: make(map[Key]*charge, len(r.charges))}
	for k, c := range r.charges {
		copied := *c
		f.charges[k] = &copied
	}
	for m, n := range r.meters {
		copied := *n
		copied.covers, copied.used = slices.Clone(n.covers), maps.Clone(n.used)
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

// Charges returns the number of charges so far.
func (r *Rater) Charges() int { return len(r.charges) }
