package books

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing"
)

// Wallet is how an organization stands at a moment.
func (b Books) Wallet(ctx context.Context, id api.OrganizationID, now time.Time) (api.Wallet, error) {
	w := api.Wallet{Organization: id, State: api.BillingOK}
	o, err := b.Store.Get(ctx, api.KindOrganization, string(id))
	if err != nil {
		return w, err
	}
	org, err := api.Decode[api.Organization](o)
	if err != nil {
		return w, err
	}
	s, currency, err := b.standing(ctx, org, now)
	w.Currency, w.BalanceMicros, w.UnbilledMicros, w.Open = currency, s.BalanceMicros, s.UnbilledMicros, s.Open
	if org.Spec.Billing != nil {
		st := billing.Dun(now, *org.Spec.Billing, s, statusOf(org))
		w.State, w.Message = st.State, st.Message
	}
	return w, err
}

// statusOf is what was decided last.
func statusOf(org api.Organization) api.BillingStatus {
	if org.Status.Billing == nil {
		return api.BillingStatus{State: api.BillingOK}
	}
	return *org.Status.Billing
}

// standing of an organization: its documents, and what it used since.
func (b Books) standing(ctx context.Context, org api.Organization, now time.Time) (billing.Standing, string, error) {
	id := api.OrganizationID(org.Meta.ID)
	book, err := b.priceBook(ctx, id)
	if err != nil {
		return billing.Standing{}, "", err
	}
	currency := book.Spec.Currency
	d, err := b.documents(ctx, id)
	if err != nil {
		return billing.Standing{}, currency, err
	}
	unbilled := int64(0)
	if org.Spec.Billing != nil {
		if unbilled, err = b.unbilled(ctx, org, book.Spec, d.Invoices, now); err != nil {
			return billing.Standing{}, currency, err
		}
	}
	s, err := billing.StandingOf(id, d, currency, unbilled)
	return s, currency, err
}

// unbilled is what the periods without an invoice cost, up to now.
func (b Books) unbilled(ctx context.Context, org api.Organization, prices api.PriceBookSpec, invoices []api.Invoice, now time.Time) (sum int64, err error) {
	zone, err := org.Spec.Billing.Zone()
	if err != nil {
		return 0, err
	}
	open, present := billing.Open(org.Spec.Billing.Since, invoices, zone, now)
	if present.Before(now) {
		open = append(open, billing.Period{From: present, To: now})
	}
	for _, p := range open {
		rated, err := b.rate(ctx, api.OrganizationID(org.Meta.ID), prices, p.From, p.To)
		if err != nil {
			return 0, err
		}
		sum += rated.TotalMicros
	}
	return sum, nil
}
