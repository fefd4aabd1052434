package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

const (
	// watchBuffer is how many events wait in a watch's channel. Others stay in the
	// change log: a slow reader uses no memory.
	watchBuffer = 64
	// snapshotTime bounds how long a reader may take to receive the objects at the
	// beginning: the tables' file cannot reuse its old pages meanwhile.
	snapshotTime = 30 * time.Second
)

// Watch streams the changes after the revision since, in order and without a gap. From
// 0, from before the change log, or from after the current revision it begins with a
// put of every object (Revision 0) and a sync. The channel is closed when ctx ends,
// when the store closes, and when the reader is so slow that the change log no longer
// has its next change: then watch again from the last revision that was received.
func (s *Store) Watch(ctx context.Context, since int64) (<-chan api.Event, error) {
	return s.WatchKinds(ctx, since)
}

// WatchKinds is like Watch, for objects of these kinds only; without kinds, for all.
func (s *Store) WatchKinds(ctx context.Context, since int64, kinds ...api.Kind) (<-chan api.Event, error) {
	if err := s.awaitCurrent(ctx); err != nil {
		return nil, err
	}
	select {
	case s.watches <- struct{}{}:
	default:
		return nil, api.Errorf(api.CodeRateLimited, "too many watches: %d are open", maxWatches).WithHint("close some")
	}
	v, end, err := s.tables.begin()
	if err != nil {
		<-s.watches
		return nil, s.domainError(err)
	}
	w := &watch{s: s, ctx: ctx, out: make(chan api.Event, watchBuffer), since: since, kinds: kinds}
	run := func() {
		defer func() { <-s.watches }()
		defer close(w.out)
		w.run(v, end)
	}
	if !s.run(run) {
		end()
		<-s.watches
		return nil, closed()
	}
	return w.out, nil
}

// watch is one reader of changes.
//
//	snapshot ─► sync ─► follow ⟲ news     since in the change log: follow at once
type watch struct {
	s     *Store
	ctx   context.Context
	out   chan api.Event
	since int64 // everything up to this revision was sent
	kinds []api.Kind
}

func (w *watch) wants(k api.Kind) bool { return len(w.kinds) == 0 || slices.Contains(w.kinds, k) }

func (w *watch) run(v state.View, end func()) {
	ok := true
	err := w.s.tables.guard(func() error {
		if w.since <= 0 || w.since < v.Oldest()-1 || w.since > v.Revision() {
			ok = w.snapshot(v)
		}
		return nil
	})
	end()
	if err == nil && ok {
		w.follow()
	}
}

// snapshot sends every object, then the sync.
func (w *watch) snapshot(v state.View) bool {
	deadline := time.After(snapshotTime)
	sent := true
	err := v.Each(w.kinds, func(o api.Object) bool {
		sent = w.send(api.Event{Type: api.EventPut, Object: o}, deadline)
		return sent
	})
	if err != nil {
		w.s.options.Log.Error("store: watch failed", "error", err)
	}
	if err != nil || !sent {
		return false
	}
	w.since = v.Revision()
	return w.send(api.Event{Type: api.EventSync, Revision: w.since}, deadline)
}

// follow sends changes as they are applied.
func (w *watch) follow() {
	for {
		more := w.s.fsm.news.Next()
		events, last, ok := w.batch()
		if !ok {
			return
		}
		for _, e := range events {
			if !w.send(e, nil) {
				return
			}
		}
		if last == w.since && !w.sleep(more) {
			return
		}
		w.since = last
	}
}

// batch reads the next changes, up to the revision last; ok is false if some have left
// the change log.
func (w *watch) batch() (events []api.Event, last int64, ok bool) {
	err := w.s.tables.read(func(v state.View) (err error) {
		if ok = w.since >= v.Oldest()-1 && w.since <= v.Revision(); !ok {
			return nil
		}
		if events, last, err = v.Changes(w.since, watchBuffer, w.wants); err != nil {
			return fmt.Errorf("read the changes after revision %d: %w", w.since, err)
		}
		return nil
	})
	if err != nil {
		w.s.options.Log.Error("store: watch failed", "error", err)
		return nil, 0, false
	}
	return events, last, ok
}

func (w *watch) send(e api.Event, deadline <-chan time.Time) bool {
	select {
	case w.out <- e:
		return true
	case <-w.ctx.Done():
	case <-w.s.closing:
	case <-deadline:
	}
	return false
}

func (w *watch) sleep(more <-chan struct{}) bool {
	select {
	case <-more:
		return true
	case <-w.ctx.Done():
	case <-w.s.closing:
	}
	return false
}
