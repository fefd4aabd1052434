package invoice

import (
	"time"
)

// Fork is a rating of the same beginning up to another end, which goes on from
// what was added to r; r stays as it is. Nil when it has to be begun anew.
func (r *Rating) Fork(to time.Time) *Rating {
	rater := r.rater.Fork(r.from, r.to, to)
	if rater == nil {
		return nil
	}
	f := *r
	f.to, f.rater, f.names = to.UTC(), rater, make(map[string]*named, len(r.names))
	for id, n := range r.names {
		copied := *n
		f.names[id] = &copied
	}
	return &f
}

// Size is how much the rating holds in memory, in charges.
func (r *Rating) Size() int { return r.rater.Charges() }
