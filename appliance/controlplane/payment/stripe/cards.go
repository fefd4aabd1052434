package stripe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	stripego "github.com/stripe/stripe-go/v84"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
)

// OpenCard implements payment.Provider: Checkout in the mode setup, which creates a
// customer at Stripe with the card attached, and charges nothing
// (docs.stripe.com/payments/checkout/save-and-reuse?payment-ui=checkout).
func (p *Provider) OpenCard(ctx context.Context, o payment.CardOrder) (payment.Page, error) {
	id := string(o.Card)
	params := &stripego.CheckoutSessionCreateParams{
		Mode: stripego.String("setup"), PaymentMethodTypes: []*string{stripego.String("card")}, CustomerCreation: stripego.String("always"), ClientReferenceID: &id,
		SuccessURL: &o.Back, CancelURL: &o.Back, ExpiresAt: stripego.Int64(o.ExpiresAt.Unix()),
		SetupIntentData: &stripego.CheckoutSessionCreateSetupIntentDataParams{Metadata: map[string]string{cardLabel: id}},
		Metadata:        map[string]string{cardLabel: id},
	}
	params.SetIdempotencyKey("basalt-" + id)
	return p.open(ctx, params)
}

// open creates a session.
func (p *Provider) open(ctx context.Context, params *stripego.CheckoutSessionCreateParams) (payment.Page, error) {
	s, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return payment.Page{}, convertError(err)
	}
	if s.ID == "" || !strings.HasPrefix(s.URL, "https://") {
		return payment.Page{}, fmt.Errorf("answer of Stripe has no page: session %q", clean(s.ID))
	}
	return payment.Page{Session: s.ID, URL: s.URL}, nil
}

// CardPageOutcome implements payment.Provider.
func (p *Provider) CardPageOutcome(ctx context.Context, session string) (payment.CardOutcome, error) {
	params := &stripego.CheckoutSessionRetrieveParams{}
	params.AddExpand("setup_intent.payment_method")
	s, err := p.client.V1CheckoutSessions.Retrieve(ctx, session, params)
	if err != nil {
		return payment.CardOutcome{}, convertError(err)
	}
	if s.ID != session {
		return payment.CardOutcome{}, fmt.Errorf("answer of Stripe is about session %q, want %q", clean(s.ID), session)
	}
	return cardOutcome(s)
}

// cardOutcome returns the outcome of a session in the mode setup. A complete session
// whose SetupIntent has not succeeded yet is asked about again.
func cardOutcome(s *stripego.CheckoutSession) (payment.CardOutcome, error) {
	o := payment.CardOutcome{Card: api.CardID(s.ClientReferenceID), State: api.CardOpen}
	si := s.SetupIntent
	if si != nil && si.LastSetupError != nil {
		o.Reason = reasonOf(si.LastSetupError)
	}
	switch {
	case s.Status == stripego.CheckoutSessionStatusOpen:
	case s.Status == stripego.CheckoutSessionStatusExpired:
		o.State = api.CardExpired
	case s.Status != stripego.CheckoutSessionStatusComplete:
		return o, fmt.Errorf("session %s has unknown status %q", s.ID, clean(string(s.Status)))
	case si == nil:
		return o, fmt.Errorf("session %s has no SetupIntent", s.ID)
	case si.Status == stripego.SetupIntentStatusCanceled || si.Status == stripego.SetupIntentStatusRequiresPaymentMethod:
		o.State = api.CardFailed
	case si.Status == stripego.SetupIntentStatusSucceeded:
		if s.Customer == nil || si.PaymentMethod == nil || si.PaymentMethod.Card == nil {
			return o, fmt.Errorf("session %s has no customer or no card", s.ID)
		}
		card := si.PaymentMethod.Card
		o.State, o.Customer, o.PaymentMethod = api.CardSaved, s.Customer.ID, si.PaymentMethod.ID
		o.Brand, o.LastDigits, o.ExpiryMonth, o.ExpiryYear = clean(string(card.Brand)), clean(card.Last4), int(card.ExpMonth), int(card.ExpYear)
	}
	return o, nil
}

// Detach implements payment.Provider. Stripe refuses to detach a card that belongs to
// no customer, so it is asked first whether the card still does.
func (p *Provider) Detach(ctx context.Context, paymentMethod string) error {
	m, err := p.client.V1PaymentMethods.Retrieve(ctx, paymentMethod, nil)
	if err != nil {
		err = convertError(err)
		if errors.Is(err, payment.ErrUnknown) {
			return payment.ErrUnknown
		}
		return err
	}
	if m.Customer == nil {
		return nil
	}
	if _, err := p.client.V1PaymentMethods.Detach(ctx, paymentMethod, nil); err != nil {
		return convertError(err)
	}
	return nil
}
