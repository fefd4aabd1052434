package invoicing

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/report"
)

// Revenue reads all documents, page by page: only the sums are kept in memory.
func (b Billing) Revenue(ctx context.Context, q api.RevenueQuery) (api.RevenuePage, error) {
	sum, err := report.NewRevenueSum(q)
	if err != nil {
		return api.RevenuePage{}, fmt.Errorf("begin to sum revenue: %w", err)
	}
	names, sellers := map[string]string{}, map[string]api.OrganizationID{}
	err = api.Each(ctx, b.Store, api.ListQuery{Kind: api.KindOrganization}, func(o api.Object) error {
		names[o.Meta.ID], sellers[o.Meta.ID] = o.Meta.Name, api.OrganizationID(o.Meta.Organization)
		return nil
	})
	if err != nil {
		return api.RevenuePage{}, err
	}
	if err := b.addDocuments(ctx, sum, sellers); err != nil {
		return api.RevenuePage{}, err
	}
	page, err := sum.Page()
	if err != nil {
		return page, fmt.Errorf("sum revenue: %w", err)
	}
	if q.By == api.RevenueByOrganization {
		for i := range page.Items {
			page.Items[i].Name = names[page.Items[i].Key]
		}
	}
	return page, nil
}

func (b Billing) addDocuments(ctx context.Context, sum *report.RevenueSum, sellers map[string]api.OrganizationID) error {
	err := api.Each(ctx, b.Store, api.ListQuery{Kind: api.KindInvoice}, func(o api.Object) error {
		inv, err := api.Decode[api.Invoice](o)
		if err == nil {
			sum.AddInvoice(inv)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = api.Each(ctx, b.Store, api.ListQuery{Kind: api.KindCreditNote}, func(o api.Object) error {
		n, err := api.Decode[api.CreditNote](o)
		if err != nil || !sum.WantsCreditNote(n) {
			return err
		}
		inv, err := api.Get[api.Invoice](ctx, b.Store, api.KindInvoice, string(n.Spec.Invoice))
		if err == nil {
			sum.AddCreditNote(n, inv)
		}
		return err
	})
	if err != nil {
		return err
	}
	return api.Each(ctx, b.Store, api.ListQuery{Kind: api.KindPayment}, func(o api.Object) error {
		p, err := api.Decode[api.Payment](o)
		if err == nil {
			sum.AddPayment(p, sellers[o.Meta.Organization])
		}
		return err
	})
}
