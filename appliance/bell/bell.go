// Package bell wakes everybody who waits for a change.
package bell

import "sync"

// Bell can be waited for by any number; it is made by New.
type Bell struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// New bell.
func New() *Bell { return &Bell{ch: make(chan struct{})} }

// Ring wakes all who wait now.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}

// Wait is closed at the next ring: take it before looking at what it tells of.
func (b *Bell) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}
