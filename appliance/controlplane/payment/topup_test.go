package payment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

const euro = 1_000_000

// startTopUp starts on the tenth of next month, so that a month ends only where a test
// wants it to.
func startTopUp(t *testing.T) *fixture {
	t.Helper()
	w := start(t)
	now := time.Now().UTC()
	w.pass(time.Date(now.Year(), now.Month()+1, 10, 0, 0, 0, 0, time.UTC).Sub(now))
	w.stripe.SetClock(w.now)
	return w
}

func (w *fixture) spend(micros int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent += micros
}

// topUp enables the automatic top-up: below 10, by 50, at most 200 a month.
func (w *fixture) topUp() api.TopUp {
	w.t.Helper()
	return w.saveTopUp(func(t *api.TopUp) {
		t.Enabled, t.BelowMicros, t.AmountMicros, t.MonthlyLimitMicros = true, 10*euro, 50*euro, 200*euro
	})
}

func (w *fixture) saveTopUp(edit func(*api.TopUp)) api.TopUp {
	w.t.Helper()
	t := w.readTopUp()
	edit(&t)
	t, err := w.op.UpdateTopUp(w.t.Context(), w.org.Meta.ID, t)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *fixture) readTopUp() api.TopUp {
	w.t.Helper()
	t, err := w.op.TopUp(w.t.Context(), w.org.Meta.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// steps lets the leader decide, charge, and write the end of the charge.
func (w *fixture) steps() {
	w.t.Helper()
	w.pass(2 * time.Minute)
	for range 3 {
		w.step()
	}
}

// failures returns the events of failed top-ups.
func (w *fixture) failures() (out []api.TopUpFailure) {
	w.t.Helper()
	p, err := w.Store.Events(w.t.Context(), api.EventQuery{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range p.Items {
		if e.Type == api.EventTopUpFailed {
			var f api.TopUpFailure
			if err := json.Unmarshal(e.Data, &f); err != nil {
				w.t.Fatal(err)
			}
			if e.Organization != w.org.Meta.ID {
				w.t.Errorf("organization of event %s = %q, want %s", e.ID, e.Organization, w.org.Meta.ID)
			}
			out = append(out, f)
		}
	}
	return out
}

// A balance below the threshold is topped up by the default card, once, until the limit
// of the month is reached; the next month has a limit of its own.
func TestTopUp(t *testing.T) {
	w := startTopUp(t)
	card := w.saved("4242", api.CardSpec{})
	w.topUp()
	w.steps()
	got := w.payments()
	if len(got) != 1 || got[0].Spec.AmountMicros != 50*euro || !strings.HasPrefix(got[0].Spec.Reference, "pi_") || got[0].Meta.Organization != w.org.Meta.ID {
		t.Fatalf("payments = %+v, want one of 50 EUR", got)
	}
	pi := w.stripe.Intents()[0]
	if pi.Customer != card.Status.Customer || pi.Method != card.Status.PaymentMethod || pi.Amount != 5000 || pi.Currency != "eur" {
		t.Errorf("charge = %+v, want 50 EUR of card %+v", pi, card.Status)
	}
	w.steps()
	w.steps()
	if n := len(w.payments()); n != 1 {
		t.Errorf("payments while the balance is enough = %d, want 1", n)
	}
	st := w.readTopUp().Status
	if st.State != api.TopUpReady || st.ChargedMicros != 50*euro || st.Checkout != "" || st.LastCheckout == "" {
		t.Errorf("status = %+v, want Ready with 50 EUR charged", st)
	}
	w.spend(500 * euro)
	for range 6 {
		w.steps()
	}
	if st := w.readTopUp().Status; len(w.payments()) != 4 || st.State != api.TopUpLimited || st.Cause.Code != api.CausePaymentLimit || st.ChargedMicros != 200*euro {
		t.Errorf("%d payments, status = %+v; want 4, and Limited with 200 EUR charged", len(w.payments()), st)
	}
	w.pass(32 * 24 * time.Hour)
	w.steps()
	if n := len(w.payments()); n != 5 {
		t.Errorf("payments in the next month = %d, want 5", n)
	}
	if f := w.failures(); len(f) > 0 {
		t.Errorf("failures = %+v, want none", f)
	}
}

// A card that is declined is charged again after an hour, 6 and 24 hours, each failure is
// an event, and then it is not charged until the settings are saved again.
func TestTopUpDeclined(t *testing.T) {
	w := startTopUp(t)
	card := w.saved("4242", api.CardSpec{})
	w.topUp()
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Decline)
	for i, wait := range []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 0} {
		w.steps()
		st, f := w.readTopUp().Status, w.failures()
		if len(f) != i+1 || len(w.stripe.Intents()) != i+1 {
			t.Fatalf("after failure %d: %d events, %d charges; want %d of both", i+1, len(f), len(w.stripe.Intents()), i+1)
		}
		if last := f[i]; last.Error != "Your card was declined." || last.AmountMicros != 50*euro || last.Checkout == "" || last.AuthenticationRequired || (last.NextAt == nil) != (wait == 0) {
			t.Errorf("event = %+v, want the declined charge of 50 EUR, and when the next one is", last)
		}
		if wait == 0 {
			if st.State != api.TopUpStopped || st.Cause != declined || st.NextAt != nil {
				t.Errorf("status after the last failure = %+v, want Stopped", st)
			}
			break
		}
		if st.State != api.TopUpRetrying || st.Failures != int64(i+1) || st.ChargedMicros != 0 {
			t.Errorf("status = %+v, want Retrying with nothing charged", st)
		}
		w.pass(wait - 20*time.Minute)
		w.steps()
		if n := len(w.stripe.Intents()); n != i+1 {
			t.Fatalf("charges before the wait of %s has passed = %d, want %d", wait, n, i+1)
		}
		w.pass(20 * time.Minute)
	}
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Accept)
	w.pass(240 * time.Hour)
	w.steps()
	if n := len(w.payments()); n != 0 {
		t.Errorf("payments after it was stopped = %d, want 0", n)
	}
	w.saveTopUp(func(*api.TopUp) {})
	w.steps()
	if st := w.readTopUp().Status; len(w.payments()) != 1 || st.State != api.TopUpReady || st.Failures != 0 {
		t.Errorf("after the settings were saved again: %d payments, status = %+v; want 1, and Ready", len(w.payments()), st)
	}
}

// A charge that the bank wants to be confirmed is not made, and its event reports that. A payment
// of the user ends the retries.
func TestTopUpNeedsAuthentication(t *testing.T) {
	w := startTopUp(t)
	card := w.saved("3184", api.CardSpec{})
	w.topUp()
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Authenticate)
	w.steps()
	f := w.failures()
	if len(f) != 1 || !f[0].AuthenticationRequired || len(w.payments()) > 0 {
		t.Fatalf("failures = %+v, payments = %+v; want one that needs authentication, and none", f, w.payments())
	}
	c := w.checkout(string(f[0].Checkout))
	if c.Status.State != api.CheckoutFailed || !c.Status.AuthenticationRequired || !c.Spec.TopUp || c.Status.DoneAt == nil {
		t.Errorf("checkout = %+v, want Failed, with authentication required", c)
	}
	w.stripe.Pay(t, w.began().Meta.ID)
	w.pass(2 * time.Hour)
	w.steps()
	if st := w.readTopUp().Status; st.State != api.TopUpReady || st.Failures != 0 || len(w.stripe.Intents()) != 1 {
		t.Errorf("status after the user has paid = %+v with %d charges, want Ready and 1", st, len(w.stripe.Intents()))
	}
}

