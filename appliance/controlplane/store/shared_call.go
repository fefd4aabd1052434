package store

import (
	"context"
	"sync"
	"time"
)

// sharedCall asks something that costs a round through the cluster for many
// callers at once. One is under way at most; who comes meanwhile shares the
// next one, because the answer to one that was asked before the caller came may
// be older than what the caller must see.
//
//	idle ─ask─► under way ─answer─► idle, or under way for those who came meanwhile
type sharedCall[T any] struct {
	fn    func(context.Context) (T, error)
	limit time.Duration // of one round
	run   func(func()) bool

	mu   sync.Mutex // guards what is below
	next *round[T]  // not begun yet; nil: nobody waits for it
	busy bool
}

type round[T any] struct {
	done   chan struct{} // closed when the answer stands
	answer T
	err    error
}

// ask is the answer of a round that begins after the call did.
func (q *sharedCall[T]) ask(ctx context.Context) (answer T, err error) {
	q.mu.Lock()
	if q.next == nil {
		q.next = &round[T]{done: make(chan struct{})}
	}
	r := q.next
	if !q.busy {
		if q.busy = q.run(q.rounds); !q.busy {
			q.next = nil
			q.mu.Unlock()
			return answer, closed()
		}
	}
	q.mu.Unlock()
	select {
	case <-r.done:
		return r.answer, r.err
	case <-ctx.Done():
		return answer, gaveUp(ctx.Err())
	}
}

// rounds asks until nobody waits.
func (q *sharedCall[T]) rounds() {
	for {
		q.mu.Lock()
		r := q.next
		q.next = nil // who comes from here on gets the next one
		q.busy = r != nil
		q.mu.Unlock()
		if r == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), q.limit)
		r.answer, r.err = q.fn(ctx)
		cancel()
		close(r.done)
	}
}
