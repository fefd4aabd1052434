package command

import (
	"errors"
	"sync"
	"time"
)

// maxStretch is how many times longer than its limit a program may take.
const maxStretch = 8

// stretched holds the factors of this process' programs.
var stretched stretches

// stretches are the factors by which limits are multiplied, by program. On a
// machine where a program needs longer than its limit, the same limit would
// end each attempt: the factor doubles after a time-out, and halves when the
// program keeps to half of the limit itself. The zero value is 1 for all.
type stretches struct {
	mu sync.Mutex
	by map[string]int
}

// limit returns the limit that a program has now.
func (s *stretches) limit(program string, base time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return base * time.Duration(max(1, s.by[program]))
}

// ended adapts the factor of a program that had the given limit (base is the
// one without the factor). A program that failed after it had tried to connect
// for as long as it may is one that timed out.
func (s *stretches) ended(program string, base, limit, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]int{}
	}
	var failed *Error
	switch {
	case errors.Is(err, ErrTimeout), errors.As(err, &failed) && took >= connectTime(limit):
		// Not more than doubled by many programs that ran at once.
		s.by[program] = min(maxStretch, max(s.by[program], 2*int(limit/base)))
	case err == nil && took < base/2:
		s.by[program] = max(1, s.by[program]/2)
	}
}

// connectTime returns how long ceph may try to connect, in whole seconds.
func connectTime(limit time.Duration) time.Duration {
	return max(time.Second, (limit / 3).Truncate(time.Second))
}
