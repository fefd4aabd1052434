package simulation

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// view is the store as one process sees it. It implements agent.Store, and serves as the
// planner's store in one term.
type view struct {
	m    *machine
	p    *proc
	term uint64 // 0: any
}

var errUnavailable = api.Errorf(api.CodeUnavailable, "this node cannot reach most of the cluster")

// ask runs f on the leader at some moment during the call.
func (v view) ask(ctx context.Context, f func() error) error {
	w := v.m.w
	if err := ctx.Err(); err != nil {
		return err
	}
	w.wait(w.between(100*time.Microsecond, 3*time.Millisecond))
	if v.m.store == nil { // a node without a store serves no requests
		return errUnavailable
	}
	for try := 0; ; try++ {
		l := v.p.leader
		if l == nil {
			w.wait(w.between(200*time.Millisecond, time.Second))
			if try < 2 {
				continue
			}
			return errUnavailable
		}
		path := w.net.way(v.m, l)
		if path < 0 || w.net.lost() {
			w.wait(w.between(time.Second, 3*time.Second))
			return errUnavailable
		}
		if l != v.m {
			w.wait(w.net.delay())
		}
		if !l.alive() || !w.raft.leads(l) || !w.net.open(v.m, l, path) || v.term != 0 && v.term != w.raft.term {
			w.wait(w.between(100*time.Millisecond, 2*time.Second))
			return errUnavailable
		}
		err := f()
		if l != v.m {
			w.wait(w.net.delay())
		}
		// The answer may be lost; the effect of f remains.
		if !w.net.open(l, v.m, path) || !l.alive() || w.chance(w.acts.lostAnswers) {
			w.wait(w.between(time.Second, 3*time.Second))
			return errUnavailable
		}
		return err
	}
}

func (v view) Apply(ctx context.Context, b api.Batch) (objects []api.Object, err error) {
	err = v.ask(ctx, func() error {
		objects, err = v.m.w.raft.commit(v.term, b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

func (v view) Get(ctx context.Context, kind api.Kind, id string) (o api.Object, err error) {
	err = v.ask(ctx, func() error {
		o, err = v.m.w.raft.leader.store.Get(kind, id)
		return err
	})
	return o, err
}

func (v view) List(ctx context.Context, q api.ListQuery) (page api.ListPage, err error) {
	err = v.ask(ctx, func() error {
		page, err = v.m.w.raft.leader.store.List(q)
		return err
	})
	return page, err
}

// snapshot returns every object of the kinds from a node's tables.
func (r *raft) snapshot(m *machine, kinds []objects.Kind) *objects.Set {
	all := objects.NewSet(kinds...)
	for _, k := range all.Kinds() {
		page, err := m.store.List(api.ListQuery{Kind: k, Limit: 1000})
		r.check(m, err)
		for _, o := range page.Items {
			_, _, err := all.Apply(api.Event{Type: api.EventPut, Object: o})
			r.check(m, err)
		}
	}
	return all
}
