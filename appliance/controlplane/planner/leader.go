// Package planner runs the planner on the leader: it reads the node's watch cache,
// computes the next commands with package plan, and commits them. It decides nothing
// itself.
//
//	watchcache ─► plan.State ─(a moment later, or a tick)─► plan.Next ─► Apply
//
// A plan reads all objects. In a large cluster that takes a while, and something always
// changes: so after each plan the planner pauses for twice its duration, and leaves
// most of a processor to this node's clients.
package planner

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Store applies what is planned.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Health returns the leader's own ID and its observation of the nodes, which is nil if
// they are not monitored.
type Health func() (self string, health map[string]plan.Health)

const (
	settle         = 10 * time.Millisecond  // events come in groups
	tick           = 5 * time.Second        // nodes fall silent without an event
	healthInterval = 500 * time.Millisecond // between reads of the nodes' health
	// restFactor times the duration of the last plan is the pause before the next, up to
	// maxRest.
	restFactor = 2
	maxRest    = time.Second
	// maxCommands is the most commands in one batch, to keep log entries small.
	maxCommands = 256
)

// Run plans with the objects in the cache until ctx ends, and returns its error. Call
// it while this node is the leader, with a store whose writes are valid in that term
// only. The cache must have plan.Kinds.
func Run(ctx context.Context, c *watchcache.Cache, s Store, health Health, log *slog.Logger) error {
	changes := c.Subscribe(plan.Kinds)
	defer changes.Close()
	l := loop{store: s, health: health, log: log, timer: time.NewTimer(tick)}
	defer l.timer.Stop()
	healthTicker := time.NewTicker(healthInterval)
	defer healthTicker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-healthTicker.C:
			if l.readHealth() {
				l.schedule(0)
			}
		case <-changes.Ready():
			l.schedule(settle)
		case <-l.timer.C:
			l.plan(ctx, changes.View())
		}
	}
}

// loop is the state that Run keeps between plans.
type loop struct {
	store  Store
	health Health
	log    *slog.Logger

	self      string                 // this node
	nodes     map[string]plan.Health // last observation; nil: not monitored
	timer     *time.Timer
	due       bool      // the timer runs for a change
	notBefore time.Time // earliest time of the next plan
}

// schedule plans after d, or when the pause is over. Later changes do not postpone the
// plan.
func (l *loop) schedule(d time.Duration) {
	if !l.due {
		l.due = true
		l.timer.Reset(max(d, time.Until(l.notBefore)))
	}
}

// readHealth reads the nodes' health, and reports whether it has changed. An empty map
// differs from nil: the nodes are monitored now.
func (l *loop) readHealth() (changed bool) {
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

// plan plans once, if the objects (nil until they have arrived) and the nodes' health
// are known.
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
	l.notBefore = time.Now().Add(min(restFactor*time.Since(began), maxRest))
	commit(ctx, l.store, cmds, l.log)
}

// commit applies the plan in batches of commands that belong together: a batch that
// fails, because an object has changed meanwhile, is planned again.
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
	if err != nil {
		return fmt.Errorf("write assignments: %w", err)
	}
	return nil
}
