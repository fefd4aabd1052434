package payment_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

// inDashboard refunds a part of a payment in Stripe's dashboard, in cents.
func (w *fixture) inDashboard(p api.Payment, cents int64) stripetest.Refund {
	w.t.Helper()
	x, made := w.stripe.RefundInDashboard(w.t, p.Spec.Reference, cents)
	if !made {
		w.t.Fatalf("nothing is left of payment %s", p.Meta.ID)
	}
	return x
}

func (w *fixture) refunds() []api.Refund {
	w.t.Helper()
	all, err := api.All[api.Refund](w.t.Context(), w.Store, api.ListQuery{Kind: api.KindRefund})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// wantFound checks that there is one refund, in a state, and the balance.
func (w *fixture) wantFound(state api.RefundState, balance int64) api.Refund {
	w.t.Helper()
	all := w.refunds()
	if len(all) != 1 || all[0].Status.State != state || all[0].Spec.Reason == "" {
		w.t.Fatalf("refunds = %+v, want one that is %s with a reason", all, state)
	}
	if got := w.balance(); got != balance {
		w.t.Errorf("balance = %d, want %d", got, balance)
	}
	return all[0]
}

// A refund in Stripe's dashboard is found by its event, is taken off the balance once, and
// reduces what can be refunded; if it fails, it is credited once.
func TestRefundInDashboard(t *testing.T) {
	w := start(t)
	w.stripe.SetClock(w.now)
	p := w.paidByCard()
	w.stripe.RefundsBegin("pending")
	x := w.inDashboard(p, 1200)
	for range 3 {
		w.refundEvent(x, "refund.created")
	}
	r := w.wantFound(api.RefundPending, 38_000_000)
	if r.Status.ProviderRefund != x.ID || r.Spec.AmountMicros != 12_000_000 || r.Spec.Manual || r.Meta.Organization != w.org.Meta.ID {
		t.Errorf("refund = %+v, want 12 EUR of %s", r, x.ID)
	}
	x = w.stripe.SettleRefund(t, x.ID, "succeeded", "")
	w.refundEvent(x, "refund.updated")
	w.refundEvent(x, "refund.updated")
	w.wantFound(api.RefundSucceeded, 38_000_000)
	if got := w.payment(p.Meta.ID); got.Left() != 38_000_000 || got.Status.Refunds != 1 {
		t.Errorf("payment = %+v, want 38 EUR left", got.Status)
	}
	if _, err := w.tryRefund(p, 39_000_000); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("refund of more than is left: %v, want %s", err, api.CodeInvalid)
	}
	x = w.stripe.SettleRefund(t, x.ID, "failed", "lost_or_stolen_card")
	w.refundEvent(x, "refund.failed")
	w.refundEvent(x, "refund.failed")
	if r = w.wantFound(api.RefundFailed, 50_000_000); !strings.Contains(r.Status.LastError, "lost or stolen") {
		t.Errorf("refund = %+v, want the reason", r.Status)
	}
	if got := w.notices(); !slices.Equal(got, []string{api.EventRefunded, api.EventRefundFailed}) {
		t.Errorf("events = %v, want one of each", got)
	}
}

// Without events, the leader finds refunds, and follows them to their end.
func TestRefundInDashboardWithoutEvents(t *testing.T) {
	w := start(t)
	w.stripe.SetClock(w.now)
	p := w.paidByCard()
	w.step()
	w.stripe.RefundsBegin("pending")
	x := w.inDashboard(p, 5000)
	w.pass(16 * time.Minute)
	w.step()
	w.wantFound(api.RefundPending, 0)
	w.stripe.SettleRefund(t, x.ID, "succeeded", "")
	w.pass(time.Hour)
	w.step()
	w.pass(16 * time.Minute)
	w.step()
	w.wantFound(api.RefundSucceeded, 0)
}

