package payment

import (
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const day = 24 * time.Hour

// autoPayWaits are the waits after each failed charge of an invoice; after one more failure
// it is not charged again.
var autoPayWaits = []time.Duration{day, 3 * day, 5 * day}

// autoPayCheck is what a decision about an automatic payment depends on, besides its
// settings.
type autoPayCheck struct {
	currency  string
	open      []api.OpenInvoice // the oldest first
	maxMicros int64             // of one payment
	cards     []api.Card        // of the organization
	paying    bool              // whether a payment of an invoice has not ended
	now       time.Time
}

// autoPayCharge is a charge that was decided, or could not be made.
type autoPayCharge struct {
	invoice api.AutoPayInvoice
	micros  int64
	card    api.Card
}

// decideAutoPay decides about an automatic payment that is enabled and has no charge in
// progress. It returns the next status, and the charge that is to begin: the status then
// records it, and lacks only its ID. err is why an invoice should be charged and cannot be;
// the status then counts the failure. Invoices that are not open any more are forgotten.
// A failed charge is repeated at once when another card is to be charged. Invoices that
// amount to less than the provider charges at once wait for later ones.
func decideAutoPay(t api.StoredAutoPay, c autoPayCheck) (st api.AutoPayStatus, charge *autoPayCharge, err error) {
	for _, o := range c.open {
		if i := t.Status.Of(o.Invoice); i.Failures > 0 {
			st.Invoices = append(st.Invoices, i)
		}
	}
	if c.paying {
		return st, nil, nil
	}
	card, unusable := automaticCard(t.Spec.Card, c.cards, c.now)
	least := api.LeastCharge(c.currency)
	sum := int64(0) // payments count for the oldest invoices first, so those are charged too
	for _, o := range c.open {
		i := st.Of(o.Invoice)
		sum += o.LeftMicros
		if api.Chargeable(c.currency, sum) < least {
			continue
		}
		waits := i.Failures > 0 && (i.NextAt == nil || c.now.Before(*i.NextAt))
		if other := unusable == nil && i.Card != api.CardID(card.Meta.ID); waits && !other {
			continue
		}
		i.Number, i.Card = o.Number, api.CardID(card.Meta.ID)
		charge, err = &autoPayCharge{invoice: i, micros: api.Chargeable(c.currency, sum), card: card}, unusable
		code := api.CauseCardUnusable
		if err == nil && charge.micros > c.maxMicros {
			code = api.CausePaymentLimit
			err = fmt.Errorf("the amount is more than the maximum of one payment, %d millionths of %s", c.maxMicros, c.currency)
		}
		if err != nil {
			charge.invoice.Checkout = "" // none that could be paid
			charge.invoice = failedAutoPay(charge.invoice, because(err.Error(), code), false, c.now)
			return recordedAutoPay(st, charge.invoice), charge, err
		}
		at := c.now.UTC()
		st.Invoice, st.Since = o.Invoice, &at
		return st, charge, nil
	}
	if sum > 0 && api.Chargeable(c.currency, sum) < least {
		st.LeastMicros = least
	}
	return st, nil, nil
}

// automaticCard returns the card with an ID, or the default without one, if it can be
// charged.
func automaticCard(id api.CardID, cards []api.Card, now time.Time) (api.Card, error) {
	for _, x := range cards {
		if id == api.CardID(x.Meta.ID) || id == "" && x.Status.Default {
			if x.Status.Disputed {
				return x, fmt.Errorf("a charge of the card ending %s is disputed at its bank", x.Status.LastDigits)
			}
			return x, x.Usable(now)
		}
	}
	if id != "" {
		return api.Card{}, fmt.Errorf("card %s is not on file", id)
	}
	return api.Card{}, errNoCard
}

// afterAutoPay returns the status after the end of the charge that is in progress, and the
// invoice with one more failure if it failed.
func afterAutoPay(t api.StoredAutoPay, c api.Checkout, number string, now time.Time) (st api.AutoPayStatus, failed *api.AutoPayInvoice) {
	st = t.Status
	i := st.Of(st.Invoice)
	i.Number, i.Card, i.Checkout = number, c.Spec.Card, st.Checkout
	st.Checkout, st.Invoice, st.Since = "", "", nil
	st.Invoices = slices.DeleteFunc(slices.Clone(st.Invoices), func(x api.AutoPayInvoice) bool { return x.Invoice == i.Invoice })
	if c.Status.State == api.CheckoutPaid {
		return st, nil
	}
	i = failedAutoPay(i, api.Reason{Text: c.Status.LastError, Cause: c.Status.Cause}, c.Status.AuthenticationRequired, now)
	return recordedAutoPay(st, i), &i
}

// failedAutoPay returns an invoice after one more failure.
func failedAutoPay(i api.AutoPayInvoice, why api.Reason, authentication bool, now time.Time) api.AutoPayInvoice {
	i.Failures++
	i.AuthenticationRequired, i.NextAt = authentication, nil
	i.LastError, i.Cause = why.Parts()
	if i.Failures <= int64(len(autoPayWaits)) {
		at := now.Add(autoPayWaits[i.Failures-1]).UTC()
		i.NextAt = &at
	}
	return i
}

// recordedAutoPay returns the status with an invoice in place of what it recorded about it.
func recordedAutoPay(st api.AutoPayStatus, i api.AutoPayInvoice) api.AutoPayStatus {
	st.Invoices = slices.Clone(st.Invoices)
	if n := slices.IndexFunc(st.Invoices, func(x api.AutoPayInvoice) bool { return x.Invoice == i.Invoice }); n >= 0 {
		st.Invoices[n] = i
		return st
	}
	st.Invoices = append(st.Invoices, i)
	return st
}
