package invoice

import (
	"time"
)

// Fork returns a rating of the same period up to another time, which continues from the
// usage added to r; r does not change.
func (r *Rating) Fork(to time.Time) *Rating {
	f := *r
	f.shares = r.shares.fork()
	f.to, f.rater, f.names = to.UTC(), r.rater.Fork(), make(map[string]*named, len(r.names))
	for id, n := range r.names {
		copied := *n
		f.names[id] = &copied
	}
	if r.before != nil {
		f.before = r.before.Fork(r.before.to)
	}
	return &f
}

// Size returns the number of charges that the rating holds in memory.
func (r *Rating) Size() int {
	n := r.rater.Charges()
	if r.before != nil {
		n += r.before.Size()
	}
	return n
}
