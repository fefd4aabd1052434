// Package watchcache is a node's copy of the objects that its components decide on:
// updated by one watch of the store, decoded once, shared by planner, agent and jobs.
//
//	store ─watch─► Cache ─┬─ Subscribe: all current objects (planner, network, storage, …)
//	                      └─ Follow: the changes since the last call (agent)
//
// A watch that breaks continues from the last revision that was received. If the store
// no longer has the changes since then, it sends all objects again.
package watchcache

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// pause is the time before a broken watch is started again.
const pause = 500 * time.Millisecond

// Cache holds the objects. Its methods may be called concurrently.
type Cache struct {
	store objects.Watcher
	kinds []objects.Kind
	log   *slog.Logger

	mu            sync.Mutex   // guards set and subscriptions
	set           *objects.Set // nil until all objects were received
	subscriptions map[*Subscription]struct{}
}

// New returns a Cache of the objects of these kinds; Run fills it. A kind may be given
// more than once.
func New(s objects.Watcher, log *slog.Logger, kinds ...objects.Kind) *Cache {
	return &Cache{store: s, kinds: kinds, log: log, subscriptions: map[*Subscription]struct{}{}}
}

// Run follows the store until ctx ends, and returns its error.
func (c *Cache) Run(ctx context.Context) error {
	var since int64
	for ctx.Err() == nil {
		if err := c.follow(ctx, &since); err != nil && ctx.Err() == nil {
			c.log.Warn("watch store failed, retrying", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return ctx.Err()
}

// follow processes one watch from revision since on, and updates since.
func (c *Cache) follow(ctx context.Context, since *int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.store.WatchKinds(ctx, *since, objects.NewSet(c.kinds...).Kinds()...)
	if err != nil {
		return fmt.Errorf("watch the store: %w", err)
	}
	var incoming *objects.Set // the objects received so far, while the store sends all again
	for e := range events {
		switch {
		case e.Type == api.EventSync:
			if incoming == nil {
				incoming = objects.NewSet(c.kinds...) // the store has no objects of these kinds
			}
			c.replace(incoming)
			incoming = nil
		case e.Revision == 0:
			if incoming == nil {
				incoming = objects.NewSet(c.kinds...)
			}
			c.apply(incoming, e)
		default:
			c.change(e)
		}
		*since = max(*since, e.Revision)
	}
	return nil // this reader was too slow, or the store is closing
}

func (c *Cache) apply(s *objects.Set, e api.Event) (objects.Change, bool) {
	change, changed, err := s.Apply(e)
	if err != nil {
		c.log.Error("decode object failed, leaving it out", "error", err)
	}
	return change, changed
}

// replace replaces all objects.
func (c *Cache) replace(now *objects.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = now
	for s := range c.subscriptions {
		s.reset(now)
	}
}

// change applies the change of one object.
func (c *Cache) change(e api.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change, changed := c.apply(c.set, e); changed {
		for s := range c.subscriptions {
			s.record(change)
		}
	}
}
