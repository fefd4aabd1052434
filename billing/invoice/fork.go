package invoice

import (
	"time"
)

// Fork is a rating of the same period up to another moment, which goes on from what
// was added to r; r stays as it is.
func (r *Rating) Fork(to time.Time) *Rating {
	f := *r
	f.shares = r.shares.fork()
	f.to, f.rater, f.names = to.UTC(), r.rater.Fork(), make(map[string]*named, len(r.names))
	for id, n := range r.names {
		copied := *n
		f.names[id] = &copied
	}
	return &f
}

// Size is how much the rating holds in memory, in charges.
func (r *Rating) Size() int { return r.rater.Charges() }
