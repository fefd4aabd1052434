package memstore

import (
	"cmp"
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// recordEvents stores the webhook events of a batch that is about to be committed, and its
// additions to histories.
func (m *Store) recordEvents(t *txn, asked string) {
	was := map[key]*api.Object{}
	for _, e := range t.events {
		k := key{e.Object.Kind, e.Object.Meta.ID}
		before, seen := was[k]
		if o, ok := m.objects[k]; ok && !seen {
			before = &o
		}
		m.told = append(m.told, api.EventsOf(before, e, t.raised[e.Revision], t.at, true)...)
		m.appendHistory(before, e, t, asked)
		if was[k] = &e.Object; e.Type == api.EventRemove {
			was[k] = nil
		}
	}
}

// Events returns one page of the events for webhooks.
func (m *Store) Events(ctx context.Context, q api.EventQuery) (page api.EventPage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	page.Items, page.More, err = trail(m.told, q, q.Limit, func(e api.WebhookEvent) (string, int64) { return e.Organization, e.Seq })
	return page, cmp.Or(err, ctx.Err())
}
