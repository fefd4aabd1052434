package payment_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

func (w *fixture) disputeEvent(d stripetest.Dispute, kind string) {
	w.t.Helper()
	body := d.Event(kind)
	if got := w.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body)); got != http.StatusOK {
		w.t.Fatalf("event %s of dispute %s: status %d, want 200", kind, d.ID, got)
	}
}

// disputes returns the recorded disputes, as the API shows them.
func (w *fixture) disputes() []api.Dispute {
	w.t.Helper()
	page, err := client.Of[api.Dispute](w.op).Page(w.t.Context(), client.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Items
}

// wantDispute checks the only dispute, and the balance.
func (w *fixture) wantDispute(state api.DisputeState, withdrawn, balance int64) api.Dispute {
	w.t.Helper()
	all := w.disputes()
	if len(all) != 1 {
		w.t.Fatalf("disputes = %+v, want one", all)
	}
	if st := all[0].Status; st.State != state || st.WithdrawnMicros != withdrawn {
		w.t.Errorf("status of the dispute = %+v, want %s with %d withdrawn", st, state, withdrawn)
	}
	if got := w.balance(); got != balance {
		w.t.Errorf("balance = %d, want %d", got, balance)
	}
	return all[0]
}

// A dispute takes the payment off the balance once, and returns it when it is won, however
// often and in which order events arrive; what is disputed cannot be refunded.
func TestDispute(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	d := w.stripe.Dispute(t, p.Spec.Reference, "needs_response")
	for _, kind := range []string{"charge.dispute.funds_withdrawn", "charge.dispute.created", "charge.dispute.created"} {
		w.disputeEvent(d, kind)
	}
	got := w.wantDispute(api.DisputeNeedsResponse, 50_000_000, 0)
	if got.Spec.Payment != api.PaymentID(p.Meta.ID) || got.Spec.Reason != "product not received" || got.Status.RespondBy == nil || got.Meta.Organization != w.org.Meta.ID {
		t.Errorf("dispute = %+v, want that of payment %s with its reason and time to respond", got, p.Meta.ID)
	}
	if _, err := w.tryRefund(p, 0); api.CodeOf(err) != api.CodeState {
		t.Errorf("refund of a disputed payment: %v, want %s", err, api.CodeState)
	}
	w.stripe.SettleDispute(t, d.ID, "under_review")
	won := w.stripe.SettleDispute(t, d.ID, "won")
	w.disputeEvent(won, "charge.dispute.closed")
	w.disputeEvent(d, "charge.dispute.updated") // late
	if got := w.wantDispute(api.DisputeWon, 0, 50_000_000); got.Status.ClosedAt == nil || got.Status.Entries != 2 {
		t.Errorf("status = %+v, want when it was closed, and two entries", got.Status)
	}
	if st := w.payment(p.Meta.ID).Status; st.DisputedMicros != 0 {
		t.Errorf("status of the payment = %+v, want nothing disputed", st)
	}
	w.wantRefund(w.refund(p, 0), api.RefundSucceeded, 0, 1)
}

// An inquiry takes nothing.
func TestDisputeInquiry(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	d := w.stripe.Dispute(t, p.Spec.Reference, "warning_needs_response")
	w.disputeEvent(d, "charge.dispute.created")
	w.wantDispute(api.DisputeInquiry, 0, 50_000_000)
	w.disputeEvent(w.stripe.SettleDispute(t, d.ID, "warning_closed"), "charge.dispute.closed")
	w.wantDispute(api.DisputeClosed, 0, 50_000_000)
}

// Without events the leader finds disputes, and follows them to their end.
func TestDisputeWithoutEvents(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	w.step()
	d := w.stripe.Dispute(t, p.Spec.Reference, "needs_response")
	w.pass(16 * time.Minute)
	w.step()
	w.wantDispute(api.DisputeNeedsResponse, 50_000_000, 0)
	w.pass(40 * 24 * time.Hour) // it is not new any more
	w.step()
	w.stripe.SettleDispute(t, d.ID, "lost")
	w.pass(13 * time.Hour)
	w.step()
	w.wantDispute(api.DisputeLost, 50_000_000, 0)
}

// Disputes of other charges of the account are ignored, and a charge that is recorded later
// is found later.
func TestDisputeOfOthers(t *testing.T) {
	w := start(t)
	c := w.began()
	x := w.stripe.Pay(t, c.Meta.ID)
	d := w.stripe.Dispute(t, x.Intent, "needs_response")
	w.disputeEvent(d, "charge.dispute.created")
	if all := w.disputes(); len(all) != 0 {
		t.Fatalf("disputes of a charge that is not recorded = %+v, want none", all)
	}
	w.sendEvent(x, "checkout.session.completed")
	w.step()
	w.pass(16 * time.Minute)
	w.step()
	w.wantDispute(api.DisputeNeedsResponse, 50_000_000, 0)
}

// Several nodes that learn of a dispute at once enter it once.
func TestDisputeAtOnce(t *testing.T) {
	w := start(t)
	p := w.paidByCard()
	d := w.stripe.Dispute(t, p.Spec.Reference, "needs_response")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { w.disputeEvent(d, "charge.dispute.created") })
	}
	all.Wait()
	w.wantDispute(api.DisputeNeedsResponse, 50_000_000, 0)
}

