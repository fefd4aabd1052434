package stripe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v84"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
)

const (
	// clockSkew is by how much this clock may be ahead of Stripe's.
	clockSkew = time.Hour
	// maxCharges limits the charges of a customer that are read.
	maxCharges = 1000
)

// Charge implements payment.Provider: a PaymentIntent that is confirmed at once, without
// the customer (docs.stripe.com/payments/save-and-reuse, "Charge the saved payment method
// later"). Stripe repeats its response to an idempotency key for 24 hours, errors too
// (docs.stripe.com/api/idempotent_requests): after an error that says nothing about the
// charge, it is looked for.
func (p *Provider) Charge(ctx context.Context, o payment.Charge) (payment.Outcome, error) {
	amount, err := minor(o.Currency, o.AmountMicros)
	if err != nil {
		return payment.Outcome{}, &payment.Refused{Reason: err.Error()}
	}
	id := string(o.Checkout)
	params := &stripego.PaymentIntentCreateParams{
		Amount: &amount, Currency: stripego.String(strings.ToLower(o.Currency)), Customer: &o.Customer, PaymentMethod: &o.PaymentMethod,
		PaymentMethodTypes: []*string{stripego.String("card")}, OffSession: stripego.Bool(true), Confirm: stripego.Bool(true),
		Description: &o.What, Metadata: map[string]string{label: id},
	}
	params.SetIdempotencyKey("basalt-" + id)
	pi, err := p.client.V1PaymentIntents.Create(ctx, params)
	var e *stripego.Error
	switch {
	case err == nil:
		return chargeOutcome(pi)
	case !errors.As(err, &e):
		return payment.Outcome{}, convertError(err)
	case e.HTTPStatusCode == http.StatusPaymentRequired && e.PaymentIntent != nil:
		return chargeOutcome(e.PaymentIntent)
	case e.Type == stripego.ErrorTypeIdempotency, e.HTTPStatusCode >= http.StatusInternalServerError:
		found, lost := p.FindCharge(ctx, o)
		if lost == nil {
			return found, nil
		}
		return payment.Outcome{}, fmt.Errorf("Stripe responded with status %d, %s (request %s)", e.HTTPStatusCode, clean(e.Msg), clean(e.RequestID)) //nolint:staticcheck // a name
	}
	return payment.Outcome{}, convertError(err)
}

// ChargeOutcome implements payment.Provider.
func (p *Provider) ChargeOutcome(ctx context.Context, charge string) (payment.Outcome, error) {
	pi, err := p.client.V1PaymentIntents.Retrieve(ctx, charge, nil)
	if err != nil {
		return payment.Outcome{}, convertError(err)
	}
	if pi.ID != charge {
		return payment.Outcome{}, fmt.Errorf("answer of Stripe is about charge %q, want %q", clean(pi.ID), charge)
	}
	return chargeOutcome(pi)
}

// FindCharge implements payment.Provider. It reads the list of the customer's charges,
// which has new ones at once; Stripe's search does not.
func (p *Provider) FindCharge(ctx context.Context, o payment.Charge) (payment.Outcome, error) {
	params := &stripego.PaymentIntentListParams{Customer: &o.Customer, CreatedRange: &stripego.RangeQueryParams{GreaterThanOrEqual: o.CreatedAt.Add(-clockSkew).Unix()}}
	params.Limit = stripego.Int64(100)
	n := 0
	for pi, err := range p.client.V1PaymentIntents.List(ctx, params) {
		var e *stripego.Error
		switch n++; {
		case errors.As(err, &e) && e.Code == stripego.ErrorCodeResourceMissing: // the customer
			return payment.Outcome{}, payment.ErrUnknown
		case err != nil:
			return payment.Outcome{}, convertError(err)
		case pi.Metadata[label] == string(o.Checkout):
			return chargeOutcome(pi)
		case n == maxCharges:
			return payment.Outcome{}, fmt.Errorf("customer %q has more than %d charges at Stripe since %s", clean(o.Customer), maxCharges, o.CreatedAt.UTC().Format(time.RFC3339))
		}
	}
	return payment.Outcome{}, payment.ErrUnknown
}

// chargeOutcome returns the outcome of a PaymentIntent. One that waits for an action of
// the customer has failed: nobody has the secret with which it could be continued.
func chargeOutcome(pi *stripego.PaymentIntent) (payment.Outcome, error) {
	o := payment.Outcome{Checkout: api.CheckoutID(pi.Metadata[label]), Charge: pi.ID, State: api.CheckoutFailed}
	if pi.ID == "" {
		return o, errors.New("answer of Stripe has no charge")
	}
	if e := pi.LastPaymentError; e != nil {
		o.Reason = reasonOf(e)
		o.AuthenticationRequired = e.Code == stripego.ErrorCodeAuthenticationRequired
	}
	switch pi.Status {
	case stripego.PaymentIntentStatusSucceeded:
		o.State, o.Currency, o.Reference = api.CheckoutPaid, strings.ToUpper(string(pi.Currency)), pi.ID
		o.AmountMicros = micros(o.Currency, pi.AmountReceived)
	case stripego.PaymentIntentStatusProcessing:
		o.State = api.CheckoutProcessing
	case stripego.PaymentIntentStatusRequiresPaymentMethod, stripego.PaymentIntentStatusCanceled:
		o.Reason = cmp.Or(o.Reason, api.PlainReason("the card was declined", api.CauseCardDeclined, ""))
	case stripego.PaymentIntentStatusRequiresAction, stripego.PaymentIntentStatusRequiresConfirmation:
		o.AuthenticationRequired = true
		o.Reason = cmp.Or(o.Reason, api.PlainReason("the bank wants the payment to be confirmed", api.CauseCardAuthentication, ""))
	default:
		return o, fmt.Errorf("charge %s has unknown status %q", clean(pi.ID), clean(string(pi.Status)))
	}
	return o, nil
}
