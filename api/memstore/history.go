package memstore

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// chronicle appends the entry for a change to the history of its instance.
func (m *Store) chronicle(before *api.Object, e api.Event, t *txn, asked string) {
	id := api.InstanceID(e.Object.Meta.ID)
	if e.Object.Kind == api.KindInstance && e.Type == api.EventRemove {
		delete(m.chronicles, id)
		return
	}
	if h := api.HistoryOf(before, e, asked, t.at); h != nil {
		all := append(m.chronicles[id], *h)
		m.chronicles[id] = all[max(0, len(all)-api.MaxHistory):]
	}
}

// History returns an instance's history, newest first.
func (m *Store) History(ctx context.Context, id api.InstanceID) ([]api.InstanceEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.chronicles[id])
	slices.Reverse(all)
	return all, ctx.Err()
}
