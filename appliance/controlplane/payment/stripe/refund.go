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

// Refund implements payment.Provider (docs.stripe.com/api/refunds/create). After an error
// that says nothing about the refund, it is looked for, as a charge is.
func (p *Provider) Refund(ctx context.Context, o payment.RefundOrder) (payment.RefundOutcome, error) {
	amount, err := minor(o.Currency, o.AmountMicros)
	if err != nil {
		return payment.RefundOutcome{}, &payment.Refused{Reason: err.Error()}
	}
	id := string(o.Refund)
	params := &stripego.RefundCreateParams{PaymentIntent: &o.Charge, Amount: &amount, Metadata: map[string]string{refundLabel: id}}
	params.SetIdempotencyKey("basalt-" + id)
	made, err := p.client.V1Refunds.Create(ctx, params)
	var e *stripego.Error
	switch {
	case err == nil:
		return refundOutcome(made)
	case !errors.As(err, &e):
		return payment.RefundOutcome{}, convertError(err)
	case e.Type == stripego.ErrorTypeIdempotency, e.HTTPStatusCode >= http.StatusInternalServerError:
		if found, lost := p.FindRefund(ctx, o); lost == nil {
			return found, nil
		}
		return payment.RefundOutcome{}, fmt.Errorf("Stripe responded with status %d, %s (request %s)", e.HTTPStatusCode, clean(e.Msg), clean(e.RequestID)) //nolint:staticcheck // a name
	case e.HTTPStatusCode == http.StatusBadRequest, e.HTTPStatusCode == http.StatusPaymentRequired:
		return payment.RefundOutcome{}, &payment.Refused{Reason: cmp.Or(clean(e.Msg), "the payment provider refused the refund")}
	}
	return payment.RefundOutcome{}, convertError(err)
}

// RefundOutcome implements payment.Provider.
func (p *Provider) RefundOutcome(ctx context.Context, refund string) (payment.RefundOutcome, error) {
	r, err := p.client.V1Refunds.Retrieve(ctx, refund, nil)
	if err != nil {
		return payment.RefundOutcome{}, convertError(err)
	}
	if r.ID != refund {
		return payment.RefundOutcome{}, fmt.Errorf("answer of Stripe is about refund %q, want %q", clean(r.ID), refund)
	}
	return refundOutcome(r)
}

// FindRefund implements payment.Provider. It reads the list of the charge's refunds, which
// has new ones at once.
func (p *Provider) FindRefund(ctx context.Context, o payment.RefundOrder) (payment.RefundOutcome, error) {
	params := &stripego.RefundListParams{PaymentIntent: &o.Charge}
	params.Limit = stripego.Int64(100)
	n := 0
	for r, err := range p.client.V1Refunds.List(ctx, params) {
		var e *stripego.Error
		switch n++; {
		case errors.As(err, &e) && e.Code == stripego.ErrorCodeResourceMissing: // the charge
			return payment.RefundOutcome{}, payment.ErrUnknown
		case err != nil:
			return payment.RefundOutcome{}, convertError(err)
		case r.Metadata[refundLabel] == string(o.Refund):
			return refundOutcome(r)
		case n == maxCharges:
			return payment.RefundOutcome{}, fmt.Errorf("charge %q has more than %d refunds at Stripe", clean(o.Charge), maxCharges)
		}
	}
	return payment.RefundOutcome{}, payment.ErrUnknown
}

// maxRefunds limits the refunds that one request for new ones reads.
const maxRefunds = 1000

// Refunds implements payment.Provider. Refunds that cannot be read are left out, so that they
// do not hide the others.
func (p *Provider) Refunds(ctx context.Context, since time.Time) (out []payment.RefundOutcome, err error) {
	params := &stripego.RefundListParams{CreatedRange: &stripego.RangeQueryParams{GreaterThanOrEqual: since.Unix()}}
	params.Limit = stripego.Int64(100)
	n := 0
	for r, err := range p.client.V1Refunds.List(ctx, params) {
		if err != nil {
			return nil, convertError(err)
		}
		if o, err := refundOutcome(r); err == nil && o.Refund == "" {
			out = append(out, o)
		}
		if n++; n == maxRefunds {
			break
		}
	}
	return out, nil
}

// refundOutcome returns the outcome of a refund. One that needs an action of the customer,
// which other payment methods than cards may, is pending.
func refundOutcome(r *stripego.Refund) (payment.RefundOutcome, error) {
	o := payment.RefundOutcome{Refund: api.RefundID(r.Metadata[refundLabel]), ID: r.ID, Currency: strings.ToUpper(string(r.Currency)), State: api.RefundPending}
	o.AmountMicros, o.CreatedAt = micros(o.Currency, r.Amount), time.Unix(r.Created, 0).UTC()
	if r.PaymentIntent != nil {
		o.Charge = r.PaymentIntent.ID
	}
	if r.ID == "" {
		return o, errors.New("answer of Stripe has no refund")
	}
	switch r.Status {
	case stripego.RefundStatusPending, stripego.RefundStatusRequiresAction:
	case stripego.RefundStatusSucceeded:
		o.State = api.RefundSucceeded
	case stripego.RefundStatusFailed, stripego.RefundStatusCanceled:
		o.State, o.Reason = api.RefundFailed, cmp.Or(strings.ReplaceAll(clean(string(r.FailureReason)), "_", " "), "the refund was canceled")
	default:
		return o, fmt.Errorf("refund %s has unknown status %q", clean(r.ID), clean(string(r.Status)))
	}
	return o, nil
}