// Refunds of other charges of the account, those of another cluster, and those that failed
// are ignored.
func TestRefundsOfOthers(t *testing.T) {
	w := start(t)
	w.stripe.SetClock(w.now)
	c := w.began()
	charge := w.stripe.Pay(t, c.Meta.ID)
	x, _ := w.stripe.RefundInDashboard(t, charge.Intent, 100)
	w.refundEvent(x, "refund.created") // the payment is not recorded yet
	if all := w.refunds(); len(all) != 0 {
		t.Fatalf("refunds of a charge that is not recorded = %+v, want none", all)
	}
	w.sendEvent(charge, "checkout.session.completed")
	w.step()
	w.pass(16 * time.Minute)
	w.step()
	w.wantFound(api.RefundSucceeded, 49_000_000)
	p := w.payment(string(w.checkout(c.Meta.ID).Status.Payment))
	failed := w.inDashboard(p, 200)
	w.refundEvent(w.stripe.SettleRefund(t, failed.ID, "failed", "declined"), "refund.failed")
	other := w.inDashboard(p, 300)
	other.Metadata = map[string]string{"basalt_refund": "ref-ffffffffffff"}
	w.refundEvent(other, "refund.created")
	w.wantFound(api.RefundSucceeded, 49_000_000)
}

// A refund in the dashboard that was recorded by hand is not recorded again: one with its ID
// as the reference, or one of the same amount. Each of these stands for one refund.
func TestRefundInDashboardByHand(t *testing.T) {
	for name, c := range map[string]struct {
		reference string
		again     bool // a second one of the same amount
		balance   int64
		refunds   int
	}{
		"by its ID":                        {"", false, 40_000_000, 1},
		"by another reference":             {"bank-9", false, 40_000_000, 1},
		"and another one of that amount":   {"bank-9", true, 30_000_000, 2},
		"by its ID, and another one again": {"", true, 30_000_000, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.stripe.SetClock(w.now)
			p := w.paidByCard()
			x := w.inDashboard(p, 1000)
			if c.reference == "" {
				c.reference = x.ID
			}
			w.pass(time.Minute)
			if _, err := client.Of[api.Refund](w.op).Create(t.Context(), api.Refund{Spec: api.RefundSpec{Payment: api.PaymentID(p.Meta.ID), AmountMicros: 10_000_000, Reason: "outage", Manual: true, Reference: c.reference}}); err != nil {
				t.Fatal(err)
			}
			if c.again {
				w.inDashboard(p, 1000)
			}
			for range 3 {
				w.pass(16 * time.Minute)
				w.step()
				w.refundEvent(x, "refund.updated")
			}
			if got, n := w.balance(), len(w.refunds()); got != c.balance || n != c.refunds {
				t.Errorf("balance = %d with %d refunds, want %d with %d", got, n, c.balance, c.refunds)
			}
		})
	}
}

// A refund by hand from before does not stand for a later one in the dashboard.
func TestRefundInDashboardAfterOneByHand(t *testing.T) {
	w := start(t)
	w.stripe.SetClock(w.now)
	p := w.paidByCard()
	if _, err := client.Of[api.Refund](w.op).Create(t.Context(), api.Refund{Spec: api.RefundSpec{Payment: api.PaymentID(p.Meta.ID), AmountMicros: 10_000_000, Reason: "outage", Manual: true, Reference: "bank-9"}}); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	w.refundEvent(w.inDashboard(p, 1000), "refund.created")
	if got := w.balance(); got != 30_000_000 {
		t.Errorf("balance = %d, want 30000000", got)
	}
}

// Several nodes that find a refund at once record it once.
func TestRefundInDashboardAtOnce(t *testing.T) {
	w := start(t)
	w.stripe.SetClock(w.now)
	p := w.paidByCard()
	x := w.inDashboard(p, 1000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			body := x.Event("refund.created")
			w.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body))
		})
	}
	wg.Wait()
	w.pass(16 * time.Minute)
	w.step()
	w.pass(16 * time.Minute)
	w.step()
	w.wantFound(api.RefundSucceeded, 40_000_000)
}

// While payments by card are not set up, nothing is looked for, and nothing fails.
func TestNothingIsLookedForWithoutAProvider(t *testing.T) {
	w := start(t)
	w.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindPaymentSettings, ID: api.PaymentSettingsID, Name: api.PaymentSettingsID, Expect: api.AnyRevision, Data: api.Encode(api.PaymentSettingsSpec{})})
	for range 3 {
		if err := w.collector.Step(t.Context()); err != nil {
			t.Errorf("Step = %v, want nil", err)
		}
		w.pass(16 * time.Minute)
	}
}
