package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// record applies a command about usage records; done reports whether it was one.
func (t *txn) record(c api.Command) (o api.Object, done bool, err error) {
	switch c.Op {
	case api.OpRecord:
		r, err := api.RecordOf(c, t.at)
		if err != nil {
			return o, true, err
		}
		t.records = append(t.records, r)
	case api.OpExpire:
		before, err := api.ExpiryOf(c, t.at)
		if err != nil {
			return o, true, err
		}
		t.expiries = append(t.expiries, api.RecordPlace{Organization: c.Organization, End: before})
	default:
		return o, false, nil
	}
	return api.Object{Kind: c.Kind, Meta: api.Meta{ID: c.ID, Organization: c.Organization, Project: c.Project}}, true, nil
}

// applyRecords stores the records of a batch, and removes those that it expires.
func (m *Store) applyRecords(t *txn) {
	for _, r := range t.records {
		if r.Spec.End.Before(m.horizon) {
			continue
		}
		all, p := m.records[r.Meta.Organization], api.PlaceOf(r)
		i, known := slices.BinarySearchFunc(all, p, func(r api.UsageRecord, p api.RecordPlace) int { return api.PlaceOf(r).Compare(p) })
		if !known {
			m.records[p.Organization] = slices.Insert(all, i, r)
			m.rollUp(r)
		}
	}
	for _, e := range t.expiries {
		if e.End.After(m.horizon) {
			m.horizon = e.End
		}
		all := m.records[e.Organization]
		n := 0
		for n < len(all) && n < expireMost && all[n].Spec.End.Before(e.End) {
			n++
		}
		m.records[e.Organization] = slices.Delete(all, 0, n)
	}
}

// expireMost limits the records that one command removes.
const expireMost = 4096

// Records returns one page of usage records.
func (m *Store) Records(ctx context.Context, q api.RecordQuery) (page api.RecordPage, err error) {
	if err := cmp.Or(ctx.Err(), q.Check()); err != nil {
		return page, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, organization := range slices.Sorted(maps.Keys(m.records)) {
		if q.Organization != "" && q.Organization != organization {
			continue
		}
		for _, r := range m.records[organization] {
			if !q.Has(r) || (q.After != api.RecordPlace{}) && api.PlaceOf(r).Compare(q.After) <= 0 {
				continue
			}
			if page.More = len(page.Items) == q.Limit; page.More {
				return page, nil
			}
			page.Items, page.Next = append(page.Items, r), api.PlaceOf(r)
		}
	}
	return page, nil
}
