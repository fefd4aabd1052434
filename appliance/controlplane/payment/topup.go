package payment

import (
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// topUpWaits are the waits after each failed charge of a top-up; after one more failure it
// stops.
var topUpWaits = []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour}

// errNoCard means that a top-up has no card to charge.
var errNoCard = errors.New("there is no default card on file")

// topUpCheck is what a decision about a top-up depends on, besides its settings.
type topUpCheck struct {
	terms  *api.OrganizationBilling
	wallet api.Wallet
	cards  []api.Card // of the organization
	now    time.Time
}

// idle reports whether nothing is charged now whatever the balance is.
func idle(t api.StoredTopUp, now time.Time) bool {
	st := t.Status
	return !t.Spec.Enabled || st.Checkout != "" || st.State == api.TopUpStopped || st.NextAt != nil && now.Before(*st.NextAt)
}

// decideTopUp decides about a top-up that is not idle. It returns the next status, and the
// card if it is to be charged: the status then counts the charge, and lacks only its ID.
// err is why a card should be charged and cannot be.
func decideTopUp(t api.StoredTopUp, c topUpCheck) (st api.TopUpStatus, card *api.Card, err error) {
	s, st := t.Spec, t.Status
	if c.terms == nil || c.terms.Mode != api.BillingPrepaid {
		return st, nil, nil
	}
	if c.wallet.Currency != s.Currency {
		st = stopped(st, because(fmt.Sprintf("the organization pays in %s, but the top-up was saved in %s", c.wallet.Currency, s.Currency), api.CausePaymentCurrency))
		return st, nil, errors.New(st.LastError)
	}
	if month := monthOf(c.terms, c.now); month > st.Month { // the clock may go back
		st.Month, st.ChargedMicros = month, 0
		if st.State == api.TopUpLimited {
			st.State, st.LastError, st.Cause = "", "", api.Cause{}
		}
	}
	if c.wallet.BalanceMicros-c.wallet.UnbilledMicros >= s.BelowMicros {
		st.State, st.Failures, st.NextAt, st.LastError, st.Cause = "", 0, nil, "", api.Cause{}
		return st, nil, nil
	}
	if st.ChargedMicros+s.AmountMicros > s.MonthlyLimitMicros {
		st.State = api.TopUpLimited
		st.LastError, st.Cause = because("the limit of the month is reached", api.CausePaymentLimit).Parts()
		return st, nil, nil
	}
	found, err := automaticCard(s.Card, c.cards, c.now)
	if err != nil {
		return afterFailure(st, because(err.Error(), api.CauseCardUnusable), c.now), nil, err
	}
	st.State, st.NextAt = api.TopUpCharging, nil
	st.ChargedMicros += s.AmountMicros
	return st, &found, nil
}

// monthOf returns the month of a time in an organization's time zone.
func monthOf(terms *api.OrganizationBilling, at time.Time) string {
	if terms != nil {
		if zone, err := terms.Zone(); err == nil { // otherwise the invoices report it
			at = at.In(zone)
		}
	}
	return at.Format("2006-01")
}

// afterCharge returns the status after the end, in a month, of the charge that is in
// progress, and whether it failed. A charge that ends in a later month than it began is
// counted in both, since it is not known in which it was made.
func afterCharge(t api.StoredTopUp, c api.Checkout, month string, now time.Time) (st api.TopUpStatus, failed bool) {
	st = t.Status
	st.LastCheckout, st.Checkout = st.Checkout, ""
	if c.Status.State == api.CheckoutPaid {
		st.State, st.Failures, st.NextAt, st.LastError, st.Cause = "", 0, nil, "", api.Cause{}
		if month > st.Month {
			st.Month, st.ChargedMicros = month, c.Spec.AmountMicros
		}
		return st, false
	}
	st.ChargedMicros = max(0, st.ChargedMicros-c.Spec.AmountMicros)
	return afterFailure(st, api.Reason{Text: c.Status.LastError, Cause: c.Status.Cause}, now), true
}

// afterFailure returns the status after one more failure.
func afterFailure(st api.TopUpStatus, why api.Reason, now time.Time) api.TopUpStatus {
	st.Failures++
	if st.Failures > int64(len(topUpWaits)) {
		return stopped(st, why)
	}
	at := now.Add(topUpWaits[st.Failures-1]).UTC()
	st.State, st.NextAt = api.TopUpRetrying, &at
	st.LastError, st.Cause = why.Parts()
	return st
}

func stopped(st api.TopUpStatus, why api.Reason) api.TopUpStatus {
	st.State, st.NextAt = api.TopUpStopped, nil
	st.LastError, st.Cause = why.Parts()
	return st
}
