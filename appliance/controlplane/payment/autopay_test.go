package payment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

// owed returns the open invoices: payments count for the oldest first.
func (w *fixture) owed(ctx context.Context, org api.OrganizationID) (string, []api.OpenInvoice, error) {
	paid, err := api.All[api.Payment](ctx, w.Store, api.ListQuery{Kind: api.KindPayment, Organization: string(org)})
	if err != nil {
		return "", nil, err
	}
	sum := int64(0)
	for _, p := range paid {
		sum += p.Spec.AmountMicros
	}
	invoices, err := api.All[api.Invoice](ctx, w.Store, api.ListQuery{Kind: api.KindInvoice, Organization: string(org)})
	var open []api.OpenInvoice
	for _, inv := range invoices { // their IDs are in order
		used := min(sum, inv.Spec.TotalMicros)
		if sum -= used; used < inv.Spec.TotalMicros {
			open = append(open, api.OpenInvoice{Invoice: api.InvoiceID(inv.Meta.ID), Number: inv.Spec.Number, DueAt: inv.Spec.DueAt, LeftMicros: inv.Spec.TotalMicros - used})
		}
	}
	return "EUR", open, err
}

// issue writes the nth invoice.
func (w *fixture) issue(n int, micros int64) api.InvoiceID {
	w.t.Helper()
	id, now := fmt.Sprintf("inv-%012d", n), w.now().UTC()
	spec := api.InvoiceSpec{Number: api.DocumentNumber(api.InvoiceNumbers, int64(n)), Currency: "EUR", TotalMicros: micros, IssuedAt: now, DueAt: now.Add(14 * day),
		Lines: []api.InvoiceLine{{ID: "line-1", Kind: api.LineUsage, Meter: api.MeterGPU, AmountMicros: micros}}}
	w.Apply(w.t, api.Command{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: id, Name: api.DocumentName(spec.Number), Organization: w.org.Meta.ID, Data: api.Encode(spec)})
	return api.InvoiceID(id)
}

const day = 24 * time.Hour

// startAutoPay starts with an organization that pays by invoice, has a card on file, and
// has enabled the automatic payment.
func startAutoPay(t *testing.T) (*fixture, api.Card) {
	t.Helper()
	w := startTopUp(t)
	w.org.Spec.Billing = &api.OrganizationBilling{Mode: api.BillingInvoice}
	var err error
	if w.org, err = client.Of[api.Organization](w.op).Update(t.Context(), w.org.Meta.ID, w.org); err != nil {
		t.Fatal(err)
	}
	card := w.saved("4242", api.CardSpec{})
	w.saveAutoPay(func(s *api.AutoPay) { s.Enabled, s.Consent = true, true })
	return w, card
}

