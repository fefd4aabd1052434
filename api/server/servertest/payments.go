package servertest

import (
	"context"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// FakePayments is a payment provider whose pages can all be opened and are never paid.
type FakePayments struct{ Store *memstore.Store }

// Begin implements server.Payments: a card on file is charged at once.
func (f *FakePayments) Begin(ctx context.Context, c api.Checkout) (api.Checkout, error) {
	if c.Status.Session != "" {
		return c, nil
	}
	ends := c.Meta.CreatedAt.Add(api.CheckoutLife)
	if c.Spec.Card != "" {
		now := time.Now()
		st := c.Status
		st.State, st.Session, st.DoneAt = api.CheckoutPaid, "pi_"+c.Meta.ID, &now
		return f.report(ctx, c, st)
	}
	st := api.CheckoutStatus{State: api.CheckoutOpen, Session: "cs_" + c.Meta.ID, URL: "https://pay.example.com/" + c.Meta.ID, ExpiresAt: &ends}
	return f.report(ctx, c, st)
}

// reportFake writes the status of an object.
func reportFake[T any](ctx context.Context, s *memstore.Store, kind api.Kind, id string, st any) (t T, err error) {
	out, err := s.Apply(ctx, api.Batch{At: time.Now(), Commands: []api.Command{{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(st)}}})
	if err != nil {
		return t, err
	}
	return api.Decode[T](out[0])
}

func (f *FakePayments) report(ctx context.Context, c api.Checkout, st api.CheckoutStatus) (api.Checkout, error) {
	return reportFake[api.Checkout](ctx, f.Store, api.KindCheckout, c.Meta.ID, st)
}

// BeginRefund implements server.Payments: every refund succeeds at once.
func (f *FakePayments) BeginRefund(ctx context.Context, r api.Refund) (api.Refund, error) {
	if r.Status.State != api.RefundPending {
		return r, nil
	}
	now := time.Now()
	st := r.Status
	st.State, st.ProviderRefund, st.DoneAt = api.RefundSucceeded, "re_"+r.Meta.ID, &now
	return reportFake[api.Refund](ctx, f.Store, api.KindRefund, r.Meta.ID, st)
}

// Event implements server.Payments; it accepts the signature "good".
func (f *FakePayments) Event(_ context.Context, header http.Header, _ []byte) error {
	if header.Get("Stripe-Signature") != "good" {
		return api.Errorf(api.CodeInvalid, "the event is not signed by the payment provider")
	}
	return nil
}

// BeginCard implements server.Payments: every card is saved at once.
func (f *FakePayments) BeginCard(ctx context.Context, c api.Card) (api.Card, error) {
	if c.Status.Session != "" {
		return c, nil
	}
	now := time.Now()
	st := api.CardStatus{State: api.CardSaved, Session: "cs_" + c.Meta.ID, URL: "https://pay.example.com/" + c.Meta.ID, PaymentMethod: "pm_" + c.Meta.ID, Customer: "cus_1",
		Brand: "visa", LastDigits: "4242", ExpiryMonth: 12, ExpiryYear: 2099, DoneAt: &now, Default: c.Spec.Default}
	return f.reportCard(ctx, c, st)
}

// DetachCard implements server.Payments.
func (f *FakePayments) DetachCard(context.Context, api.Card) error { return nil }

// SetDefaultCard implements server.Payments; other cards are not changed.
func (f *FakePayments) SetDefaultCard(ctx context.Context, c api.Card) (api.Card, error) {
	c.Status.Default = true
	return f.reportCard(ctx, c, c.Status)
}

func (f *FakePayments) reportCard(ctx context.Context, c api.Card, st api.CardStatus) (api.Card, error) {
	return reportFake[api.Card](ctx, f.Store, api.KindCard, c.Meta.ID, st)
}
