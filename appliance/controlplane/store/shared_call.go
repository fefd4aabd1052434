package store

import (
	"context"
	"sync"
	"time"
)

// sharedCall shares calls that cost a round trip through the cluster among many
// concurrent callers. At most one is in progress; callers that arrive meanwhile share
// the next one, because the answer to a call that began before they arrived may be
// older than what they must see.
//
//	idle ─call─► in progress ─answer─► idle, or in progress for those who arrived meanwhile
type sharedCall[T any] struct {
	fn    func(context.Context) (T, error)
	limit time.Duration // of one round
	run   func(func()) bool

	mu   sync.Mutex // guards the fields below
	next *round[T]  // not begun yet; nil: no caller waits
	busy bool
}

type round[T any] struct {
	done   chan struct{} // closed when answer and err are set
	answer T
	err    error
}

// call returns the answer of a round that begins after the call did.
func (q *sharedCall[T]) call(ctx context.Context) (answer T, err error) {
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
		return answer, canceled(ctx.Err())
	}
}

// rounds runs rounds until no caller waits.
func (q *sharedCall[T]) rounds() {
	for {
		q.mu.Lock()
		r := q.next
		q.next = nil // later callers get the next round
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
