package lease

import (
	"context"
	"sync"
	"time"
)

// verifyLimit is the time limit of one verification.
const verifyLimit = 5 * time.Second

// rounds shares verifications of leadership: each caller gets the result of a
// verification that began after its call, and at most one runs at a time.
//
//	ask ─► waits for the next round ─► round runs ─► all that waited before it
type rounds struct {
	verify func(context.Context) (term uint64, err error)

	mu      sync.Mutex
	running bool
	next    *round // the round that callers join; nil if no caller waits
}

type round struct {
	done chan struct{}
	term uint64
	err  error
}

// ask waits for a verification that begins after the call.
func (r *rounds) ask(ctx context.Context) (uint64, error) {
	mine := r.join()
	select {
	case <-mine.done:
		return mine.term, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// join returns the next round to begin.
func (r *rounds) join() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	if !r.running {
		r.running = true
		go r.run()
	}
	return r.next
}

func (r *rounds) run() {
	for {
		r.mu.Lock()
		now := r.next
		r.next = nil
		if now == nil {
			r.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), verifyLimit)
		now.term, now.err = r.verify(ctx)
		cancel()
		close(now.done)
	}
}
