package ceph

import (
	"context"
	"sync"
)

// keyed is one lock per object, which is removed when it is free. The zero
// value is ready to use.
type keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the lock is released
}

// Lock waits for key until ctx ends; unlock must be called once.
func (k *keyed) Lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		k.mu.Lock()
		busy := k.held[key]
		if busy == nil {
			free := make(chan struct{})
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			k.held[key] = free
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.held, key)
				close(free)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
