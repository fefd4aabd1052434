package hypervisor

import (
	"context"
	"sync"
)

// eventBuffer is how many events a reader may be behind before it receives a
// Resync instead.
const eventBuffer = 256

// Fanout sends every event to every reader, or a Resync in place of the events
// that a slow reader missed. Drivers use it. The zero value is ready to use,
// also by several goroutines.
type Fanout struct {
	mu      sync.Mutex
	readers map[chan Event]struct{}
}

// Subscribe returns a channel that starts with a Resync and is closed when ctx
// ends.
func (f *Fanout) Subscribe(ctx context.Context) <-chan Event {
	ch := make(chan Event, eventBuffer)
	ch <- Event{Type: EventResync}
	f.mu.Lock()
	if f.readers == nil {
		f.readers = map[chan Event]struct{}{}
	}
	f.readers[ch] = struct{}{}
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.readers, ch)
		close(ch)
	})
	return ch
}

// Send sends e to every reader and never blocks. The last place of a reader's
// buffer is reserved for a Resync: once it is used, every dropped event
// happened before the reader receives that Resync and checks everything. Only
// Send writes to the channels, with the lock held, so a free place stays free.
func (f *Fanout) Send(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.readers {
		switch cap(ch) - len(ch) {
		case 0:
		case 1:
			ch <- Event{Type: EventResync}
		default:
			ch <- e
		}
	}
}
