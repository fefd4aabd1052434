package hypervisor

import (
	"context"
	"sync"
)

// eventBuffer is how many events a reader may be behind before it is told to
// look at everything instead.
const eventBuffer = 256

// Fanout gives every reader every event, or a Resync in place of those it was
// too slow for. Drivers use it. The zero value is ready.
type Fanout struct {
	mu      sync.Mutex
	readers map[chan Event]struct{}
}

// Subscribe returns a channel that begins with a Resync and is closed when ctx
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

// Send gives e to every reader and never blocks. The last place of a reader's
// buffer is kept for a Resync: once it is taken, whatever is dropped happened
// before the reader comes to that Resync and looks at everything. Nobody else
// writes to the channels, so a place that was free stays free.
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
