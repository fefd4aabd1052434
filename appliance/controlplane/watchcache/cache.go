// Package watchcache is a node's copy of the objects that its parts decide on:
// followed by one watch of the store, decoded once, shared by planner, agent and
// jobs.
//
//	store ─watch─► Cache ─┬─ Subscribe: all objects as they are (planner, network, storage, …)
//	                      └─ Follow: what has changed since the last look (agent)
//
// A watch that breaks goes on from the last revision that came. If the store no
// longer knows what changed since then, everything comes anew.
package watchcache

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// pause before a watch that broke is begun anew.
const pause = 500 * time.Millisecond

// Cache holds the objects. Its methods may be called concurrently.
type Cache struct {
	store objects.Watcher
	kinds []objects.Kind
	log   *slog.Logger

	mu            sync.Mutex   // guards what follows
	set           *objects.Set // nil: not everything has come yet
	subscriptions map[*Subscription]struct{}
}

// New returns a Cache of the objects of these kinds; Run fills it. A kind may be
// named several times.
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

// follow one watch from the revision since on, which it moves.
func (c *Cache) follow(ctx context.Context, since *int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.store.WatchKinds(ctx, *since, objects.NewSet(c.kinds...).Kinds()...)
	if err != nil {
		return err
	}
	var anew *objects.Set // what comes, while everything comes anew
	for e := range events {
		switch {
		case e.Type == api.EventSync:
			if anew == nil {
				anew = objects.NewSet(c.kinds...) // there is nothing
			}
			c.replace(anew)
			anew = nil
		case e.Revision == 0:
			if anew == nil {
				anew = objects.NewSet(c.kinds...)
			}
			c.apply(anew, e)
		default:
			c.change(e)
		}
		*since = max(*since, e.Revision)
	}
	return nil // too slow, or the store closes
}

func (c *Cache) apply(s *objects.Set, e api.Event) (objects.Change, bool) {
	change, changed, err := s.Apply(e)
	if err != nil {
		c.log.Error("decode object failed, leaving it out", "error", err)
	}
	return change, changed
}

// replace all objects.
func (c *Cache) replace(now *objects.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = now
	for s := range c.subscriptions {
		s.begin(now)
	}
}

// change one object.
func (c *Cache) change(e api.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change, changed := c.apply(c.set, e); changed {
		for s := range c.subscriptions {
			s.note(change)
		}
	}
}