func (w *fixture) readAutoPay() api.AutoPay {
	w.t.Helper()
	s, err := w.op.AutoPay(w.t.Context(), w.org.Meta.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *fixture) saveAutoPay(edit func(*api.AutoPay)) {
	w.t.Helper()
	s := w.readAutoPay()
	edit(&s)
	if _, err := w.op.UpdateAutoPay(w.t.Context(), w.org.Meta.ID, s); err != nil {
		w.t.Fatal(err)
	}
}

// autoPayFailures returns the events of automatic payments that failed.
func (w *fixture) autoPayFailures() (out []api.AutoPayFailure) {
	w.t.Helper()
	p, err := w.Store.Events(w.t.Context(), api.EventQuery{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range p.Items {
		var f api.AutoPayFailure
		if e.Type != api.EventAutoPayFailed {
			continue
		}
		if err := json.Unmarshal(e.Data, &f); err != nil || e.Organization != w.org.Meta.ID {
			w.t.Fatalf("event %+v: %v; want a failure of organization %s", e, err, w.org.Meta.ID)
		}
		out = append(out, f)
	}
	return out
}

// An invoice is charged to the default card when it is issued, once.
func TestAutoPay(t *testing.T) {
	w, card := startAutoPay(t)
	w.steps()
	if n := len(w.stripe.Intents()); n != 0 {
		t.Fatalf("charges before there is an invoice = %d, want 0", n)
	}
	inv := w.issue(1, 12_345_678)
	w.steps()
	w.steps()
	all := w.stripe.Intents()
	if len(all) != 1 || all[0].Amount != 1235 || all[0].Customer != card.Status.Customer || all[0].Method != card.Status.PaymentMethod {
		t.Fatalf("charges = %+v, want one of 12.35 EUR of card %+v", all, card.Status)
	}
	c := w.checkout(all[0].Metadata["basalt_checkout"])
	if c.Spec.Invoice != inv || !c.Spec.AutoPay || c.Status.State != api.CheckoutPaid || len(w.payments()) != 1 {
		t.Errorf("checkout = %+v with %d payments, want invoice %s paid automatically, and 1", c, len(w.payments()), inv)
	}
	w.issue(2, 5*euro)
	w.steps()
	if s := w.readAutoPay().Status; len(w.payments()) != 2 || s.State != api.AutoPayReady || s.Checkout != "" || len(s.Invoices) > 0 {
		t.Errorf("%d payments, status = %+v; want 2, and Ready", len(w.payments()), s)
	}
	w.saveAutoPay(func(s *api.AutoPay) { s.Enabled = false })
	w.issue(3, 5*euro)
	w.steps()
	if n := len(w.stripe.Intents()); n != 2 {
		t.Errorf("charges after it was disabled = %d, want 2", n)
	}
	if f := w.autoPayFailures(); len(f) > 0 {
		t.Errorf("failures = %+v, want none", f)
	}
}

// Invoices that amount to less than the provider charges at once are charged together as
// soon as they do not.
func TestAutoPaySmallInvoices(t *testing.T) {
	w, _ := startAutoPay(t)
	w.issue(1, 300_000)
	w.steps()
	w.pass(3 * day)
	w.steps()
	if s := w.readAutoPay().Status; len(w.stripe.Intents()) != 0 || s.LeastMicros != 500_000 || s.State != api.AutoPayReady || len(s.Invoices) > 0 {
		t.Fatalf("%d charges, status = %+v; want none below 0.50 EUR, and Ready", len(w.stripe.Intents()), s)
	}
	second := w.issue(2, 190_001) // rounded up to a cent, it is the least
	w.steps()
	all := w.stripe.Intents()
	if len(all) != 1 || all[0].Amount != 50 {
		t.Fatalf("charges = %+v, want one of 0.50 EUR", all)
	}
	if c := w.checkout(all[0].Metadata["basalt_checkout"]); c.Spec.Invoice != second || c.Status.State != api.CheckoutPaid {
		t.Errorf("checkout = %+v, want invoice %s paid", c, second)
	}
	if s := w.readAutoPay().Status; s.LeastMicros != 0 || s.State != api.AutoPayReady {
		t.Errorf("status = %+v, want that nothing waits", s)
	}
	if f := w.autoPayFailures(); len(f) > 0 {
		t.Errorf("failures = %+v, want none", f)
	}
}

// An invoice whose charge is declined is charged again after one day, three and five more,
// each failure is an event, and then it is not charged until the settings are saved again.
// Other invoices are.
func TestAutoPayDeclined(t *testing.T) {
	w, card := startAutoPay(t)
	inv := w.issue(1, 10*euro)
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Decline)
	for i, wait := range []time.Duration{day, 3 * day, 5 * day, 0} {
		w.steps()
		st, f := w.readAutoPay().Status, w.autoPayFailures()
		if len(f) != i+1 || len(w.stripe.Intents()) != i+1 || len(st.Invoices) != 1 {
			t.Fatalf("after failure %d: %d events, %d charges, status %+v; want %d of both, and one invoice", i+1, len(f), len(w.stripe.Intents()), st, i+1)
		}
		last := f[i]
		if last.Invoice != inv || last.Number != "INV-000001" || last.Error != "Your card was declined." || last.AmountMicros != 10*euro || last.Checkout == "" || (last.NextAt == nil) != (wait == 0) {
			t.Errorf("event = %+v, want the declined charge of the invoice, and when the next one is", last)
		}
		if got := st.Invoices[0]; got.Failures != int64(i+1) || got.Cause != declined || got.Checkout != last.Checkout || (got.NextAt == nil) != (wait == 0) {
			t.Errorf("invoice = %+v, want %d failures, and when the next charge is", got, i+1)
		}
		if wait == 0 {
			if st.State != api.AutoPayStopped {
				t.Errorf("state after the last failure = %s, want Stopped", st.State)
			}
			break
		}
		if st.State != api.AutoPayRetrying {
			t.Errorf("state = %s, want Retrying", st.State)
		}
		w.pass(wait - 20*time.Minute)
		w.steps()
		if n := len(w.stripe.Intents()); n != i+1 {
			t.Fatalf("charges before the wait of %s has passed = %d, want %d", wait, n, i+1)
		}
		w.pass(20 * time.Minute)
	}
	w.pass(10 * day)
	w.steps()
	if n := len(w.stripe.Intents()); n != 4 {
		t.Errorf("charges after the last failure = %d, want 4", n)
	}
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Accept)
	w.saveAutoPay(func(*api.AutoPay) {})
	w.steps()
	if st := w.readAutoPay().Status; len(w.payments()) != 1 || st.State != api.AutoPayReady || len(st.Invoices) > 0 {
		t.Errorf("after the settings were saved again: %d payments, status = %+v; want 1, and Ready", len(w.payments()), st)
	}
}

// A failed charge is repeated at once when another card becomes the default, once.
func TestAutoPayOtherCard(t *testing.T) {
	w, card := startAutoPay(t)
	w.issue(1, 10*euro)
	w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Decline)
	w.steps()
	w.steps()
	if n := len(w.stripe.Intents()); n != 1 {
		t.Fatalf("charges of the first card = %d, want 1", n)
	}
	second := w.saved("1881", api.CardSpec{})
	w.steps()
	if n := len(w.stripe.Intents()); n != 1 {
		t.Fatalf("charges after a card was added = %d, want 1: it is not the default", n)
	}
	w.stripe.SetBank(second.Status.PaymentMethod, stripetest.Decline)
	if _, err := w.op.SetDefaultCard(t.Context(), second.Meta.ID); err != nil {
		t.Fatal(err)
	}
	w.steps()
	w.steps()
	all := w.stripe.Intents()
	if len(all) != 2 || all[1].Method != second.Status.PaymentMethod {
		t.Fatalf("charges = %+v, want a second one, of the new default card", all)
	}
	if i := w.readAutoPay().Status.Invoices; len(i) != 1 || i[0].Failures != 2 || i[0].Card != api.CardID(second.Meta.ID) {
		t.Errorf("invoices = %+v, want one with two failures, the last of card %s", i, second.Meta.ID)
	}
}

