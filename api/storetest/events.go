package storetest

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// tell keeps the events of a batch that is about to be committed.
func (m *Memory) tell(t *txn) {
	was := map[key]*api.Object{}
	for _, e := range t.events {
		k := key{e.Object.Kind, e.Object.Meta.ID}
		before, seen := was[k]
		if o, ok := m.objects[k]; ok && !seen {
			before = &o
		}
		m.told = append(m.told, api.EventsOf(before, e, t.raised[e.Revision], t.at)...)
		if was[k] = &e.Object; e.Type == api.EventRemove {
			was[k] = nil
		}
	}
}

// Events is one page of the events for webhooks.
func (m *Memory) Events(ctx context.Context, q api.EventQuery) (page api.EventPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "the limit is 1 to %d", maxList).At("limit")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.told)
	if q.Newest {
		slices.Reverse(all)
	}
	page.Items = []api.WebhookEvent{}
	for _, e := range all {
		if q.Organization != "" && e.Organization != q.Organization ||
			q.After > 0 && (q.Newest && e.Seq >= q.After || !q.Newest && e.Seq <= q.After) {
			continue
		}
		if len(page.Items) == q.Limit {
			page.More = true
			break
		}
		page.Items = append(page.Items, e)
	}
	return page, ctx.Err()
}
