package payment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// owedEvery is how often the open invoices of an organization with automatic payment are
// read.
const owedEvery = time.Minute

// autoPays follows the charges of automatic payments to their end, and begins those that
// are due, in the way of topUps: a charge is a checkout, written in one batch with the
// status that records it, which is valid only for the revision that was read. There is one
// charge of an organization at a time; the next is decided by what is owed after it.
func (c *Collector) autoPays(ctx context.Context, cards []api.Card, now time.Time) error {
	if c.service.o.Owed == nil {
		return nil
	}
	all, err := api.All[api.StoredAutoPay](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindAutoPay})
	if err != nil || len(all) == 0 {
		return err
	}
	_, settings, err := c.service.provider(ctx)
	open := err == nil && settings.Enabled
	there := map[string]balanceCheck{}
	for _, t := range all {
		last := c.owed[t.Meta.ID]
		there[t.Meta.ID] = last
		var err error
		switch {
		case t.Status.Checkout != "":
			err = c.followAutoPay(ctx, t, now)
		case last.revision == t.Meta.Revision && now.Sub(last.at).Abs() < owedEvery:
		default:
			there[t.Meta.ID] = balanceCheck{t.Meta.Revision, now}
			err = c.checkAutoPay(ctx, t, open, autoPayCheck{maxMicros: settings.MaxMicros, cards: cardsOf(cards, t.Meta.Organization), now: now})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.service.o.Log.Warn("automatic payment failed, retrying", "organization", t.Meta.Organization, "error", err)
		}
	}
	c.owed = there
	return nil
}

// cardsOf returns the cards of an organization.
func cardsOf(cards []api.Card, org string) (out []api.Card) {
	for _, x := range cards {
		if x.Meta.Organization == org {
			out = append(out, x)
		}
	}
	return out
}

// paying reports whether a payment of an invoice of an organization has not ended.
func (c *Collector) paying(ctx context.Context, org string) (bool, error) {
	all, err := api.All[api.Checkout](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindCheckout, Organization: org})
	return slices.ContainsFunc(all, func(x api.Checkout) bool { return x.Spec.Invoice != "" && !x.Done() }), err
}

// checkAutoPay reads what an organization owes, and begins the charge of an invoice that
// is due for one, if new payments may begin. The settings of a deleted organization are
// deleted.
func (c *Collector) checkAutoPay(ctx context.Context, t api.StoredAutoPay, open bool, check autoPayCheck) error {
	org, there, err := api.Find[api.Organization](ctx, c.service.o.Store, api.KindOrganization, t.Meta.Organization)
	if err == nil && (!there || org.Meta.DeletedAt != nil) {
		_, err = c.service.apply(ctx, "delete automatic payment "+t.Meta.ID, api.Batch{At: check.now, Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindAutoPay, ID: t.Meta.ID, Expect: t.Meta.Revision}}})
		return err
	}
	if err != nil || !open || !t.Spec.Enabled || org.Spec.Billing == nil || org.Spec.Billing.Mode != api.BillingInvoice {
		return err
	}
	if check.paying, err = c.paying(ctx, org.Meta.ID); err != nil { // before what is owed: what was paid since then is not owed
		return err
	}
	if check.currency, check.open, err = c.service.o.Owed(ctx, api.OrganizationID(org.Meta.ID)); err != nil {
		return fmt.Errorf("read what organization %s owes: %w", org.Meta.ID, err)
	}
	st, charge, why := decideAutoPay(t, check)
	switch {
	case charge != nil && why == nil:
		return c.beginAutoPay(ctx, t, st, check.currency, *charge, check.now)
	case string(api.Encode(st)) == string(api.Encode(t.Status)):
		return nil
	}
	cmd := reportedAutoPay(t, st)
	if why != nil {
		cmd.Event = autoPayFailure(charge.invoice, check.currency, charge.micros)
		c.service.o.Log.Warn("automatic payment failed", "organization", t.Meta.Organization, "invoice", charge.invoice.Number, "failures", charge.invoice.Failures, "error", why)
	}
	_, err = c.service.apply(ctx, "report the status of automatic payment "+t.Meta.ID, api.Batch{At: check.now, Commands: []api.Command{cmd}})
	return err
}

