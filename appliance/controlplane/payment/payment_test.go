package payment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripe"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

// fixture is the API over a memory store, with a fake payment provider.
type fixture struct {
	*servertest.Env
	t         *testing.T
	stripe    *stripetest.Stripe
	op        *client.API
	service   *payment.Service
	collector *payment.Collector
	org       api.Organization

	mu    sync.Mutex
	later time.Duration // by how much the clock is ahead
	spent int64         // what was used, in millionths
}

func (w *fixture) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.later)
}

func (w *fixture) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later += d
}

// loopback allows connections to the fake.
var loopback = outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

func start(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, stripe: stripetest.Start(t)}
	w.Env = servertest.StartWith(t, func(o *server.Options) {
		w.service = w.newService(o.Store.(*memstore.Store))
		o.Payments, o.Now = w.service, w.now
	})
	w.collector = payment.NewCollector(w.service)
	var err error
	if w.op, err = client.New(client.Options{Server: w.URL, Token: w.Token}); err != nil {
		t.Fatal(err)
	}
	if w.org, err = client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"},
		Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{Mode: api.BillingPrepaid}}}); err != nil {
		t.Fatal(err)
	}
	s := api.PaymentSettings{Enabled: true, SecretKey: stripetest.Key, WebhookSecret: stripetest.Secret, PortalURL: "https://cloud.example.com/"}
	if _, err := w.op.UpdatePaymentSettings(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return w
}

// wallet returns the balance: what was paid, less what was used.
func (w *fixture) wallet(ctx context.Context, org api.OrganizationID, _ time.Time) (api.Wallet, error) {
	all, err := api.All[api.Payment](ctx, w.Store, api.ListQuery{Kind: api.KindPayment, Organization: string(org)})
	out := api.Wallet{Organization: org, Currency: "EUR"}
	for _, p := range all {
		out.BalanceMicros += p.Spec.Signed()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out.UnbilledMicros = w.spent
	return out, err
}

// newService returns the service of another node.
func (w *fixture) newService(s payment.Store) *payment.Service {
	c := stripe.NewClient(loopback)
	w.t.Cleanup(c.CloseIdleConnections)
	return payment.New(payment.Options{Store: s, Now: w.now, Wallet: w.wallet, Owed: w.owed, Provider: func(s api.PaymentSettingsSpec) (payment.Provider, error) {
		return stripe.New(s, c, w.stripe.URL), nil
	}})
}

func (w *fixture) begin(spec api.CheckoutSpec) (api.Checkout, error) {
	return client.Of[api.Checkout](w.op).Create(w.t.Context(), api.Checkout{Meta: api.Meta{Organization: w.org.Meta.ID}, Spec: spec})
}

func (w *fixture) began() api.Checkout {
	w.t.Helper()
	c, err := w.begin(api.CheckoutSpec{AmountMicros: 50_000_000})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// once begins the same payment each time it is called.
func (w *fixture) once() (status int, c api.Checkout) {
	w.t.Helper()
	body := api.Encode(api.Checkout{Kind: api.KindCheckout, Meta: api.Meta{Organization: w.org.Meta.ID}, Spec: api.CheckoutSpec{AmountMicros: 50_000_000}})
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL+"/v1/checkouts", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.Token)
	r.Header.Set("Idempotency-Key", "once")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&c) // c stays empty for an error
	return resp.StatusCode, c
}

// event sends an event to the API, as Stripe does.
func (w *fixture) event(body []byte, signature string) int {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL+"/v1/payment-events", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Stripe-Signature", signature)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (w *fixture) sendEvent(x stripetest.Session, kind string) int {
	w.t.Helper()
	body := x.Event(kind)
	return w.event(body, stripetest.Sign(stripetest.Secret, time.Now(), body))
}

