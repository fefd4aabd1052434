package main

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/store"
	"github.com/basalt-gpu/basalt/billing"
)

// books is server.Billing over the store's records.
type books struct{ store *store.Store }

func (b books) InvoicePreview(ctx context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error) {
	book, err := b.priceBook(ctx, org)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	records, err := list[api.UsageRecord](ctx, b.store, api.ListQuery{Kind: api.KindUsageRecord, Organization: string(org)})
	if err != nil {
		return api.InvoicePreview{}, err
	}
	inv, err := billing.Preview(org, records, book.Spec, from, to)
	return inv.API(), err
}

// priceBook is the one that the organization names, or the one named default.
func (b books) priceBook(ctx context.Context, org api.OrganizationID) (api.PriceBook, error) {
	o, err := b.store.Get(ctx, api.KindOrganization, string(org))
	if err != nil {
		return api.PriceBook{}, err
	}
	owner, err := api.Decode[api.Organization](o)
	if err != nil {
		return api.PriceBook{}, err
	}
	if id := owner.Spec.PriceBook; id != "" {
		o, err := b.store.Get(ctx, api.KindPriceBook, string(id))
		if err != nil {
			return api.PriceBook{}, err
		}
		return api.Decode[api.PriceBook](o)
	}
	all, err := list[api.PriceBook](ctx, b.store, api.ListQuery{Kind: api.KindPriceBook, Name: "default"})
	if err != nil {
		return api.PriceBook{}, err
	}
	if len(all) == 0 {
		return api.PriceBook{}, api.Errorf(api.CodeState, "there is no price book named default").
			WithHint("make one, or name one in the organization's spec.priceBook")
	}
	return all[0], nil
}

// list reads every page.
func list[T any](ctx context.Context, s *store.Store, q api.ListQuery) ([]T, error) {
	q.Limit = 1000
	var all []T
	for {
		page, err := s.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			t, err := api.Decode[T](o)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		if page.Continue == "" {
			return all, nil
		}
		q.Continue = page.Continue
	}
}