// Without a card there is an event, and nothing is charged; a card that is being charged
// is not removed.
func TestTopUpWithoutCard(t *testing.T) {
	w := startTopUp(t)
	card := w.saved("4242", api.CardSpec{})
	w.topUp()
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Process)
	w.pass(2 * time.Minute)
	w.step()
	w.step()
	if _, err := client.Of[api.Card](w.op).Delete(t.Context(), card.Meta.ID); api.CodeOf(err) != api.CodeState {
		t.Errorf("remove a card that is being charged: %v, want code %s", err, api.CodeState)
	}
	w.stripe.SettleCharge(w.stripe.Intents()[0].ID, stripetest.Decline)
	w.steps()
	if _, err := client.Of[api.Card](w.op).Delete(t.Context(), card.Meta.ID); err != nil {
		t.Fatal(err)
	}
	w.pass(2 * time.Hour)
	w.steps()
	f := w.failures()
	if len(f) != 2 || f[1].Checkout != "" || f[1].Error != "there is no default card on file" || len(w.stripe.Intents()) != 1 {
		t.Errorf("failures = %+v with %d charges, want a second one without a card, and 1 charge", f, len(w.stripe.Intents()))
	}
}

// A user pays with a card on file: at once, once per idempotency key, and a decline ends
// the payment.
func TestPayWithCardOnFile(t *testing.T) {
	w := start(t)
	card := w.saved("4242", api.CardSpec{})
	spec := api.CheckoutSpec{AmountMicros: 50 * euro, Card: api.CardID(card.Meta.ID)}
	c, err := w.begin(spec)
	if err != nil {
		t.Fatal(err)
	}
	if c.Status.State != api.CheckoutPaid || c.Status.URL != "" || len(w.payments()) != 1 || string(c.Status.Payment) != w.payments()[0].Meta.ID {
		t.Errorf("status = %+v with %d payments, want Paid with one", c.Status, len(w.payments()))
	}
	for range 2 {
		for _, kind := range []string{"payment_intent.succeeded", "payment_intent.created"} {
			body := w.stripe.Intents()[0].Event(kind)
			if got := w.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body)); got != http.StatusOK {
				t.Errorf("event %s: status %d, want 200", kind, got)
			}
		}
	}
	if n := len(w.payments()); n != 1 {
		t.Errorf("payments after events = %d, want 1", n)
	}
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Decline)
	if c, err = w.begin(spec); err != nil || c.Status.State != api.CheckoutFailed || c.Status.LastError != "Your card was declined." || c.Status.Cause != declined {
		t.Errorf("declined: %+v, %v; want Failed with the reason", c.Status, err)
	}
	for range api.MaxOpenCheckouts - 1 {
		if _, err := w.begin(spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.begin(spec); api.CodeOf(err) != api.CodeRateLimited {
		t.Errorf("pay with a card that was declined ten times: %v, want code %s", err, api.CodeRateLimited)
	}
	w.pass(api.CheckoutLife)
	open := w.addCard(api.CardSpec{})
	spec.Card = api.CardID(open.Meta.ID)
	if _, err := w.begin(spec); api.CodeOf(err) != api.CodeState {
		t.Errorf("pay with a card that was not entered: %v, want code %s", err, api.CodeState)
	}
	spec.Card = "card-0123456789ab"
	if _, err := w.begin(spec); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("pay with a card that does not exist: %v, want code %s", err, api.CodeInvalid)
	}
}

