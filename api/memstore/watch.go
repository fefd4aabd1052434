package memstore

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// maxBacklog limits how many changes a watcher may be behind.
const maxBacklog = 1024

// watcher passes events from writers, which never wait, to one reader.
type watcher struct {
	changes chan []api.Event // closed by the writer when full
}

func (w *watcher) push(events []api.Event) bool {
	if len(events) == 0 {
		return true
	}
	select {
	case w.changes <- events:
		return true
	default:
		close(w.changes)
		return false
	}
}

// Watch streams changes as package storetest specifies.
func (m *Store) Watch(ctx context.Context, since int64) (<-chan api.Event, error) {
	return m.WatchKinds(ctx, since)
}

// WatchKinds is Watch for objects of these kinds only; none means all.
func (m *Store) WatchKinds(ctx context.Context, since int64, kinds ...api.Kind) (<-chan api.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.backlog(since)
	w := &watcher{changes: make(chan []api.Event, maxBacklog)}
	m.watchers[w] = struct{}{}
	out := make(chan api.Event, 64)
	go func() {
		defer close(out)
		defer m.forget(w)
		for events := first; ; {
			for _, e := range events {
				if e.Type != api.EventSync && len(kinds) > 0 && !slices.Contains(kinds, e.Object.Kind) {
					continue
				}
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
			}
			var ok bool
			select {
			case events, ok = <-w.changes:
				if !ok {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// backlog returns the events that a watch from since starts with.
func (m *Store) backlog(since int64) []api.Event {
	oldest := m.revision - int64(len(m.history)) // resuming after this one is possible
	if since > 0 && since >= oldest && since <= m.revision {
		return slices.Clone(m.history[since-oldest:])
	}
	events := make([]api.Event, 0, len(m.objects)+1)
	for _, o := range m.objects {
		events = append(events, api.Event{Type: api.EventPut, Object: o})
	}
	return append(events, api.Event{Revision: m.revision, Type: api.EventSync})
}

func (m *Store) forget(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watchers, w)
}