func (w *fixture) payments() []api.Payment {
	w.t.Helper()
	all, err := api.All[api.Payment](w.t.Context(), w.Store, api.ListQuery{Kind: api.KindPayment})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *fixture) checkout(id string) api.Checkout {
	w.t.Helper()
	o, err := w.Store.Get(w.t.Context(), api.KindCheckout, id)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := api.Decode[api.Checkout](o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *fixture) step() {
	w.t.Helper()
	if err := w.collector.Step(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// paidOnce checks that a checkout resulted in one payment.
func (w *fixture) paidOnce(c api.Checkout) {
	w.t.Helper()
	all := w.payments()
	if len(all) != 1 || all[0].Spec.AmountMicros != 50_000_000 || all[0].Spec.Currency != "EUR" || all[0].Meta.Organization != w.org.Meta.ID {
		w.t.Fatalf("payments = %+v, want one of 50 EUR", all)
	}
	if got := w.checkout(c.Meta.ID).Status; got.State != api.CheckoutPaid || string(got.Payment) != all[0].Meta.ID || got.URL != "" || got.DoneAt == nil {
		w.t.Errorf("status = %+v, want Paid with payment %s", got, all[0].Meta.ID)
	}
}

// A payment begins with a page, from which the payer returns to the portal, and is in
// the ledger once, however often events arrive.
func TestPaid(t *testing.T) {
	w := start(t)
	c := w.began()
	x := w.stripe.Session(t, c.Meta.ID)
	if c.Status.State != api.CheckoutOpen || c.Status.URL != "https://checkout.stripe.com/c/"+x.ID || c.Status.ExpiresAt == nil {
		t.Errorf("status = %+v, want Open with the page's address", c.Status)
	}
	if x.Amount != 5000 || x.Currency != "eur" || x.Back != "https://cloud.example.com/#/checkouts/"+c.Meta.ID {
		t.Errorf("session = %+v, want 50 EUR that leads back to the portal", x)
	}
	// The last event arrives first, and each of them twice.
	paid := w.stripe.Pay(t, x.ID)
	for _, kind := range []string{"payment_intent.succeeded", "checkout.session.completed", "checkout.session.completed", "payment_intent.created"} {
		if got := w.sendEvent(paid, kind); got != http.StatusOK {
			t.Errorf("event %s: status %d, want 200", kind, got)
		}
	}
	if got := w.sendEvent(x, "checkout.session.expired"); got != http.StatusOK { // from before the payment
		t.Errorf("old event: status %d, want 200", got)
	}
	w.paidOnce(c)
	asked := w.stripe.Asked()
	w.pass(time.Hour)
	w.step()
	if w.stripe.Asked() != asked {
		t.Errorf("requests to the provider about a finished checkout = %d, want 0", w.stripe.Asked()-asked)
	}
}

// An event is only a reason to ask the provider: a false one changes nothing.
func TestEventsAreNotBelieved(t *testing.T) {
	w := start(t)
	c := w.began()
	forged := w.stripe.Session(t, c.Meta.ID)
	forged.Status, forged.PaymentStatus, forged.Amount = "complete", "paid", 1_000_000
	if got := w.sendEvent(forged, "checkout.session.completed"); got != http.StatusOK {
		t.Errorf("false event: status %d, want 200", got)
	}
	if len(w.payments()) > 0 || w.checkout(c.Meta.ID).Status.State != api.CheckoutOpen {
		t.Errorf("payments = %+v, status = %+v; want none, and Open", w.payments(), w.checkout(c.Meta.ID).Status)
	}
}

// Events that are not Stripe's are refused, and those about something else are
// accepted.
func TestEventsOfOthers(t *testing.T) {
	w := start(t)
	c := w.began()
	x := w.stripe.Pay(t, c.Meta.ID)
	body := x.Event("checkout.session.completed")
	now := time.Now()
	for name, signature := range map[string]string{
		"none": "", "garbage": "t=,v1", "of another secret": stripetest.Sign("whsec_other", now, body), "of another body": stripetest.Sign(stripetest.Secret, now, body[1:]),
		"of an hour ago": stripetest.Sign(stripetest.Secret, now.Add(-time.Hour), body),
	} {
		if got := w.event(body, signature); got != http.StatusBadRequest {
			t.Errorf("event with signature %s: status %d, want 400", name, got)
		}
	}
	if len(w.payments()) > 0 {
		t.Errorf("payments = %+v, want none", w.payments())
	}
	for name, other := range map[string]string{
		"of another kind":          `{"object":"event","data":{"object":{"object":"customer"}}}`,
		"of another cluster":       `{"object":"event","data":{"object":{"object":"checkout.session","metadata":{"basalt_checkout":"chk-0123456789ab"}}}}`,
		"about an organization":    `{"object":"event","data":{"object":{"object":"checkout.session","metadata":{"basalt_checkout":"` + w.org.Meta.ID + `"}}}}`,
		"with other metadata":      `{"object":"event","data":{"object":{"object":"checkout.session","metadata":{"basalt_checkout":7}}}}`,
		"without an object":        `{"object":"event"}`,
		"that is a list of events": `{"object":"list"}`,
	} {
		if got := w.event([]byte(other), stripetest.Sign(stripetest.Secret, now, []byte(other))); got != http.StatusOK {
			t.Errorf("event %s: status %d, want 200", name, got)
		}
	}
	if got := w.event([]byte("{"), stripetest.Sign(stripetest.Secret, now, []byte("{"))); got != http.StatusBadRequest {
		t.Errorf("event that is not JSON: status %d, want 400", got)
	}
	large := bytes.Repeat([]byte(" "), 300<<10)
	if got := w.event(large, stripetest.Sign(stripetest.Secret, now, large)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("event that is too large: status %d, want 413", got)
	}
}

// Without events the leader finds out, also if one was killed after Stripe had charged
// the card.
func TestPaidWithoutEvents(t *testing.T) {
	w := start(t)
	c := w.began()
	w.step() // nothing was paid yet
	w.stripe.Pay(t, c.Meta.ID)
	killed := &killedStore{Store: w.Store}
	_ = payment.NewCollector(w.newService(killed)).Step(t.Context())
	if !killed.tried || len(w.payments()) > 0 {
		t.Fatalf("the killed leader tried to write: %t, payments = %+v; want true and none", killed.tried, w.payments())
	}
	w.pass(time.Minute)
	w.collector = payment.NewCollector(w.service)
	w.step()
	w.paidOnce(c)
}

// killedStore is a store whose writer is killed when it writes a payment.
type killedStore struct {
	*memstore.Store
	tried bool
}

func (d *killedStore) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	for _, c := range b.Commands {
		if c.Kind == api.KindPayment {
			d.tried = true
			return nil, errors.New("killed")
		}
	}
	return d.Store.Apply(ctx, b)
}

// If all nodes receive the event at once, and the leader checks too, there is one
// payment.
func TestPaidAtOnce(t *testing.T) {
	w := start(t)
	c := w.began()
	x := w.stripe.Pay(t, c.Meta.ID)
	body := x.Event("checkout.session.completed")
	h := http.Header{"Stripe-Signature": {stripetest.Sign(stripetest.Secret, time.Now(), body)}}
	var wg sync.WaitGroup
	errs := make(chan error, 9)
	for range 8 {
		service := w.newService(w.Store)
		wg.Go(func() { errs <- service.Event(t.Context(), h, body) })
	}
	wg.Go(func() { errs <- payment.NewCollector(w.newService(w.Store)).Step(t.Context()) })
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("handle the event: %v", err)
		}
	}
	w.paidOnce(c)
}