// A charge whose response was lost is found again, also after the provider has forgotten
// its idempotency key; one that never arrived fails after a day.
func TestLostCharge(t *testing.T) {
	for name, c := range map[string]struct {
		fault stripetest.Fault
		want  api.CheckoutState
		paid  int
	}{"response lost": {stripetest.Lost, api.CheckoutPaid, 1}, "never arrived": {stripetest.Down, api.CheckoutFailed, 0}} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.stripe.SetClock(w.now)
			card := w.saved("4242", api.CardSpec{})
			w.stripe.BreakCharges(c.fault)
			pays, err := w.begin(api.CheckoutSpec{AmountMicros: 50 * euro, Card: api.CardID(card.Meta.ID)})
			if err != nil || pays.Status.State != api.CheckoutProcessing {
				t.Fatalf("pay: %+v, %v; want Processing", pays.Status, err)
			}
			w.stripe.ForgetKeys()
			w.stripe.BreakCharges(stripetest.None)
			w.pass(21 * time.Hour)
			w.step()
			w.pass(2 * time.Hour)
			w.step()
			if got := w.checkout(pays.Meta.ID).Status; got.State != c.want || len(w.payments()) != c.paid || len(w.stripe.Intents()) != c.paid {
				t.Errorf("status = %+v, %d payments, %d charges; want %s and %d of both", got, len(w.payments()), len(w.stripe.Intents()), c.want, c.paid)
			}
		})
	}
}

