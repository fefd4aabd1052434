// Package planner runs the planners on the leader: it follows the store, asks
// appliance/controlplane/plan what follows, and commits it. It decides nothing itself.
//
//	watch ─► plan.State ─(a moment later, or a tick)─► plan.Next ─► Apply
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
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
)

// Store is what the leader needs of the cluster's state.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
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

// Run plans until ctx ends. Call it while this node is the leader, with a store
// whose writes hold in that term only.
func Run(ctx context.Context, s Store, health Health, log *slog.Logger) error {
	for ctx.Err() == nil {
		if err := follow(ctx, s, health, log); err != nil && ctx.Err() == nil {
			log.Warn("planner", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// follow builds the state anew and plans until the watch breaks.
func follow(ctx context.Context, s Store, health Health, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := s.Watch(ctx, 0)
	if err != nil {
		return err
	}
	state := plan.NewState()
	synced := false
	timer := time.NewTimer(tick)
	defer timer.Stop()
	due := false        // the timer runs for a change
	var ready time.Time // to plan again, not before
	soon := func(d time.Duration) {
		if !due { // a change after the first does not put it off
			due = true
			timer.Reset(max(d, time.Until(ready)))
		}
	}
	ears := time.NewTicker(listen)
	defer ears.Stop()
	for {
		select {
		case <-ears.C:
			if health == nil {
				continue
			}
			self, now := health()
			// An empty map is news after nil: now somebody watches.
			if self != state.Self || (now == nil) != (state.Health == nil) || !maps.Equal(now, state.Health) {
				state.Self, state.Health = self, now
				soon(0)
			}
		case e, ok := <-events:
			if !ok {
				return ctx.Err() // too slow: start anew
			}
			if e.Type == api.EventSync {
				synced = true
				soon(0)
				continue
			}
			cares, err := state.Apply(e)
			if err != nil {
				log.Error("an object that cannot be read is not planned for", "error", err)
			}
			if cares && synced {
				soon(settle)
			}
		case <-timer.C:
			due = false
			timer.Reset(tick)
			if synced && (health == nil || state.Health != nil) {
				began := time.Now()
				cmds := plan.Next(state, began)
				ready = time.Now().Add(min(rest*time.Since(began), maxRest))
				commit(ctx, s, cmds, log)
			}
		}
	}
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
				log.Warn("a planned command was refused", "op", g[0].Op, "id", g[0].ID, "error", err)
			}
		}
	}
}

func apply(ctx context.Context, s Store, cmds []api.Command) error {
	_, err := s.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: cmds})
	return err
}
