package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// owned is an organization's usage.
type owned struct {
	organization string
	api.Use
}

func (o owned) compare(p owned) int {
	return cmp.Or(cmp.Compare(o.organization, p.organization), o.Compare(p.Use))
}

// rollUp adds a new usage record to the usage of its hour.
func (m *Store) rollUp(r api.UsageRecord) {
	u, _ := api.UseOf(r) // valid records have usage
	m.touches.Note(api.TouchNote{Organization: r.Meta.Organization, Kind: api.KindUsageRecord, Hour: u.Hour})
	row := owned{r.Meta.Organization, u}
	i, found := slices.BinarySearchFunc(m.use, row, owned.compare)
	if found {
		m.use[i].Use = m.use[i].Plus(u)
		return
	}
	m.use = slices.Insert(m.use, i, row)
}

// Use returns one page of an organization's usage.
func (m *Store) Use(ctx context.Context, q api.UseQuery) (page api.UsePage, err error) {
	if err := cmp.Or(ctx.Err(), q.Check()); err != nil {
		return page, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.use {
		if row.organization != q.Organization || !q.Has(row.Use) {
			continue
		}
		if page.More = len(page.Items) == q.Limit; page.More {
			break
		}
		page.Items = append(page.Items, row.Use)
	}
	return page, nil
}

// checkUse refuses commands for organizations with usage since the commands' marks.
func (m *Store) checkUse(all []api.Command) error {
	for _, c := range all {
		if c.Used == nil {
			continue
		}
		now := api.UseMark{From: c.Used.From}
		for _, row := range m.use {
			if row.organization == c.ID && !row.Hour.Before(now.From) {
				now.Add(row.Use)
			}
		}
		if refused := api.UsedSince(c, now); refused != nil {
			return refused
		}
	}
	return nil
}