// A payment that an operator has recorded manually is not recorded again.
func TestPaidAndNotedByHand(t *testing.T) {
	w := start(t)
	c := w.began()
	x := w.stripe.Pay(t, c.Meta.ID)
	if _, err := client.Of[api.Payment](w.op).Create(t.Context(), api.Payment{Meta: api.Meta{Organization: w.org.Meta.ID},
		Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 50_000_000, Reference: x.Intent}}); err != nil {
		t.Fatal(err)
	}
	w.sendEvent(x, "checkout.session.completed")
	w.paidOnce(c)
}

// declined is the cause of what a payer reads about a declined card.
var declined = api.Cause{Code: api.CauseCardDeclined, Plain: true}

// A declined card is reported, and another one may be tried on the same page.
func TestDeclined(t *testing.T) {
	w := start(t)
	c := w.began()
	x := w.stripe.Decline(t, c.Meta.ID, "Your card was declined.\x00")
	w.sendEvent(x, "payment_intent.payment_failed")
	if got := w.checkout(c.Meta.ID).Status; got.State != api.CheckoutOpen || got.LastError != "Your card was declined. " || got.Cause != declined || got.URL == "" {
		t.Errorf("status = %+v, want Open with the reason", got)
	}
	w.sendEvent(w.stripe.Pay(t, c.Meta.ID), "checkout.session.completed")
	w.paidOnce(c)
}

