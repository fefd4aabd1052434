package simulation

import (
	"context"
	"maps"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
)

// Intervals of appliance/controlplane/planner.
const (
	planListen = 500 * time.Millisecond
	planTick   = 5 * time.Second
)

// plan runs the loop of appliance/controlplane/planner in virtual time, for one term.
func (p *proc) plan(t *thread, term uint64) {
	store := view{m: p.m, p: p, term: term}
	if p.m.store == nil || !p.w.raft.apply(p.m) {
		return
	}
	all, pos := p.w.raft.snapshot(p.m, plan.Kinds), p.w.raft.logged(p.m)
	state := plan.StateOf(all)
	listen, tick := p.w.now, p.w.now
	for p.term == term {
		due := false
		for logged := p.w.raft.logged(p.m); pos < logged; pos++ {
			_, changed, _ := all.Apply(p.w.raft.log[pos]) // committed checks that it can be decoded
			due = due || changed
		}
		if p.w.now >= listen {
			listen = p.w.now + planListen
			p.book.Members(p.m.clock(), p.members())
			if now := p.health(term); state.Self == "" || !maps.Equal(now, state.Health) || state.Health == nil {
				state.Self, state.Health, due = string(p.m.id), now, true
			}
		}
		if p.w.now >= tick {
			due = true
		}
		if due && state.Health != nil {
			tick = p.w.now + planTick
			p.commit(store, plan.Next(state, p.m.wall()))
		}
		t.sleep(p.w.between(20*time.Millisecond, 150*time.Millisecond))
	}
}

// commit writes planned commands, as appliance/controlplane/planner does.
func (p *proc) commit(store view, cmds []api.Command) {
	if len(cmds) == 0 {
		return
	}
	apply := func(cmds ...api.Command) error {
		_, err := store.Apply(context.Background(), api.Batch{At: p.m.wall().UTC(), Commands: cmds})
		return err
	}
	if apply(cmds...) == nil {
		return
	}
	for _, g := range plan.Groups(cmds) {
		if err := apply(g...); err != nil && api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
			p.w.logf(p.m.name(), "planned commands were refused: %v", err)
			if api.CodeOf(err) == api.CodeUnavailable {
				return
			}
		}
	}
}
