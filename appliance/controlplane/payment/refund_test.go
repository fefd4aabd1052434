package payment_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
	"github.com/basalt-gpu/basalt/billing/ledger"
)

// paidByCard returns a payment of 50 EUR by card.
func (w *fixture) paidByCard() api.Payment {
	w.t.Helper()
	c := w.began()
	x := w.stripe.Pay(w.t, c.Meta.ID)
	if got := w.sendEvent(x, "checkout.session.completed"); got != http.StatusOK {
		w.t.Fatalf("event of a payment: status %d, want 200", got)
	}
	return w.payment(string(w.checkout(c.Meta.ID).Status.Payment))
}

func (w *fixture) payment(id string) api.Payment {
	w.t.Helper()
	p, err := api.Get[api.Payment](w.t.Context(), w.Store, api.KindPayment, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *fixture) tryRefund(p api.Payment, micros int64) (api.Refund, error) {
	return client.Of[api.Refund](w.op).Create(w.t.Context(), api.Refund{Spec: api.RefundSpec{Payment: api.PaymentID(p.Meta.ID), AmountMicros: micros, Reason: "outage"}})
}

func (w *fixture) refund(p api.Payment, micros int64) api.Refund {
	w.t.Helper()
	r, err := w.tryRefund(p, micros)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *fixture) readRefund(r api.Refund) api.Refund {
	w.t.Helper()
	r, err := client.Of[api.Refund](w.op).Get(w.t.Context(), r.Meta.ID, client.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *fixture) refundEvent(x stripetest.Refund, kind string) {
	w.t.Helper()
	body := x.Event(kind)
	if got := w.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body)); got != http.StatusOK {
		w.t.Fatalf("event %s of refund %s: status %d, want 200", kind, x.ID, got)
	}
}

// balance returns the balance that the ledger computes from all payments.
func (w *fixture) balance() int64 {
	w.t.Helper()
	journal, err := ledger.Documents{Payments: w.payments()}.Journal()
	if err != nil {
		w.t.Fatal(err)
	}
	ledgers, err := ledger.Ledgers(journal)
	if err != nil {
		w.t.Fatal(err)
	}
	if ledgers["EUR"] == nil {
		return 0
	}
	return -ledgers["EUR"].Balance(ledger.Receivable(api.OrganizationID(w.org.Meta.ID)))
}

// notices returns the types of the events of refunds and disputes about which there is mail.
func (w *fixture) notices() (types []string) {
	w.t.Helper()
	page, err := w.Store.Events(w.t.Context(), api.EventQuery{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range page.Items {
		if e.Type == api.EventRefunded || e.Type == api.EventRefundFailed {
			types = append(types, e.Type)
		}
	}
	return types
}

// wantRefund checks the state of a refund, the balance, and how often Stripe has refunded.
func (w *fixture) wantRefund(r api.Refund, state api.RefundState, balance int64, made int) api.Refund {
	w.t.Helper()
	r = w.readRefund(r)
	if r.Status.State != state {
		w.t.Errorf("refund %s: state is %s (%s), want %s", r.Meta.ID, r.Status.State, r.Status.LastError, state)
	}
	if got := w.balance(); got != balance {
		w.t.Errorf("balance = %d, want %d", got, balance)
	}
	if got := w.stripe.Refunds(); len(got) != made {
		w.t.Errorf("refunds at Stripe = %+v, want %d", got, made)
	}
	return r
}

// A refund through the provider takes the amount off the balance once, and what is left of
// the payment can be refunded, not more.
func TestRefund(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	r := w.wantRefund(w.refund(p, 20_000_000), api.RefundSucceeded, 30_000_000, 1)
	made := w.stripe.Refunds()[0]
	if made.Intent != p.Spec.Reference || made.Amount != 2000 || r.Status.ProviderRefund != made.ID || r.Spec.Manual {
		t.Errorf("refund at Stripe = %+v for %+v, want 2000 of charge %s", made, r, p.Spec.Reference)
	}
	for _, kind := range []string{"refund.updated", "refund.created", "charge.refund.updated"} {
		w.refundEvent(made, kind)
	}
	w.wantRefund(r, api.RefundSucceeded, 30_000_000, 1)
	for _, micros := range []int64{30_010_000, 30_000_001, 5} {
		if _, err := w.tryRefund(p, micros); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("refund %d millionths of the remaining 30000000: %v, want %s", micros, err, api.CodeInvalid)
		}
	}
	w.wantRefund(w.refund(p, 0), api.RefundSucceeded, 0, 2) // what is left
	if _, err := w.tryRefund(p, 0); api.CodeOf(err) != api.CodeState {
		t.Errorf("refund of a refunded payment: %v, want %s", err, api.CodeState)
	}
	if got, want := w.notices(), []string{api.EventRefunded, api.EventRefunded}; !slices.Equal(got, want) {
		t.Errorf("events = %v, want %v", got, want)
	}
	if got := w.payment(p.Meta.ID).Status; got.RefundedMicros != 50_000_000 || got.Refunds != 2 {
		t.Errorf("status of the payment = %+v, want 50000000 in 2 refunds", got)
	}
}

// Whatever becomes of a request or of its answer, a refund is made once.
func TestRefundOnce(t *testing.T) {
	for name, fault := range map[string]stripetest.Fault{"not done": stripetest.Down, "response lost": stripetest.Lost, "nonsense": stripetest.Garbage} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			p := w.paidByCard()
			w.stripe.BreakRefunds(fault)
			r := w.refund(p, 0)
			if r.Status.State != api.RefundPending || w.balance() != 0 {
				t.Errorf("refund while Stripe fails = %+v with balance %d, want Pending and 0", r.Status, w.balance())
			}
			w.step()
			w.stripe.ForgetKeys() // from now on only what is listed prevents another
			w.stripe.BreakRefunds(stripetest.None)
			for range 3 {
				w.pass(11 * time.Minute)
				w.step()
			}
			w.wantRefund(r, api.RefundSucceeded, 0, 1)
		})
	}
}