// The other outcomes of a checkout.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*stripetest.Session)
		want   api.CheckoutState
	}{
		"expired":      {func(x *stripetest.Session) { x.Status = "expired" }, api.CheckoutExpired},
		"processing":   {func(x *stripetest.Session) { x.Status, x.Intent, x.IntentStatus = "complete", "pi_1", "processing" }, api.CheckoutProcessing},
		"failed later": {func(x *stripetest.Session) { x.Status, x.Intent, x.IntentStatus = "complete", "pi_1", "canceled" }, api.CheckoutFailed},
		"other currency": {func(x *stripetest.Session) {
			x.Status, x.PaymentStatus, x.Intent, x.Currency = "complete", "paid", "pi_1", "usd"
		}, api.CheckoutOpen},
		"nothing paid": {func(x *stripetest.Session) {
			x.Status, x.PaymentStatus, x.Intent, x.Amount = "complete", "paid", "pi_1", -5
		}, api.CheckoutOpen},
		"of another one":  {func(x *stripetest.Session) { x.Status, x.Reference = "expired", "chk-0123456789ab" }, api.CheckoutOpen},
		"an unknown word": {func(x *stripetest.Session) { x.Status = "vanished" }, api.CheckoutOpen},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			made := w.began()
			w.stripe.Change(t, made.Meta.ID, c.change)
			w.step()
			if got := w.checkout(made.Meta.ID).Status; got.State != c.want || len(w.payments()) > 0 {
				t.Errorf("status = %+v, want %s; payments = %+v, want none", got, c.want, w.payments())
			}
		})
	}
}

// Requests that Stripe does not answer as it should are retried, and result in only one
// page.
func TestStripeAway(t *testing.T) {
	for name, fault := range map[string]stripetest.Fault{"down": stripetest.Down, "answer lost": stripetest.Lost, "garbage": stripetest.Garbage, "wrong key": stripetest.Unauthed} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.stripe.Break(fault)
			if status, _ := w.once(); status != http.StatusServiceUnavailable {
				t.Errorf("begin a payment: status %d, want 503", status)
			}
			w.stripe.Break(stripetest.None)
			status, made := w.once()
			if status != http.StatusCreated || made.Status.URL == "" || w.stripe.Made() != 1 {
				t.Fatalf("begin it again: status %d, %+v, with %d pages; want one page", status, made.Status, w.stripe.Made())
			}
			w.stripe.Pay(t, made.Meta.ID)
			w.stripe.Break(fault)
			w.step()
			st, err := w.op.PaymentSettings(t.Context())
			if err != nil || st.Status.Attempts != 1 || st.Status.LastError == "" || st.Status.NextAt == nil {
				t.Errorf("provider status = %+v, %v; want one failed attempt", st.Status, err)
			}
			asked := w.stripe.Asked()
			w.step()
			if w.stripe.Asked() != asked {
				t.Errorf("requests right after a failure = %d, want 0", w.stripe.Asked()-asked)
			}
			w.stripe.Break(stripetest.None)
			w.pass(time.Minute)
			w.step()
			w.paidOnce(made)
			if st, err = w.op.PaymentSettings(t.Context()); err != nil || st.Status.Attempts != 0 {
				t.Errorf("provider status = %+v, %v; want no failed attempts", st.Status, err)
			}
		})
	}
}

// If Stripe hangs, a request still ends when its context does.
func TestStripeHangs(t *testing.T) {
	w := start(t)
	w.stripe.Break(stripetest.Hang)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.service.Begin(ctx, api.Checkout{Meta: api.Meta{ID: "chk-0123456789ab", CreatedAt: time.Now()}, Spec: api.CheckoutSpec{Currency: "EUR", AmountMicros: 50_000_000}})
		done <- err
	}()
	<-w.stripe.Hung
	cancel()
	if err := <-done; api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("begin: %v, want code %s", err, api.CodeUnavailable)
	}
}

