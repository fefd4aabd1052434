// Package planner runs the planners on the leader: it looks at the node's watch
// cache, asks appliance/controlplane/plan what follows, and commits it. It decides
// nothing itself.
//
//	watchcache ─► plan.State ─(a moment later, or a tick)─► plan.Next ─► Apply
//
// A plan looks at everything that there is. In a large cluster that takes a
// while, and something always changes: so planning rests for twice as long as it
// took, and leaves most of a processor to those who ask this node.
package planner

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Store takes what is planned.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Health is what the leader hears of the nodes, and its own id; nil: nobody
// watches them.
type Health func() (self string, health map[string]plan.Health)

const (
	settle = 10 * time.Millisecond  // events come in groups
	tick   = 5 * time.Second        // nodes go silent without an event
	listen = 500 * time.Millisecond // between looks at the nodes' health
	// rest between plans: so many times what the last one took, up to maxRest.
	rest    = 2
	maxRest = time.Second
	// maxCommands in one batch keeps log entries small.
	maxCommands = 256
)

// Run plans from what the cache has until ctx ends, and returns its error. Call it
// while this node is the leader, with a store whose writes hold in that term only.
// The cache must have plan.Kinds.
func Run(ctx context.Context, c *watchcache.Cache, s Store, health Health, log *slog.Logger) error {
	changes := c.Subscribe(plan.Kinds)
	defer changes.Close()
	l := loop{store: s, health: health, log: log, timer: time.NewTimer(tick)}
	defer l.timer.Stop()
	listener := time.NewTicker(listen)
	defer listener.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-listener.C:
			if l.listen() {
				l.soon(0)
			}
		case <-changes.Ready():
			l.soon(settle)
		case <-l.timer.C:
			l.plan(ctx, changes.View())
		}
	}
}

// loop is what Run remembers between plans.
type loop struct {
	store  Store
	health Health
	log    *slog.Logger

	self   string                 // this node
	nodes  map[string]plan.Health // as last heard; nil: nobody watches them
	timer  *time.Timer
	due    bool      // the timer runs for a change
	rested time.Time // to plan again, not before
}

// soon plans in d, or when it has rested. A change after the first does not put
// planning off.
func (l *loop) soon(d time.Duration) {
	if !l.due {
		l.due = true
		l.timer.Reset(max(d, time.Until(l.rested)))
	}
}

// listen asks for the nodes' health, and reports whether it has changed. An empty
// map is news after nil: now somebody watches.
func (l *loop) listen() (changed bool) {
	if l.health == nil {
		return false
	}
	self, now := l.health()
	if self == l.self && (now == nil) == (l.nodes == nil) && maps.Equal(now, l.nodes) {
		return false
	}
	l.self, l.nodes = self, now
	return true
}

// plan once, if the objects (nil: they have not come yet) and the nodes' health are
// known.
func (l *loop) plan(ctx context.Context, all *objects.Set) {
	l.due = false
	l.timer.Reset(tick)
	if all == nil || l.health != nil && l.nodes == nil {
		return
	}
	state := plan.StateOf(all)
	state.Self, state.Health = l.self, l.nodes
	began := time.Now()
	cmds := plan.Next(state, began)
	l.rested = time.Now().Add(min(rest*time.Since(began), maxRest))
	commit(ctx, l.store, cmds, l.log)
}

// commit applies the plan in batches of what belongs together or less: one
// that fails, because an object has changed since, is planned again.
func commit(ctx context.Context, s Store, cmds []api.Command, log *slog.Logger) {
	for groups := plan.Groups(cmds); len(groups) > 0; {
		n, batch := 1, groups[0]
		for ; n < len(groups) && len(batch)+len(groups[n]) <= maxCommands; n++ {
			batch = slices.Concat(batch, groups[n])
		}
		tried := groups[:n]
		groups = groups[n:]
		if err := apply(ctx, s, batch); err == nil {
			continue
		}
		// One stale command must not hold up the others.
		for _, g := range tried {
			if err := apply(ctx, s, g); err != nil && api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
				log.Warn("planned command was rejected", "op", g[0].Op, "id", g[0].ID, "error", err)
			}
		}
	}
}

func apply(ctx context.Context, s Store, cmds []api.Command) error {
	_, err := s.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: cmds})
	return err
}
