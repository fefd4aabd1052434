package invoicing

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// Simulate returns what organizations would have paid by a price book for what they
// used, and what they pay by their own. Each month of an organization's time zone is a
// period of its own. An item that cannot be rated has the reason as its note, and does
// not prevent the others.
func (b Billing) Simulate(ctx context.Context, of api.SimulationQuery) (api.Simulation, error) {
	book, from, to := of.Book, of.From, of.To
	out := api.Simulation{Currency: book.Spec.Currency, Items: []api.SimulatedInvoice{}}
	err := api.Each(ctx, b.Store, api.ListQuery{Kind: api.KindOrganization}, func(o api.Object) error {
		if !of.Has(o.Meta) {
			return nil
		}
		x, err := api.Decode[api.Organization](o)
		if err != nil {
			return err
		}
		item := api.SimulatedInvoice{Organization: api.OrganizationID(o.Meta.ID), Name: o.Meta.Name}
		if item.TotalMicros, err = b.months(ctx, x, from, to, func(time.Time, time.Time) (pricebook.Schedule, error) {
			return pricebook.Always(book.Spec), nil
		}); err != nil {
			item.Note = err.Error()
		}
		own, err := b.priceBook(ctx, item.Organization)
		if err == nil {
			item.OwnCurrency = own.Spec.Currency
			item.OwnMicros, err = b.months(ctx, x, from, to, func(from, to time.Time) (pricebook.Schedule, error) {
				return b.prices(ctx, item.Organization, from, to)
			})
		}
		if err != nil && item.Note == "" {
			item.Note = "by its own price book: " + err.Error()
		}
		out.TotalMicros += item.TotalMicros
		out.Items = append(out.Items, item)
		return ctx.Err()
	})
	return out, err
}

// months rates each month of a period separately, and returns the sum before taxes.
func (b Billing) months(ctx context.Context, org api.Organization, from, to time.Time, by func(from, to time.Time) (pricebook.Schedule, error)) (sum int64, err error) {
	zone := time.UTC
	if org.Spec.Billing != nil {
		if zone, err = org.Spec.Billing.Zone(); err != nil {
			return 0, err
		}
	}
	for from.Before(to) {
		end := invoice.PeriodEnd(from, zone)
		if end.After(to) {
			end = to
		}
		prices, err := by(from, end)
		if err != nil {
			return 0, err
		}
		p, err := b.rate(ctx, api.OrganizationID(org.Meta.ID), prices, invoice.Taxation{}, invoice.Whole(from, end))
		if err != nil {
			return 0, err
		}
		sum += p.TotalMicros
		from = end
	}
	return sum, nil
}