// If all nodes charge the same card for the same checkout at once, it is charged once.
func TestChargedAtOnce(t *testing.T) {
	w := start(t)
	card := w.saved("4242", api.CardSpec{})
	w.stripe.BreakCharges(stripetest.Down)
	pays, err := w.begin(api.CheckoutSpec{AmountMicros: 50 * euro, Card: api.CardID(card.Meta.ID)})
	if err != nil {
		t.Fatal(err)
	}
	w.stripe.BreakCharges(stripetest.None)
	w.atOnce(func() error { _, err := w.newService(w.Store).Begin(t.Context(), pays); return err })
	if len(w.stripe.Intents()) != 1 || len(w.payments()) != 1 || w.checkout(pays.Meta.ID).Status.State != api.CheckoutPaid {
		t.Errorf("charges = %+v, payments = %+v; want one of both", w.stripe.Intents(), w.payments())
	}
}

// If two nodes believe to lead, and both have read that the balance is too low, one of
// them begins the top-up.
func TestTopUpOfTwoLeaders(t *testing.T) {
	w := startTopUp(t)
	w.saved("4242", api.CardSpec{})
	w.topUp()
	w.pass(2 * time.Minute)
	slow := &overtakenStore{Store: w.Store, before: w.steps}
	_ = payment.NewCollector(w.newService(slow)).Step(t.Context())
	w.steps()
	if n, st := len(w.stripe.Intents()), w.readTopUp().Status; slow.before != nil || n != 1 || st.ChargedMicros != 50*euro {
		t.Errorf("%d charges, status = %+v; want 1, and 50 EUR charged", n, st)
	}
}

// overtakenStore is the store of a leader that is so slow that something else happens
// before its first write.
type overtakenStore struct {
	*memstore.Store
	before func()
}

func (s *overtakenStore) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.Store.Apply(ctx, b)
}

// atOnce calls f eight times at once.
func (w *fixture) atOnce(f func() error) {
	w.t.Helper()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := f(); err != nil {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A charge that ends in the month after the one in which it began counts in both.
func TestTopUpAtTheEndOfAMonth(t *testing.T) {
	w := startTopUp(t)
	card := w.saved("4242", api.CardSpec{})
	w.topUp()
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Process)
	w.steps()
	if st := w.readTopUp().Status; st.State != api.TopUpCharging || st.ChargedMicros != 50*euro {
		t.Fatalf("status = %+v, want Charging with 50 EUR counted", st)
	}
	began := w.now().UTC()
	next := time.Date(began.Year(), began.Month()+1, 1, 1, 0, 0, 0, time.UTC)
	w.pass(next.Sub(began))
	w.stripe.SettleCharge(w.stripe.Intents()[0].ID, stripetest.Accept)
	w.steps()
	if st := w.readTopUp().Status; st.Month != next.Format("2006-01") || st.ChargedMicros != 50*euro || len(w.payments()) != 1 {
		t.Errorf("status = %+v with %d payments, want 50 EUR in %s and 1", st, len(w.payments()), next.Format("2006-01"))
	}
}

// mortalStore is the store of a leader that is killed at a write: before it, or after it
// was applied.
type mortalStore struct {
	*memstore.Store
	left    int // writes until then
	applied bool
}

func (s *mortalStore) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if s.left--; s.left > 0 {
		return s.Store.Apply(ctx, b)
	}
	if s.left == 0 && s.applied {
		_, _ = s.Store.Apply(ctx, b)
	}
	return nil, errors.New("killed")
}

// Whatever happens in which order (leaders are killed at any write, responses are lost,
// events come twice and late, cards are declined, time passes, users act), each charge is
// credited once, there is one charge for each checkout, and a month's charges stay within
// the limit.
func TestTopUpSimulation(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := &topUpSimulation{fixture: startTopUp(t), rnd: rand.New(rand.NewPCG(seed, 73))}
			s.card = s.saved("4242", api.CardSpec{})
			s.topUp()
			for range 120 {
				s.act()
				s.check()
			}
			s.heal()
		})
	}
}

type topUpSimulation struct {
	*fixture
	rnd  *rand.Rand
	card api.Card
}