// A charge that the bank wants to be confirmed is not made, whatever status the provider
// gives it; its event leads to the page on which the user pays, and then it is not repeated.
// While the user pays, no charge begins.
func TestAutoPayNeedsAuthentication(t *testing.T) {
	for name, bank := range map[string]stripetest.Bank{"refused": stripetest.Authenticate, "requires action": stripetest.RequireAction} {
		t.Run(name, func(t *testing.T) {
			w, card := startAutoPay(t)
			inv := w.issue(1, 10*euro)
			w.stripe.SetBank(card.Status.PaymentMethod, bank)
			w.steps()
			f := w.autoPayFailures()
			if len(f) != 1 || !f[0].AuthenticationRequired || f[0].Checkout == "" || len(w.payments()) > 0 {
				t.Fatalf("failures = %+v with %d payments, want one that needs authentication, and none", f, len(w.payments()))
			}
			if c := w.checkout(string(f[0].Checkout)); c.Status.State != api.CheckoutFailed || !c.Status.AuthenticationRequired {
				t.Errorf("checkout = %+v, want Failed, with authentication required", c.Status)
			}
			page, err := w.invoicePage(inv)
			if err != nil {
				t.Fatal(err)
			}
			w.stripe.SetBank(card.Status.PaymentMethod, stripetest.Accept)
			w.saveAutoPay(func(*api.AutoPay) {}) // repeats at once, but for the page
			w.steps()
			if n := len(w.stripe.Intents()); n != 1 {
				t.Errorf("charges while the user pays = %d, want 1", n)
			}
			w.stripe.Pay(t, page.Meta.ID)
			w.steps()
			w.steps()
			if st := w.readAutoPay().Status; st.State != api.AutoPayReady || len(w.stripe.Intents()) != 1 || len(w.payments()) != 1 {
				t.Errorf("after the user has paid: %+v with %d charges and %d payments, want Ready and 1 of both", st, len(w.stripe.Intents()), len(w.payments()))
			}
		})
	}
}

// invoicePage writes a payment page of an invoice, and opens it. (The API of the fixture has
// invoices of its own.)
func (w *fixture) invoicePage(inv api.InvoiceID) (api.Checkout, error) {
	id := api.RandomID(api.KindCheckout)
	spec := api.CheckoutSpec{Currency: "EUR", AmountMicros: 10 * euro, Invoice: inv}
	out, err := w.Store.Apply(w.t.Context(), api.Batch{At: w.now(), Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindCheckout, ID: id, Name: id, Organization: w.org.Meta.ID, Data: api.Encode(spec)}}})
	if err != nil {
		return api.Checkout{}, err
	}
	c, err := api.Decode[api.Checkout](out[0])
	if err != nil {
		return c, err
	}
	return w.service.Begin(w.t.Context(), c)
}

// Without a card, and above the maximum of one payment, nothing is charged, and an event
// reports that.
func TestAutoPayCannotCharge(t *testing.T) {
	w, card := startAutoPay(t)
	if _, err := client.Of[api.Card](w.op).Delete(t.Context(), card.Meta.ID); err != nil {
		t.Fatal(err)
	}
	w.issue(1, 20_000*euro)
	w.steps()
	w.saved("4242", api.CardSpec{})
	w.pass(day)
	w.steps()
	f := w.autoPayFailures()
	if len(f) != 2 || f[0].Error != "there is no default card on file" || f[0].Checkout != "" || f[1].Checkout != "" || f[1].NextAt == nil || len(w.stripe.Intents()) > 0 {
		t.Errorf("failures = %+v with %d charges; want one without a card, one above the maximum, and 0", f, len(w.stripe.Intents()))
	}
}

