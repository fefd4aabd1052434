package stripe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v84"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
)

// maxDisputes limits the disputes that one request for new ones reads.
const maxDisputes = 1000

// Dispute implements payment.Provider (docs.stripe.com/api/disputes/object).
func (p *Provider) Dispute(ctx context.Context, dispute string) (payment.DisputeOutcome, error) {
	params := &stripego.DisputeRetrieveParams{}
	params.AddExpand("payment_intent")
	d, err := p.client.V1Disputes.Retrieve(ctx, dispute, params)
	if err != nil {
		return payment.DisputeOutcome{}, convertError(err)
	}
	if d.ID != dispute {
		return payment.DisputeOutcome{}, fmt.Errorf("answer of Stripe is about dispute %q, want %q", clean(d.ID), dispute)
	}
	return disputeOutcome(d)
}

// Disputes implements payment.Provider. Disputes that cannot be read are left out, so that
// they do not hide the others.
func (p *Provider) Disputes(ctx context.Context, since time.Time) (out []payment.DisputeOutcome, err error) {
	params := &stripego.DisputeListParams{CreatedRange: &stripego.RangeQueryParams{GreaterThanOrEqual: since.Unix()}}
	params.Limit = stripego.Int64(100)
	params.AddExpand("data.payment_intent")
	for d, err := range p.client.V1Disputes.List(ctx, params) {
		if err != nil {
			return nil, convertError(err)
		}
		if o, err := disputeOutcome(d); err == nil {
			out = append(out, o)
		}
		if len(out) == maxDisputes {
			break
		}
	}
	return out, nil
}

// disputeStates are the states by Stripe's statuses.
var disputeStates = map[stripego.DisputeStatus]api.DisputeState{
	stripego.DisputeStatusWarningNeedsResponse: api.DisputeInquiry, stripego.DisputeStatusWarningUnderReview: api.DisputeInquiry,
	stripego.DisputeStatusWarningClosed: api.DisputeClosed, stripego.DisputeStatusPrevented: api.DisputeClosed,
	stripego.DisputeStatusNeedsResponse: api.DisputeNeedsResponse, stripego.DisputeStatusUnderReview: api.DisputeUnderReview,
	stripego.DisputeStatusWon: api.DisputeWon, stripego.DisputeStatusLost: api.DisputeLost,
}

// disputeOutcome returns the outcome of a dispute. Whether the money was taken is in its
// balance transactions, whose amounts are in the currency of the account: only their sum's
// sign is used, and the fee only if that currency is the payment's.
func disputeOutcome(d *stripego.Dispute) (payment.DisputeOutcome, error) {
	o := payment.DisputeOutcome{ID: d.ID, State: disputeStates[d.Status], Reason: strings.ReplaceAll(clean(string(d.Reason)), "_", " "), Currency: strings.ToUpper(string(d.Currency))}
	o.AmountMicros = micros(o.Currency, d.Amount)
	switch {
	case !providerID.MatchString(d.ID):
		return o, errors.New("answer of Stripe has no dispute")
	case o.State == "":
		return o, fmt.Errorf("dispute %s has unknown status %q", d.ID, clean(string(d.Status)))
	case o.AmountMicros == 0:
		return o, fmt.Errorf("dispute %s has an invalid amount", d.ID)
	}
	if d.PaymentIntent != nil {
		o.Charge = d.PaymentIntent.ID
		if m := d.PaymentIntent.PaymentMethod; m != nil {
			o.PaymentMethod = m.ID
		}
	}
	if e := d.EvidenceDetails; e != nil && e.DueBy > 0 {
		at := time.Unix(e.DueBy, 0).UTC()
		o.RespondBy = &at
	}
	sum, fee := int64(0), int64(0)
	for _, b := range d.BalanceTransactions {
		sum += b.Amount
		if strings.EqualFold(string(b.Currency), o.Currency) {
			fee += b.Fee
		}
	}
	if sum < 0 {
		o.WithdrawnMicros = o.AmountMicros
	}
	o.FeeMicros = micros(o.Currency, fee)
	return o, nil
}