// act lets one thing happen.
func (s *topUpSimulation) act() {
	banks := []stripetest.Bank{stripetest.Accept, stripetest.Accept, stripetest.Accept, stripetest.Decline, stripetest.Authenticate, stripetest.Process}
	switch s.rnd.IntN(14) {
	case 0, 1, 2, 3:
		s.pass(time.Duration(s.rnd.IntN(5)) * time.Minute)
		_ = s.collector.Step(s.t.Context())
	case 4, 5: // a leader that is killed, and its successor
		s.pass(2 * time.Minute)
		killed := payment.NewCollector(s.newService(&mortalStore{Store: s.Store, left: 1 + s.rnd.IntN(3), applied: s.rnd.IntN(2) == 0}))
		for range 3 {
			_ = killed.Step(s.t.Context())
		}
		s.collector = payment.NewCollector(s.service)
	case 6:
		s.stripe.BreakCharges([]stripetest.Fault{stripetest.Lost, stripetest.Down, stripetest.None}[s.rnd.IntN(3)])
	case 7:
		s.stripe.SetBank(s.card.Status.PaymentMethod, banks[s.rnd.IntN(len(banks))])
	case 8:
		s.spend(int64(s.rnd.IntN(60)) * euro)
	case 9, 10:
		if all := s.stripe.Intents(); len(all) > 0 {
			i := all[s.rnd.IntN(len(all))]
			if i.Status == "processing" && s.rnd.IntN(2) == 0 {
				s.stripe.SettleCharge(i.ID, banks[s.rnd.IntN(4)])
			}
			body := i.Event("payment_intent.succeeded")
			s.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body))
		}
	case 11:
		s.pass(time.Duration(s.rnd.IntN(18)) * time.Hour)
	case 12:
		if s.rnd.IntN(3) == 0 {
			s.stripe.ForgetKeys()
			s.pass(24 * time.Hour)
		}
	case 13:
		s.saveTopUp(func(t *api.TopUp) { t.Enabled = s.rnd.IntN(5) > 0 })
	}
}

// check checks what must always be true.
func (s *topUpSimulation) check() {
	s.t.Helper()
	paid, months, checkouts := map[string]int64{}, map[string]int64{}, map[string]string{}
	for _, p := range s.payments() {
		if _, twice := paid[p.Spec.Reference]; twice {
			s.t.Fatalf("charge %s was credited twice", p.Spec.Reference)
		}
		paid[p.Spec.Reference] = p.Spec.AmountMicros
	}
	for _, i := range s.stripe.Intents() {
		id := i.Metadata["basalt_checkout"]
		if checkouts[id] != "" {
			s.t.Fatalf("checkout %s was charged as %s and %s", id, checkouts[id], i.ID)
		}
		checkouts[id] = i.ID
		micros := paid[i.ID]
		delete(paid, i.ID)
		if i.Status != "succeeded" && micros != 0 || micros != 0 && micros != i.Amount*10_000 {
			s.t.Fatalf("charge %+v was credited with %d millionths", i, micros)
		}
		if i.Status == "succeeded" {
			month := i.Created.UTC().Format("2006-01")
			if months[month] += i.Amount * 10_000; months[month] > 200*euro {
				s.t.Fatalf("charges of %s = %d millionths, want at most the limit of 200 EUR", month, months[month])
			}
		}
	}
	if len(paid) > 0 {
		s.t.Fatalf("payments %v have no charge", paid)
	}
}

// heal ends all faults: then every charge is decided, and each that succeeded is credited.
func (s *topUpSimulation) heal() {
	s.t.Helper()
	s.stripe.BreakCharges(stripetest.None)
	s.stripe.SetBank(s.card.Status.PaymentMethod, stripetest.Accept)
	s.saveTopUp(func(t *api.TopUp) { t.Enabled = false })
	for _, i := range s.stripe.Intents() {
		if i.Status == "processing" {
			s.stripe.SettleCharge(i.ID, stripetest.Accept)
		}
	}
	for range 4 {
		s.pass(12 * time.Hour) // longer than the pause after failures
		s.step()
		s.step()
	}
	s.check()
	paid, succeeded := s.payments(), 0
	for _, i := range s.stripe.Intents() {
		if i.Status == "succeeded" {
			succeeded++
		}
	}
	if len(paid) != succeeded {
		s.t.Errorf("payments = %d, want one for each of %d charges", len(paid), succeeded)
	}
	if st := s.readTopUp().Status; st.Checkout != "" || st.State != api.TopUpOff {
		s.t.Errorf("status = %+v, want Off without a charge in progress", st)
	}
}