// beginAutoPay writes the charge of an invoice, with the status that records it.
func (c *Collector) beginAutoPay(ctx context.Context, t api.StoredAutoPay, st api.AutoPayStatus, currency string, charge autoPayCharge, now time.Time) error {
	id := api.RandomID(api.KindCheckout)
	st.Checkout = api.CheckoutID(id)
	spec := api.CheckoutSpec{Currency: currency, AmountMicros: charge.micros, Invoice: charge.invoice.Invoice, Card: api.CardID(charge.card.Meta.ID), AutoPay: true}
	err := c.beginAutomatic(ctx, "AutoPay", reportedAutoPay(t, st), id, t.Meta.Organization, spec, charge.card, now)
	if err == nil {
		c.service.o.Log.Info("automatic payment begins", "organization", t.Meta.Organization, "invoice", charge.invoice.Number, "checkout", id, "micros", spec.AmountMicros, "currency", currency)
	}
	return err
}

// beginAutomatic writes the charge of a card in one batch with the status that records it,
// which guards the batch by its revision.
func (c *Collector) beginAutomatic(ctx context.Context, operation string, status api.Command, id, org string, spec api.CheckoutSpec, card api.Card, now time.Time) error {
	_, err := c.service.apply(ctx, "begin checkout "+id+" of card "+card.Meta.ID, api.Batch{At: now, Audit: api.BillingNote(operation), Commands: []api.Command{
		status, // first: the revision guards the others
		{Op: api.OpPutSpec, Kind: api.KindCheckout, ID: id, Name: id, Organization: org, Data: api.Encode(spec)},
		{Op: api.OpReport, Kind: api.KindCheckout, ID: id, Expect: api.AnyRevision, Data: api.Encode(card.Charged())},
	}})
	return err
}

// followAutoPay writes the end of the charge in progress. A checkout that does not exist
// any more ended long ago; what is owed then decides.
func (c *Collector) followAutoPay(ctx context.Context, t api.StoredAutoPay, now time.Time) error {
	pays, there, err := api.Find[api.Checkout](ctx, c.service.o.Store, api.KindCheckout, string(t.Status.Checkout))
	if err != nil || there && !pays.Done() {
		return err
	}
	if !there {
		pays.Status.State = api.CheckoutPaid
	}
	inv, _, err := api.Find[api.Invoice](ctx, c.service.o.Store, api.KindInvoice, string(t.Status.Invoice))
	if err != nil {
		return err
	}
	st, failed := afterAutoPay(t, pays, inv.Spec.Number, now)
	cmd := reportedAutoPay(t, st)
	if failed != nil {
		cmd.Event = autoPayFailure(*failed, pays.Spec.Currency, pays.Spec.AmountMicros)
		c.service.o.Log.Warn("automatic payment failed", "organization", t.Meta.Organization, "invoice", failed.Number, "failures", failed.Failures, "error", failed.LastError)
	}
	_, err = c.service.apply(ctx, "report the end of a charge for automatic payment "+t.Meta.ID, api.Batch{At: now, Commands: []api.Command{cmd}})
	return err
}

// reportedAutoPay returns the command for a status, which is valid for the settings as they
// were read.
func reportedAutoPay(t api.StoredAutoPay, st api.AutoPayStatus) api.Command {
	return api.Command{Op: api.OpReport, Kind: api.KindAutoPay, ID: t.Meta.ID, Expect: t.Meta.Revision, Data: api.Encode(st)}
}

// autoPayFailure returns the event of a failure, about which the organization's payers get
// mail.
func autoPayFailure(i api.AutoPayInvoice, currency string, micros int64) *api.CommandEvent {
	return &api.CommandEvent{Type: api.EventAutoPayFailed, Data: api.Encode(api.AutoPayFailure{Invoice: i.Invoice, Number: i.Number, Checkout: i.Checkout,
		Currency: currency, AmountMicros: micros, Error: i.LastError, AuthenticationRequired: i.AuthenticationRequired, NextAt: i.NextAt})}
}