// The provider's fee is charged only if the settings say so, and returned if the provider
// returns it.
func TestDisputeFee(t *testing.T) {
	w := start(t)
	if _, err := w.op.PatchPaymentSettings(t.Context(), map[string]any{"chargeDisputeFees": true}); err != nil {
		t.Fatal(err)
	}
	p := w.paidByCard()
	d := w.stripe.Dispute(t, p.Spec.Reference, "needs_response")
	w.disputeEvent(d, "charge.dispute.created")
	if got := w.wantDispute(api.DisputeNeedsResponse, 50_000_000, -15_000_000); got.Status.FeeMicros != 15_000_000 {
		t.Errorf("fee = %d, want 15000000", got.Status.FeeMicros)
	}
	w.disputeEvent(w.stripe.SettleDispute(t, d.ID, "won"), "charge.dispute.closed")
	w.wantDispute(api.DisputeWon, 0, 50_000_000)
}

// A card whose charge is disputed is not charged automatically while the dispute is open or
// after it was lost; another card is.
func TestDisputedCardIsNotCharged(t *testing.T) {
	w := startTopUp(t)
	card := w.saved("4242", api.CardSpec{})
	w.topUp()
	w.step()
	w.step()
	charge := w.stripe.Intents()[0]
	if charge.Method != card.Status.PaymentMethod || w.balance() != 50*euro {
		t.Fatalf("charge = %+v with balance %d, want one of 50 EUR of %s", charge, w.balance(), card.Status.PaymentMethod)
	}
	d := w.stripe.Dispute(t, charge.ID, "needs_response")
	w.disputeEvent(d, "charge.dispute.created")
	if got := w.card(card.Meta.ID).Status; !got.Disputed || w.disputes()[0].Status.Card != api.CardID(card.Meta.ID) {
		t.Errorf("card = %+v, want it disputed", got)
	}
	for range 3 {
		w.pass(2 * time.Hour)
		w.step()
	}
	if got := w.stripe.Intents(); len(got) != 1 {
		t.Errorf("charges = %+v, want no other of a disputed card", got)
	}
	if f := w.failures(); len(f) == 0 || !strings.Contains(f[0].Error, "4242 is disputed") {
		t.Errorf("failures of the top-up = %+v, want that the card is disputed", f)
	}
	w.disputeEvent(w.stripe.SettleDispute(t, d.ID, "won"), "charge.dispute.closed")
	if got := w.card(card.Meta.ID).Status; got.Disputed {
		t.Errorf("card after the dispute was won = %+v, want it not disputed", got)
	}
}

// Whatever happens in which order (leaders are killed at any write, responses are lost,
// events come twice, late and never, time passes), the balance is what was paid, less what
// was refunded and what banks have taken back.
func TestMoneySimulation(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.stripe.SetClock(w.now)
			s := &moneySimulation{fixture: w, rnd: rand.New(rand.NewPCG(seed, 86))}
			for range 3 {
				s.paid = append(s.paid, s.paidByCard())
			}
			for range 80 {
				s.act()
			}
			s.heal()
		})
	}
}

type moneySimulation struct {
	*fixture
	rnd  *rand.Rand
	paid []api.Payment
}