// A process that is killed after the provider has made the refund, and before it wrote that,
// leaves it to the next one.
func TestRefundKilled(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	w.stripe.Break(stripetest.Down)
	r := w.refund(p, 10_000_000)
	w.stripe.Break(stripetest.None)
	for range 3 {
		killed := &unwritableStore{Store: w.Store}
		if _, err := w.newService(killed).BeginRefund(t.Context(), r); err != nil || !killed.tried {
			t.Fatalf("begin a refund with a store that cannot be written: %v, tried to write: %t", err, killed.tried)
		}
		w.stripe.ForgetKeys()
	}
	w.wantRefund(r, api.RefundPending, 40_000_000, 1)
	w.pass(time.Minute)
	w.step()
	w.wantRefund(r, api.RefundSucceeded, 40_000_000, 1)
}

// The amount of a refund that fails is credit again, and can be refunded again, whenever it
// fails and however that becomes known.
func TestRefundFails(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	w.stripe.RefundsBegin("pending")
	r := w.wantRefund(w.refund(p, 0), api.RefundPending, 0, 1)
	before := w.stripe.Refunds()[0]
	w.stripe.SettleRefund(t, before.ID, "succeeded", "")
	w.refundEvent(before, "refund.updated") // from when it was pending: the answer counts
	r = w.wantRefund(r, api.RefundSucceeded, 0, 1)
	w.stripe.SettleRefund(t, before.ID, "failed", "expired_or_canceled_card")
	w.step() // no event arrives
	w.pass(13 * time.Hour)
	w.step()
	r = w.wantRefund(r, api.RefundFailed, 50_000_000, 1)
	if r.Status.LastError != "expired or canceled card" || r.Status.Reversal == "" {
		t.Errorf("status = %+v, want the reason and a reversal", r.Status)
	}
	for range 2 {
		w.refundEvent(before, "refund.failed")
	}
	w.wantRefund(r, api.RefundFailed, 50_000_000, 1)
	if got, want := w.notices(), []string{api.EventRefunded, api.EventRefundFailed}; !slices.Equal(got, want) {
		t.Errorf("events = %v, want %v", got, want)
	}
	w.stripe.RefundsBegin("succeeded")
	w.wantRefund(w.refund(p, 0), api.RefundSucceeded, 0, 2)
}

// What the provider refuses, or has not made within a day, has failed.
func TestRefundRefused(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	w.stripe.BreakRefunds(stripetest.Refused)
	w.wantRefund(w.refund(p, 0), api.RefundFailed, 50_000_000, 0)
	w.stripe.BreakRefunds(stripetest.Down)
	r := w.wantRefund(w.refund(p, 0), api.RefundPending, 0, 0)
	w.pass(21 * time.Hour)
	w.stripe.BreakRefunds(stripetest.None)
	w.step() // too late to send it again
	w.wantRefund(r, api.RefundPending, 0, 0)
	w.pass(2 * time.Hour)
	w.step()
	w.wantRefund(r, api.RefundFailed, 50_000_000, 0)
}

// Two at once cannot refund more than was paid.
func TestRefundsAtOnce(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	var all sync.WaitGroup
	codes := make([]api.Code, 8)
	for i := range codes {
		all.Go(func() {
			_, err := w.tryRefund(p, 20_000_000)
			codes[i] = api.CodeOf(err)
		})
	}
	all.Wait()
	refused := 0
	for _, c := range codes {
		if c == api.CodeInvalid {
			refused++
		}
	}
	if made := w.stripe.Refunds(); len(made) != 2 || refused != 6 || w.balance() != 10_000_000 {
		t.Errorf("8 refunds of 20 of 50 EUR: %d made, errors %v, balance %d; want 2 made, 6 %s, balance 10000000", len(made), codes, w.balance(), api.CodeInvalid)
	}
}

// Payments by hand are refunded by hand, and a payment by card may be; the provider is not
// asked.
func TestRefundByHand(t *testing.T) {
	w := start(t)
	p, err := client.Of[api.Payment](w.op).Create(t.Context(), api.Payment{Meta: api.Meta{Organization: w.org.Meta.ID}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 10_000_000, Reference: "bank-1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.tryRefund(p, 0); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("refund by hand without a reference: %v, want %s", err, api.CodeInvalid)
	}
	by := func(p api.Payment, reference string) (api.Refund, error) {
		return client.Of[api.Refund](w.op).Create(t.Context(), api.Refund{Spec: api.RefundSpec{Payment: api.PaymentID(p.Meta.ID), AmountMicros: 3_000_001, Reason: "paid twice", Manual: true, Reference: reference}})
	}
	if _, err := by(p, "bank-1"); api.CodeOf(err) != api.CodeExists {
		t.Errorf("refund with the reference of the payment: %v, want %s", err, api.CodeExists)
	}
	r, err := by(p, "bank-2")
	if err != nil {
		t.Fatal(err)
	}
	w.wantRefund(r, api.RefundSucceeded, 6_999_999, 0)
	card := w.paidByCard()
	if r, err = by(card, "re_from_dashboard"); err != nil {
		t.Fatal(err)
	}
	w.wantRefund(r, api.RefundSucceeded, 53_999_998, 0)
}
