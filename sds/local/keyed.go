package local

import (
	"context"
	"sync"
)

// keyed is one lock per object, created on demand and removed when it is free.
// The zero value is ready to use.
type keyed struct {
	mu   sync.Mutex
	held map[string]*entry
}

type entry struct {
	sem  chan struct{} // holds a token while locked
	refs int           // holders and waiters
}

// Lock waits for key until ctx ends; unlock must be called once.
func (k *keyed) Lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*entry{}
	}
	e := k.held[key]
	if e == nil {
		e = &entry{sem: make(chan struct{}, 1)}
		k.held[key] = e
	}
	e.refs++
	k.mu.Unlock()
	release := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if e.refs--; e.refs == 0 {
			delete(k.held, key)
		}
	}
	select {
	case e.sem <- struct{}{}:
		return func() { <-e.sem; release() }, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}