// act lets one thing happen.
func (s *moneySimulation) act() {
	p := s.paid[s.rnd.IntN(len(s.paid))]
	switch s.rnd.IntN(13) {
	case 12: // in the dashboard
		s.stripe.RefundInDashboard(s.t, p.Spec.Reference, int64(1+s.rnd.IntN(2000)))
	case 0, 1:
		s.stripe.RefundsBegin([]string{"succeeded", "pending"}[s.rnd.IntN(2)])
		_, _ = s.tryRefund(p, int64(1+s.rnd.IntN(3000))*10_000)
	case 2:
		s.stripe.BreakRefunds([]stripetest.Fault{stripetest.Lost, stripetest.Down, stripetest.Garbage, stripetest.None}[s.rnd.IntN(4)])
	case 3, 4:
		if all := s.stripe.Refunds(); len(all) > 0 {
			x := all[s.rnd.IntN(len(all))]
			if x.Status != "failed" {
				s.stripe.SettleRefund(s.t, x.ID, []string{"succeeded", "succeeded", "failed"}[s.rnd.IntN(3)], "declined")
			}
			s.refundEvent(x, "refund.updated")
		}
	case 5:
		if !slices.ContainsFunc(s.stripe.Disputes(), func(d stripetest.Dispute) bool { return d.Intent == p.Spec.Reference }) && p.Status.RefundedMicros == 0 {
			s.stripe.Dispute(s.t, p.Spec.Reference, []string{"needs_response", "warning_needs_response"}[s.rnd.IntN(2)])
		}
	case 6, 7:
		for _, d := range s.stripe.Disputes() {
			if ended := d.Status == "won" || d.Status == "lost"; !ended && s.rnd.IntN(2) == 0 {
				s.stripe.SettleDispute(s.t, d.ID, []string{"under_review", "won", "lost"}[s.rnd.IntN(3)])
			}
			s.disputeEvent(d, "charge.dispute.updated")
		}
	case 8: // a leader that is killed, and its successor
		killed := payment.NewCollector(s.newService(&mortalStore{Store: s.Store, left: 1 + s.rnd.IntN(3), applied: s.rnd.IntN(2) == 0}))
		for range 3 {
			s.pass(20 * time.Minute)
			_ = killed.Step(s.t.Context())
		}
		s.collector = payment.NewCollector(s.service)
	case 9:
		s.stripe.ForgetKeys()
		s.pass(time.Duration(s.rnd.IntN(10)) * time.Hour)
	default:
		s.pass(time.Duration(s.rnd.IntN(20)) * time.Minute)
		_ = s.collector.Step(s.t.Context())
	}
}

// heal ends all faults, and compares the balance with what happened at the provider.
func (s *moneySimulation) heal() {
	s.t.Helper()
	s.stripe.BreakRefunds(stripetest.None)
	s.stripe.RefundsBegin("succeeded")
	for _, x := range s.stripe.Refunds() {
		if x.Status == "pending" {
			s.stripe.SettleRefund(s.t, x.ID, "succeeded", "")
		}
	}
	for range 8 {
		s.pass(13 * time.Hour)
		for range 4 {
			s.step()
		}
	}
	want, once := int64(len(s.paid))*50_000_000, map[string]bool{}
	for _, x := range s.stripe.Refunds() {
		if id := x.Metadata["basalt_refund"]; id != "" && once[id] {
			s.t.Errorf("refund %s was made twice", id)
		} else if once[id] = true; x.Status == "succeeded" {
			want -= x.Amount * 10_000
		}
	}
	for _, d := range s.stripe.Disputes() {
		for _, b := range d.Balance {
			want += b.Amount * 10_000
		}
	}
	if got := s.balance(); got != want {
		s.t.Errorf("balance = %d, want %d: refunds %+v, disputes %+v", got, want, s.stripe.Refunds(), s.stripe.Disputes())
	}
	left := int64(0)
	for _, p := range s.paid {
		st := s.payment(p.Meta.ID).Status
		left += p.Spec.AmountMicros - st.RefundedMicros - st.DisputedMicros
	}
	if left != want {
		s.t.Errorf("payments less what their status says = %d, want %d", left, want)
	}
}
