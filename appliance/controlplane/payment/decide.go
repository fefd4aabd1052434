package payment

import (
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// openIn is how long a checkout may have no page.
	openIn = 10 * time.Minute
	// unknownFor is how long the provider is asked about a page that it does not know,
	// for example because the key of another account was configured.
	unknownFor = 48 * time.Hour
	// chargeFor is how long a charge whose outcome is unknown is sent again: the provider
	// remembers for 24 hours that it is the same one.
	chargeFor = 20 * time.Hour
	// lostAfter is when such a charge has failed if the provider does not list it: no
	// request that was sent before chargeFor is on its way any more.
	lostAfter = 22 * time.Hour
	// keepDone is how long a checkout is kept after its end.
	keepDone = 30 * 24 * time.Hour
)

// nextCheck returns when the provider is next asked about a page that was created at
// created and last checked at last: often while the payer is likely to pay. Its events lead to a check too.
func nextCheck(created, last, now time.Time) time.Time {
	wait := 5 * time.Minute
	switch age := now.Sub(created); {
	case age < 10*time.Minute:
		wait = 30 * time.Second
	case age < 2*api.CheckoutLife:
		wait = 2 * time.Minute
	}
	if last.IsZero() || last.After(now) { // never checked, or the clock went back
		return now
	}
	return last.Add(wait)
}

// settled returns the consequences of an outcome: the checkout's status, and the
// payment.
func settled(c api.Checkout, o Outcome, now time.Time) (api.CheckoutStatus, *api.PaymentSpec, error) {
	st := c.Status
	if o.Checkout != api.CheckoutID(c.Meta.ID) {
		return st, nil, fmt.Errorf("page %s of checkout %s is of checkout %q", st.Session, c.Meta.ID, o.Checkout)
	}
	st.State, st.AuthenticationRequired = o.State, o.AuthenticationRequired
	st.LastError, st.Cause = o.Reason.Parts()
	if c.Spec.Card != "" {
		st.Session = o.Charge
	}
	if o.State != api.CheckoutOpen {
		st.URL = ""
	}
	switch o.State {
	case api.CheckoutFailed, api.CheckoutExpired:
		st.DoneAt = &now
	case api.CheckoutPaid:
		st.DoneAt, st.LastError, st.Cause = &now, "", api.Cause{}
		if o.Currency != c.Spec.Currency || o.AmountMicros <= 0 || o.Reference == "" || c.Spec.Card != "" && o.AmountMicros != c.Spec.AmountMicros {
			return st, nil, fmt.Errorf("checkout %s was paid with %d millionths of %q as %q, want %s", c.Meta.ID, o.AmountMicros, o.Currency, o.Reference, c.Spec.Currency)
		}
		return st, &api.PaymentSpec{Type: api.PaymentIn, Currency: o.Currency, AmountMicros: o.AmountMicros, Reference: o.Reference, ReceivedAt: now, Note: "card, " + c.Meta.ID}, nil
	case api.CheckoutOpen, api.CheckoutProcessing:
	default:
		return st, nil, fmt.Errorf("checkout %s: unknown state %q", c.Meta.ID, o.State)
	}
	return st, nil, nil
}

// abandoned returns the final status of a checkout that cannot be completed any more,
// and whether it is one. err is why it could not be checked; nil means that it was not
// checked.
func abandoned(c api.Checkout, err error, now time.Time) (api.CheckoutStatus, bool) {
	st, age := c.Status, now.Sub(c.Meta.CreatedAt)
	switch {
	case c.Spec.Card != "" && st.Session == "":
		if !errors.Is(err, ErrUnknown) || age < lostAfter {
			return st, false
		}
		st.LastError, st.Cause = because("the payment provider did not charge the card in time", api.CausePaymentSilent).Parts()
	case st.Session == "" && age > openIn:
		st.LastError, st.Cause = because("the payment provider did not create a page in time", api.CausePaymentSilent).Parts()
	case errors.Is(err, ErrUnknown) && age > unknownFor:
		st.LastError, st.Cause = unknownCheckout.Parts()
	default:
		return st, false
	}
	st.State, st.URL, st.DoneAt = api.CheckoutFailed, "", &now
	return st, true
}
