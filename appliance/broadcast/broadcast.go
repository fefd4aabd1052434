// Package broadcast notifies any number of goroutines that something has changed.
package broadcast

import "sync"

// Broadcaster wakes all goroutines that wait on it. Its methods may be called
// concurrently; create one with New.
type Broadcaster struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

// New returns a Broadcaster without waiting goroutines.
func New() *Broadcaster { return &Broadcaster{next: make(chan struct{})} }

// Broadcast wakes all goroutines that are waiting.
func (b *Broadcaster) Broadcast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}

// Next returns a channel that the next Broadcast closes. To miss no change, call it
// before reading the state whose changes it announces.
func (b *Broadcaster) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}
