package invoicing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/dunning"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// Wallet returns an organization's balance and state at a moment.
func (b Billing) Wallet(ctx context.Context, id api.OrganizationID, now time.Time) (api.Wallet, error) {
	w := api.Wallet{Organization: id, State: api.BillingOK}
	org, err := api.Get[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil {
		return w, err
	}
	s, currency, err := b.balance(ctx, org, now)
	w.Currency, w.BalanceMicros, w.UnbilledMicros, w.Open = currency, s.BalanceMicros, s.UnbilledMicros, s.Open
	if org.Spec.Billing != nil {
		st := dunning.NextStatus(now, *org.Spec.Billing, s, statusOf(org))
		w.State, w.Message = st.State, st.Message
	}
	return w, err
}

// Owed returns the open invoices of an organization, the oldest first, and their currency.
func (b Billing) Owed(ctx context.Context, id api.OrganizationID) (currency string, open []api.OpenInvoice, err error) {
	org, err := api.Get[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil {
		return "", nil, err
	}
	s, err := b.balanceBy(ctx, org, func(book api.PriceBook, _ []api.Invoice) (int64, error) {
		currency = book.Spec.Currency
		return 0, nil
	})
	return currency, s.Open, err
}

// Uninvoiced returns what an organization has used until now that no invoice charges.
// The mark is read first, so that use which arrives during the rating makes it
// outdated.
func (b Billing) Uninvoiced(ctx context.Context, id api.OrganizationID, now time.Time) (api.Uninvoiced, error) {
	var u api.Uninvoiced
	org, err := api.Get[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil {
		return u, err
	}
	_, err = b.balanceBy(ctx, org, func(book api.PriceBook, invoices []api.Invoice) (int64, error) {
		u.Currency = book.Spec.Currency
		if org.Spec.Billing == nil {
			return 0, nil
		}
		zone, err := org.Spec.Billing.Zone()
		if err != nil {
			return 0, err
		}
		open, present := invoice.Open(org.Spec.Billing.Since, invoices, zone, now)
		u.Mark.From = append(open, present)[0].From
		if u.Mark.From.After(now) { // a final invoice was issued in this hour: what is used in the rest of it counts too
			u.Mark.From = now.UTC().Truncate(time.Hour)
		}
		if err := addAll(b.use(ctx, id, u.Mark.From, time.Time{}, api.MaxUse), func(use api.Use) error { u.Mark.Add(use); return nil }); err != nil {
			return 0, err
		}
		if u.Micros, err = unbilled(org, invoices, now, func(p invoice.Period, until time.Time) (api.InvoicePreview, error) {
			if unused, err := b.unusedRest(ctx, id, p.Until(until)); unused || err != nil {
				return api.InvoicePreview{}, err
			}
			return b.soFar(ctx, id, p, until)
		}); err != nil {
			return 0, err
		}
		late, err := b.late(ctx, id, invoices, book.Spec)
		for _, l := range late {
			u.Micros += l.AmountMicros
		}
		return u.Micros, err
	})
	return u, err
}

// statusOf returns the last decision.
func statusOf(org api.Organization) api.BillingStatus {
	if org.Status.Billing == nil {
		return api.BillingStatus{State: api.BillingOK}
	}
	return *org.Status.Billing
}

// balance returns the balance of an organization: its documents, and its use since
// then.
func (b Billing) balance(ctx context.Context, org api.Organization, now time.Time) (s dunning.Balance, currency string, err error) {
	s, err = b.balanceBy(ctx, org, func(book api.PriceBook, invoices []api.Invoice) (int64, error) {
		if currency = book.Spec.Currency; org.Spec.Billing == nil {
			return 0, nil
		}
		return unbilled(org, invoices, now, func(p invoice.Period, until time.Time) (api.InvoicePreview, error) {
			return b.soFar(ctx, api.OrganizationID(org.Meta.ID), p, until)
		})
	})
	return s, currency, err
}

// balanceBy returns the balance of an organization, with the cost of its use since
// its documents computed by used.
func (b Billing) balanceBy(ctx context.Context, org api.Organization, used func(api.PriceBook, []api.Invoice) (int64, error)) (dunning.Balance, error) {
	id := api.OrganizationID(org.Meta.ID)
	book, err := b.priceBook(ctx, id)
	if err != nil {
		return dunning.Balance{}, err
	}
	d, err := b.documents(ctx, id)
	if err != nil {
		return dunning.Balance{}, err
	}
	since, err := used(book, d.Invoices)
	if err != nil {
		return dunning.Balance{}, err
	}
	s, err := dunning.BalanceOf(id, d, book.Spec.Currency, since)
	if err != nil {
		return s, fmt.Errorf("compute the balance of organization %s: %w", id, err)
	}
	s.Collection, err = b.collection(ctx, id, d.Invoices, s.Open, book.Spec.Currency)
	return s, err
}

// collection returns what the automatic payment of an organization does about its open
// invoices.
func (b Billing) collection(ctx context.Context, org api.OrganizationID, invoices []api.Invoice, open []api.OpenInvoice, currency string) (dunning.Collection, error) {
	t, err := find[api.StoredAutoPay](ctx, b.Store, api.KindAutoPay, api.AutoPayID(org))
	if err != nil || t.Meta.ID == "" || len(open) == 0 {
		return dunning.Collection{}, err
	}
	var issued time.Time
	for _, inv := range invoices {
		isOpen := slices.ContainsFunc(open, func(o api.OpenInvoice) bool { return o.Invoice == api.InvoiceID(inv.Meta.ID) })
		if isOpen && inv.Spec.IssuedAt.After(issued) {
			issued = inv.Spec.IssuedAt
		}
	}
	return dunning.CollectionOf(t, open, currency, issued), nil
}

// unbilled returns what the periods without an invoice cost, up to now. rate rates what was
// used of a period until a time.
func unbilled(org api.Organization, invoices []api.Invoice, now time.Time, rate func(p invoice.Period, until time.Time) (api.InvoicePreview, error)) (sum int64, err error) {
	zone, err := org.Spec.Billing.Zone()
	if err != nil {
		return 0, err
	}
	open, present := invoice.Open(org.Spec.Billing.Since, invoices, zone, now)
	if present.From.Before(now) {
		open = append(open, present)
	}
	for _, p := range open {
		rated, err := rate(p, p.Until(now).To)
		if err != nil {
			return 0, err
		}
		sum += rated.TotalMicros
	}
	return sum, nil
}

// unusedRest reports whether a period follows a final invoice and nothing that the
// organization pays for was used in it: then only commitments and the minimum are left
// to charge.
func (b Billing) unusedRest(ctx context.Context, org api.OrganizationID, p invoice.Period) (bool, error) {
	if !p.IsRest() {
		return false, nil
	}
	unused := true
	err := b.add(ctx, org, p.From, p.To, func(u api.Use) error {
		unused = unused && u.Quantity == 0
		return nil
	})
	return unused, err
}

// soFar rates what was used until a time in a period that has no invoice.
func (b Billing) soFar(ctx context.Context, org api.OrganizationID, p invoice.Period, until time.Time) (api.InvoicePreview, error) {
	prices, err := b.held(ctx, org, p.Start, p.To)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	r, err := invoice.NewRatingSoFar(org, prices, p, until)
	if err != nil {
		return api.InvoicePreview{}, fmt.Errorf("begin to rate the use of organization %s: %w", org, err)
	}
	if err := b.add(ctx, org, p.Start, until, r.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	return rated(org, r)
}