// A refusal by Stripe is reported at once and not retried.
func TestRefused(t *testing.T) {
	w := start(t)
	w.stripe.Break(stripetest.Refused)
	if _, err := w.begin(api.CheckoutSpec{AmountMicros: 50_000_000}); api.CodeOf(err) != api.CodeState {
		t.Errorf("begin: %v, want code %s", err, api.CodeState)
	}
	all, err := api.All[api.Checkout](t.Context(), w.Store, api.ListQuery{Kind: api.KindCheckout})
	if err != nil || len(all) != 1 || all[0].Status.State != api.CheckoutFailed {
		t.Errorf("checkouts = %+v, %v; want one that failed", all, err)
	}
}

// Checkouts without a page, and those that the provider does not know, come to an end;
// finished ones are deleted. One that the provider does not know does not delay others.
func TestForgotten(t *testing.T) {
	w := start(t)
	w.stripe.Break(stripetest.Down)
	_, _ = w.begin(api.CheckoutSpec{AmountMicros: 50_000_000}) // unavailable
	w.stripe.Break(stripetest.None)
	lost, paid := w.began(), w.began()
	w.stripe.Forget(w.stripe.Session(t, lost.Meta.ID).ID)
	w.stripe.Pay(t, paid.Meta.ID)
	w.step()
	w.paidOnce(paid)
	if got := w.checkout(lost.Meta.ID); got.Done() {
		t.Errorf("status of a page that is unknown for a moment = %+v, want it open", got.Status)
	}
	w.pass(50 * time.Hour)
	w.step()
	all, err := api.All[api.Checkout](t.Context(), w.Store, api.ListQuery{Kind: api.KindCheckout})
	if err != nil || len(all) != 3 {
		t.Fatalf("checkouts = %+v, %v; want 3", all, err)
	}
	for _, c := range all {
		if want := c.Meta.ID == paid.Meta.ID; (c.Status.State == api.CheckoutPaid) != want || !c.Done() || !want && (c.Status.LastError == "" || c.Status.Cause.Code == "" || !c.Status.Cause.Plain) {
			t.Errorf("status of checkout %s = %+v, want it done, and paid: %t", c.Meta.ID, c.Status, want)
		}
	}
	w.pass(31 * 24 * time.Hour)
	w.step()
	if all, err = api.All[api.Checkout](t.Context(), w.Store, api.ListQuery{Kind: api.KindCheckout}); err != nil || len(all) > 0 {
		t.Errorf("checkouts = %+v, %v; want none", all, err)
	}
}

// A payment that is made while payments are being disabled is recorded nonetheless.
func TestDisabled(t *testing.T) {
	w := start(t)
	c := w.began()
	s, err := w.op.PaymentSettings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Enabled = false
	if _, err := w.op.UpdatePaymentSettings(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := w.begin(api.CheckoutSpec{AmountMicros: 50_000_000}); api.CodeOf(err) != api.CodeState {
		t.Errorf("begin while disabled: %v, want code %s", err, api.CodeState)
	}
	w.sendEvent(w.stripe.Pay(t, c.Meta.ID), "checkout.session.completed")
	w.paidOnce(c)
}

// TestPaymentReturnsToTheResellersPortal checks that the payment page of an organization
// with a branded portal leads back there.
func TestPaymentReturnsToTheResellersPortal(t *testing.T) {
	w := start(t)
	if _, err := w.op.UpdateOrganizationBranding(t.Context(), "acme", api.Branding{ProductName: "Acme"}); err != nil {
		t.Fatal(err)
	}
	d := api.PortalDomain{Meta: api.Meta{Name: "portal.acme.example", Organization: "acme"}, Spec: api.PortalDomainSpec{Approved: true}}
	if _, err := client.Of[api.PortalDomain](w.op).Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c := w.began()
	x := w.stripe.Session(t, c.Meta.ID)
	if want := "https://portal.acme.example/#/checkouts/" + c.Meta.ID; x.Back != want {
		t.Errorf("the payment page leads back to %s, want %s", x.Back, want)
	}
}
