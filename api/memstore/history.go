package memstore

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// appendHistory appends the entry for a change to the history of its instance.
func (m *Store) appendHistory(before *api.Object, e api.Event, t *txn, asked string) {
	id := api.InstanceID(e.Object.Meta.ID)
	if e.Object.Kind == api.KindInstance && e.Type == api.EventRemove {
		delete(m.histories, id)
		return
	}
	if h := api.HistoryOf(before, e, asked, t.at, true); h != nil {
		all := append(m.histories[id], *h)
		m.histories[id] = all[max(0, len(all)-api.MaxHistory):]
	}
}

// History returns an instance's history, newest first.
func (m *Store) History(ctx context.Context, id api.InstanceID) ([]api.InstanceEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.histories[id])
	slices.Reverse(all)
	return all, ctx.Err()
}
