package servertest

import (
	"sync"
	"time"
)

// Clock is a clock that a test sets. It is safe for concurrent use: handlers of connections
// that are being closed may still read it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that has stopped at a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
