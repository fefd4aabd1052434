// Package invoicing computes what was used and what it costs, from the store, and
// issues the invoices of each month on the leader (job.go). Package billing decides;
// this package reads and writes.
package invoicing

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/report"
)

// Store is what Billing reads from.
type Store interface {
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Use(ctx context.Context, q api.UseQuery) (api.UsePage, error)
	Records(ctx context.Context, q api.RecordQuery) (api.RecordPage, error)
}

// Billing implements server.Billing over a store.
type Billing struct{ Store Store }

// InvoicePreview returns what an organization's use of a period costs: for hours that
// were invoiced by the prices of the invoice, for others by those that were in effect.
func (b Billing) InvoicePreview(ctx context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error) {
	prices, err := b.prices(ctx, org, from, to)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	taxes, err := b.taxation(ctx, org, from, to)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	return b.rate(ctx, org, prices, taxes, invoice.Whole(from, to))
}

// rate rates the use of a period by prices and taxes.
func (b Billing) rate(ctx context.Context, org api.OrganizationID, prices pricebook.Schedule, taxes invoice.Taxation, p invoice.Period) (api.InvoicePreview, error) {
	r, err := invoice.NewRating(org, prices, p)
	if err != nil {
		return api.InvoicePreview{}, fmt.Errorf("begin to rate the use of organization %s: %w", org, err)
	}
	r.SetTaxation(taxes)
	if err := b.add(ctx, org, p.Start, p.To, r.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	return rated(org, r)
}

// rated returns what a rating of the use of an organization results in.
func rated(org api.OrganizationID, r *invoice.Rating) (api.InvoicePreview, error) {
	p, err := r.Invoice()
	if err != nil {
		return api.InvoicePreview{}, fmt.Errorf("rate the use of organization %s: %w", org, err)
	}
	return p, nil
}

// Explain returns the hours that a line consists of, and reads the records of one hour
// if it is given.
func (b Billing) Explain(ctx context.Context, q api.InvoiceQuestion) (api.InvoiceExplanation, error) {
	prices, err := b.prices(ctx, q.Organization, q.From, q.To)
	if err != nil {
		return api.InvoiceExplanation{}, err
	}
	r, err := invoice.NewDetailedRating(q, invoice.Whole(q.From, q.To), prices)
	if err != nil {
		return api.InvoiceExplanation{}, fmt.Errorf("begin to explain line %s of organization %s: %w", q.Line, q.Organization, err)
	}
	taxes, err := b.taxation(ctx, q.Organization, q.From, q.To)
	if err != nil {
		return api.InvoiceExplanation{}, err
	}
	r.SetTaxation(taxes)
	if err := b.add(ctx, q.Organization, q.From, q.To, r.Add); err != nil {
		return api.InvoiceExplanation{}, err
	}
	e, err := r.Explanation()
	if err != nil {
		return e, fmt.Errorf("explain line %s of organization %s: %w", q.Line, q.Organization, err)
	}
	e.Records, err = b.records(ctx, q, e.Line)
	return e, err
}

// records returns the records of the line in the requested hour, as far as they are
// kept.
func (b Billing) records(ctx context.Context, q api.InvoiceQuestion, line api.InvoiceLine) (out []api.UsageRecord, err error) {
	if q.Hour.IsZero() || line.Resource == "" {
		return nil, nil
	}
	of := api.RecordQuery{Organization: string(q.Organization), Project: string(line.Project), Resource: line.Resource, Meter: line.Meter,
		From: q.Hour, To: q.Hour.Add(time.Hour), Limit: api.MaxRecords}
	if customer := line.Customer(); customer != "" {
		of.Organization, of.Resource = string(customer), ""
	}
	for {
		page, err := b.Store.Records(ctx, of)
		if err != nil {
			return nil, fmt.Errorf("read the usage records of organization %s: %w", of.Organization, err)
		}
		out = append(out, page.Items...)
		if of.After = page.Next; !page.More {
			return out, nil
		}
	}
}

// Usage returns one page of sums.
func (b Billing) Usage(ctx context.Context, q api.UsageQuery) (api.UsagePage, error) {
	page, err := report.Usage(q, func(from time.Time) iter.Seq2[api.Use, error] {
		return b.use(ctx, api.OrganizationID(q.Organization), from, q.To, api.MaxUse)
	})
	if err != nil {
		return page, fmt.Errorf("sum the use: %w", err) // of the organization that use names
	}
	return page, nil
}

// add calls add with the use that an organization pays for.
func (b Billing) add(ctx context.Context, org api.OrganizationID, from, to time.Time, add func(api.Use) error) error {
	all, err := b.charged(ctx, org, from, to)
	if err != nil {
		return err
	}
	return addAll(all, add)
}

func addAll(all iter.Seq2[api.Use, error], add func(api.Use) error) error {
	for u, err := range all {
		if err != nil {
			return err
		}
		if err := add(u); err != nil {
			return err
		}
	}
	return nil
}

// use yields what the organization itself used in the hours that begin in a period,
// reading the given number of rows at once.
func (b Billing) use(ctx context.Context, org api.OrganizationID, from, to time.Time, rows int) iter.Seq2[api.Use, error] {
	return func(yield func(api.Use, error) bool) {
		q := api.UseQuery{Organization: string(org), From: from, To: to, Limit: rows}
		for {
			page, err := b.Store.Use(ctx, q)
			if err != nil {
				yield(api.Use{}, fmt.Errorf("read the use of organization %s: %w", org, err))
				return
			}
			for _, u := range page.Items {
				if !yield(u, nil) {
					return
				}
			}
			if !page.More {
				return
			}
			q.After = page.Items[len(page.Items)-1]
		}
	}
}

// priceBook returns the price book that the organization names, or the one named
// default.
func (b Billing) priceBook(ctx context.Context, org api.OrganizationID) (api.PriceBook, error) {
	owner, err := api.Get[api.Organization](ctx, b.Store, api.KindOrganization, string(org))
	if err != nil {
		return api.PriceBook{}, err
	}
	return b.book(ctx, owner.Spec.PriceBook)
}

// book returns a price book by its ID, or the one named default if the ID is empty.
func (b Billing) book(ctx context.Context, id api.PriceBookID) (api.PriceBook, error) {
	if id != "" {
		return api.Get[api.PriceBook](ctx, b.Store, api.KindPriceBook, string(id))
	}
	all, err := api.All[api.PriceBook](ctx, b.Store, api.ListQuery{Kind: api.KindPriceBook, Name: api.DefaultPriceBook})
	if err != nil {
		return api.PriceBook{}, err
	}
	all = slices.DeleteFunc(all, func(p api.PriceBook) bool { return p.Meta.Organization != "" })
	if len(all) == 0 {
		return api.PriceBook{}, api.Errorf(api.CodeState, "price book default does not exist").
			WithHint("create it, or name another one in the organization's spec.priceBook")
	}
	return all[0], nil
}
