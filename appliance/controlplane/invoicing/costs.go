package invoicing

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// Costs returns one page of what an organization's usage of a period costs, by the
// prices of InvoicePreview.
func (b Billing) Costs(ctx context.Context, q api.CostQuery) (api.CostPage, error) {
	if err := q.Check(); err != nil {
		return api.CostPage{}, err
	}
	prices, err := b.prices(ctx, q.Organization, q.From, q.To)
	if err != nil {
		return api.CostPage{}, err
	}
	c, err := invoice.NewCosting(q, prices)
	if err != nil {
		return api.CostPage{}, fmt.Errorf("begin to sum the costs of organization %s: %w", q.Organization, err)
	}
	taxes, err := b.taxation(ctx, q.Organization, q.From, q.To)
	if err != nil {
		return api.CostPage{}, err
	}
	c.SetTaxation(taxes)
	if err := b.add(ctx, q.Organization, q.From, q.To, c.Add); err != nil {
		return api.CostPage{}, err
	}
	page, err := c.Costs()
	if err != nil {
		return page, fmt.Errorf("sum the costs of organization %s: %w", q.Organization, err)
	}
	if q.By == api.CostByProject {
		err = b.nameProjects(ctx, page.Items)
	}
	return page, err
}

// nameProjects sets the names of projects that still exist.
func (b Billing) nameProjects(ctx context.Context, costs []api.Cost) error {
	names := map[string]string{}
	for i, c := range costs {
		name, known := names[c.Key]
		if !known && c.Key != "" {
			p, err := find[api.Project](ctx, b.Store, api.KindProject, c.Key)
			if err != nil {
				return err
			}
			name = p.Meta.Name
			names[c.Key] = name
		}
		costs[i].Name = name
	}
	return nil
}