// If two nodes believe to lead, and both have read that an invoice is open, one of them
// begins the charge.
func TestAutoPayOfTwoLeaders(t *testing.T) {
	w, _ := startAutoPay(t)
	w.issue(1, 10*euro)
	w.pass(2 * time.Minute)
	slow := &overtakenStore{Store: w.Store, before: w.steps}
	_ = payment.NewCollector(w.newService(slow)).Step(t.Context())
	w.steps()
	if n := len(w.stripe.Intents()); slow.before != nil || n != 1 || len(w.payments()) != 1 {
		t.Errorf("%d charges, %d payments; want 1 of both", n, len(w.payments()))
	}
}

// Whatever happens in which order (leaders are killed at any write, responses are lost,
// events come twice and late, cards are declined, time passes, invoices are issued,
// settings change), each invoice is charged at most what is owed, there is one charge for
// each checkout, each is credited once, and in the end all invoices are paid.
func TestAutoPaySimulation(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, card := startAutoPay(t)
			s := &autoPaySimulation{fixture: w, rnd: rand.New(rand.NewPCG(seed, 76)), card: card}
			for range 100 {
				s.act()
				s.check()
			}
			s.heal()
		})
	}
}

type autoPaySimulation struct {
	*fixture
	rnd      *rand.Rand
	card     api.Card
	invoices int
	invoiced int64
}

// act lets one thing happen.
func (s *autoPaySimulation) act() {
	banks := []stripetest.Bank{stripetest.Accept, stripetest.Accept, stripetest.Decline, stripetest.Authenticate, stripetest.RequireAction, stripetest.Process}
	switch s.rnd.IntN(13) {
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
		if s.invoices < 8 {
			s.invoices++
			micros := int64(1+s.rnd.IntN(5000)) * 10_000
			if s.rnd.IntN(3) == 0 {
				micros = int64(1+s.rnd.IntN(49)) * 10_000 // less than is charged at once
			}
			s.invoiced += micros
			s.issue(s.invoices, micros)
		}
	case 9:
		if all := s.stripe.Intents(); len(all) > 0 {
			i := all[s.rnd.IntN(len(all))]
			if i.Status == "processing" && s.rnd.IntN(2) == 0 {
				s.stripe.SettleCharge(i.ID, banks[s.rnd.IntN(4)])
			}
			body := i.Event("payment_intent.succeeded")
			s.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body))
		}
	case 10:
		s.pass(time.Duration(s.rnd.IntN(50)) * time.Hour)
	case 11:
		if s.rnd.IntN(3) == 0 {
			s.stripe.ForgetKeys()
			s.pass(day)
		}
	case 12:
		s.saveAutoPay(func(a *api.AutoPay) { a.Enabled = s.rnd.IntN(5) > 0; a.Consent = true })
	}
}

// check checks what must always be true.
func (s *autoPaySimulation) check() {
	s.t.Helper()
	paid, checkouts, charged := map[string]int64{}, map[string]string{}, int64(0)
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
		if micros := paid[i.ID]; micros != 0 && (i.Status != "succeeded" || micros != i.Amount*10_000) {
			s.t.Fatalf("charge %+v was credited with %d millionths", i, micros)
		}
		delete(paid, i.ID)
		if i.Status == "succeeded" {
			charged += i.Amount * 10_000
		}
	}
	if charged > s.invoiced || len(paid) > 0 {
		s.t.Fatalf("charged %d millionths with payments %v that have no charge, want at most the %d that were invoiced, and none", charged, paid, s.invoiced)
	}
}

// heal ends all faults: then every charge is decided, and all invoices are paid, except for
// less than is charged at once.
func (s *autoPaySimulation) heal() {
	s.t.Helper()
	s.stripe.BreakCharges(stripetest.None)
	s.stripe.SetBank(s.card.Status.PaymentMethod, stripetest.Accept)
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
	s.saveAutoPay(func(a *api.AutoPay) { a.Enabled, a.Consent = true, true })
	for range 2 * (s.invoices + 1) {
		s.steps()
	}
	s.check()
	sum := int64(0)
	for _, p := range s.payments() {
		sum += p.Spec.AmountMicros
	}
	if st := s.readAutoPay().Status; st.State != api.AutoPayReady || len(st.Invoices) > 0 || sum > s.invoiced || s.invoiced-sum >= api.LeastCharge("EUR") || (sum != s.invoiced) != (st.LeastMicros > 0) {
		s.t.Errorf("paid %d of %d millionths, status = %+v; want all but less than 0.50 EUR, which waits, and Ready", sum, s.invoiced, st)
	}
}
