package memstore

import (
	"cmp"
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// appendAudit appends the audit event of a batch that has changed something.
func (m *Store) appendAudit(n *api.AuditNote, t *txn) {
	if n == nil || len(t.events) == 0 {
		return
	}
	e := api.AuditEvent{Seq: int64(len(m.audit)) + 1, At: t.at, Actor: n.Actor, Name: n.Name, Role: n.Role, From: n.From, Operation: n.Operation, Objects: []api.AuditObject{}}
	for i, c := range t.events {
		o := c.Object
		if i == 0 {
			e.Organization, e.Project = o.Meta.Organization, o.Meta.Project
			if o.Kind == api.KindOrganization {
				e.Organization = o.Meta.ID
			}
			if o.Kind == api.KindProject {
				e.Project = o.Meta.ID
			}
			if o.Kind == api.KindSession {
				e.Project = ""
			}
		}
		if i < api.MaxAuditObjects {
			e.Objects = append(e.Objects, api.AuditObject{Kind: o.Kind, ID: o.Meta.ID, Name: o.Meta.Name, Removed: c.Type == api.EventRemove, Revision: c.Revision})
		} else {
			e.More++
		}
	}
	var last api.AuditEvent
	if len(m.audit) > 0 {
		last = m.audit[len(m.audit)-1]
	}
	m.audit = append(m.audit, e.Chain(last.Hash).Sealed(memoryKey))
}

// memoryKey seals the audit events of all memory stores.
var memoryKey = []byte("a key that tests know")

// Audit returns one page of the audit log.
func (m *Store) Audit(ctx context.Context, q api.AuditQuery) (page api.AuditPage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := func(e api.AuditEvent) (string, int64) { return e.Organization, e.Seq }
	page.Items = []api.AuditEvent{}
	looked, more, err := trail(m.audit, api.EventQuery{Organization: q.Organization, After: q.After, Newest: q.Newest, Limit: q.Limit}, api.MaxAuditScan, of)
	for _, e := range looked {
		if len(page.Items) == q.Limit {
			more = true
			break
		}
		if page.Last = e.Seq; q.Only.Wants(e) {
			page.Items = append(page.Items, e)
		}
	}
	page.More = more
	return page, cmp.Or(err, ctx.Err())
}
