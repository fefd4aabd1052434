package invoicing

import (
	"context"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// prices returns the prices by which an organization pays for the hours of a period:
// for invoiced hours those of the invoice, for others the versions of its price books
// that were in effect.
func (b Billing) prices(ctx context.Context, org api.OrganizationID, from, to time.Time) (pricebook.Schedule, error) {
	invoices, err := api.All[api.Invoice](ctx, b.Store, api.ListQuery{Kind: api.KindInvoice, Organization: string(org)})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(invoices, func(a, b api.Invoice) int { return a.Spec.From.Compare(b.Spec.From) })
	var out pricebook.Schedule
	add := func(s pricebook.Schedule, from time.Time) {
		s = slices.Clone(s)
		s[0].From = from
		out = append(out, s...)
	}
	at := from
	for _, inv := range invoices {
		begin, end := inv.Spec.From, inv.Spec.To
		if !end.After(at) || !begin.Before(to) {
			continue
		}
		if begin.After(at) {
			open, err := b.held(ctx, org, at, begin)
			if err != nil {
				return nil, err
			}
			add(open, at)
			at = begin
		}
		if end.After(to) {
			end = to
		}
		add(pricebook.Of(inv.Spec).Within(at, end), at)
		at = end
	}
	if at.Before(to) {
		open, err := b.held(ctx, org, at, to)
		if err != nil {
			return nil, err
		}
		add(open, at)
	}
	return out, nil
}

// held returns the prices of the organization's price books that were in effect in a
// period.
func (b Billing) held(ctx context.Context, org api.OrganizationID, from, to time.Time) (pricebook.Schedule, error) {
	owner, err := api.Get[api.Organization](ctx, b.Store, api.KindOrganization, string(org))
	if err != nil {
		return nil, err
	}
	var out pricebook.Schedule
	assigned := owner.Spec.Assignments()
	for i, a := range assigned {
		begin, end := from, to
		if i > 0 && a.From.After(from) {
			begin = a.From
		}
		if i+1 < len(assigned) && assigned[i+1].From.Before(to) {
			end = assigned[i+1].From
		}
		if !begin.Before(end) {
			continue
		}
		versions, err := b.versions(ctx, a.PriceBook, begin, end)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			versions[0].From = begin
		}
		out = append(out, versions...)
	}
	return out, nil
}

// versions returns the versions of a price book that were in effect in a period.
func (b Billing) versions(ctx context.Context, id api.PriceBookID, from, to time.Time) (pricebook.Schedule, error) {
	book, err := b.book(ctx, id)
	var spec api.PriceBookSpec
	switch {
	case err == nil:
		id, spec = api.PriceBookID(book.Meta.ID), book.Spec
	case api.CodeOf(err) == api.CodeNotFound: // the price book was deleted
		if spec, err = b.version(ctx, api.LastPriceBookVersionID(id)); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	all := pricebook.Schedule{{From: spec.EffectiveFrom, PriceBook: id, Prices: spec}}
	for spec.EffectiveFrom.After(from) { // each begins at a later hour than the version before
		if spec, err = b.version(ctx, api.PriceBookVersionID(id, spec.Version-1)); err != nil {
			return nil, err
		}
		all = append(all, api.PriceEdition{From: spec.EffectiveFrom, PriceBook: id, Prices: spec})
	}
	slices.Reverse(all)
	return slices.Clone(all.Within(from, to)), nil
}

// version returns a stored version of a price book.
func (b Billing) version(ctx context.Context, id string) (api.PriceBookSpec, error) {
	v, err := api.Get[api.PriceBookVersion](ctx, b.Store, api.KindPriceBookVersion, id)
	return v.Spec.Prices, err
}

// PricesOf returns the prices by which an organization pays for an hour; without an
// organization those of the price book named default.
func (b Billing) PricesOf(ctx context.Context, org api.OrganizationID, hour time.Time) (pricebook.Schedule, error) {
	if org == "" {
		return b.versions(ctx, "", hour, hour.Add(time.Hour))
	}
	return b.held(ctx, org, hour, hour.Add(time.Hour))
}
