package payment_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

func (w *fixture) addCard(spec api.CardSpec) api.Card {
	w.t.Helper()
	c, err := client.Of[api.Card](w.op).Create(w.t.Context(), api.Card{Meta: api.Meta{Organization: w.org.Meta.ID}, Spec: spec})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *fixture) card(id string) api.Card {
	w.t.Helper()
	c, err := client.Of[api.Card](w.op).Get(w.t.Context(), id, client.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// saved adds a card and enters it on its page.
func (w *fixture) saved(last4 string, spec api.CardSpec) api.Card {
	w.t.Helper()
	c := w.addCard(spec)
	if got := w.sendEvent(w.stripe.SaveCard(w.t, c.Meta.ID, last4), "checkout.session.completed"); got != http.StatusOK {
		w.t.Fatalf("event of a saved card: status %d, want 200", got)
	}
	return w.card(c.Meta.ID)
}

// defaults returns which of the cards are the default.
func (w *fixture) defaults(cards ...api.Card) []bool {
	w.t.Helper()
	var out []bool
	for _, c := range cards {
		out = append(out, w.card(c.Meta.ID).Status.Default)
	}
	return out
}

// A card is entered on a page, and is known once, however often and in whichever order
// events arrive; events are not believed.
func TestCardSaved(t *testing.T) {
	w := start(t)
	c := w.addCard(api.CardSpec{})
	x := w.stripe.Session(t, c.Meta.ID)
	if c.Status.State != api.CardOpen || c.Status.URL != "https://checkout.stripe.com/c/"+x.ID || c.Status.ExpiresAt == nil {
		t.Errorf("status = %+v, want Open with the page's address", c.Status)
	}
	forged := x
	forged.Status, forged.IntentStatus, forged.PaymentMethod, forged.Customer = "complete", "succeeded", "pm_forged", "cus_forged"
	w.sendEvent(forged, "checkout.session.completed")
	if got := w.card(c.Meta.ID).Status; got.State != api.CardOpen || got.PaymentMethod != "" {
		t.Errorf("status after a false event = %+v, want Open", got)
	}
	done := w.stripe.SaveCard(t, x.ID, "4242")
	for _, kind := range []string{"checkout.session.completed", "checkout.session.completed"} {
		w.sendEvent(done, kind)
	}
	w.sendEvent(x, "checkout.session.expired") // from before the card was entered
	got := w.card(c.Meta.ID).Status
	if got.DoneAt == nil {
		t.Errorf("status = %+v, want the time at which it was saved", got)
	}
	got.DoneAt, got.ExpiresAt = nil, nil
	want := api.CardStatus{State: api.CardSaved, Session: x.ID, Default: true, Customer: done.Customer, PaymentMethod: done.PaymentMethod, Brand: "visa", LastDigits: "4242", ExpiryMonth: 4, ExpiryYear: 2031}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status of a saved card (-want +got):\n%s", diff)
	}
	if len(w.payments()) > 0 {
		t.Errorf("payments = %+v, want none", w.payments())
	}
}

// Without events the leader finds out, also if one was killed before it wrote the
// result; a declined card leaves the page open.
func TestCardSavedWithoutEvents(t *testing.T) {
	w := start(t)
	c := w.addCard(api.CardSpec{})
	w.stripe.Change(t, c.Meta.ID, func(x *stripetest.Session) { x.Declined = "Your card was declined." })
	w.step()
	if got := w.card(c.Meta.ID).Status; got.State != api.CardOpen || got.LastError != "Your card was declined." || got.Cause != declined {
		t.Errorf("status after a declined card = %+v, want Open with the reason", got)
	}
	w.stripe.SaveCard(t, c.Meta.ID, "4242")
	killed := &unwritableStore{Store: w.Store}
	_ = payment.NewCollector(w.newService(killed)).Step(t.Context())
	if got := w.card(c.Meta.ID).Status; !killed.tried || got.State != api.CardOpen {
		t.Fatalf("the killed leader tried to write: %t, status = %+v; want true and Open", killed.tried, got)
	}
	w.pass(time.Minute)
	w.step()
	if got := w.card(c.Meta.ID).Status; got.State != api.CardSaved || !got.Default || got.LastError != "" || got.Cause != (api.Cause{}) {
		t.Errorf("status = %+v, want Saved, and the default", got)
	}
}

// unwritableStore accepts no writes, like the store of a process that is killed before
// it writes.
type unwritableStore struct {
	payment.Store
	tried bool
}

// Apply implements payment.Store.
func (s *unwritableStore) Apply(context.Context, api.Batch) ([]api.Object, error) {
	s.tried = true
	return nil, errors.New("killed")
}

// One card is the default: the first, until another is chosen or was requested to be;
// after its removal none is.
func TestDefaultCard(t *testing.T) {
	w := start(t)
	first, second := w.saved("1111", api.CardSpec{}), w.saved("2222", api.CardSpec{})
	check := func(what string, want ...bool) {
		t.Helper()
		if diff := cmp.Diff(want, w.defaults(first, second)); diff != "" {
			t.Errorf("default cards %s (-want +got):\n%s", what, diff)
		}
	}
	check("after two were saved", true, false)
	if _, err := w.op.SetDefaultCard(t.Context(), second.Meta.ID); err != nil {
		t.Fatal(err)
	}
	check("after the second was chosen", false, true)
	third := w.saved("3333", api.CardSpec{Default: true})
	check("after a third was saved as the default", false, false)
	if got := w.card(third.Meta.ID).Status.Default; !got {
		t.Error("default of the third card = false, want true")
	}
	open := w.addCard(api.CardSpec{})
	if _, err := w.op.SetDefaultCard(t.Context(), open.Meta.ID); api.CodeOf(err) != api.CodeState {
		t.Errorf("choose a card that was not entered: %v, want code %s", err, api.CodeState)
	}
	if _, err := client.Of[api.Card](w.op).Delete(t.Context(), open.Meta.ID); api.CodeOf(err) != api.CodeState {
		t.Errorf("remove a card that was not entered: %v, want code %s", err, api.CodeState)
	}
	if _, err := client.Of[api.Card](w.op).Delete(t.Context(), third.Meta.ID); err != nil {
		t.Fatal(err)
	}
	check("after the default was removed", false, false)
}

// interleavedStore runs a function once, just before its first write: what a service read
// before is then out of date.
type interleavedStore struct {
	payment.Store
	once   sync.Once
	before func()
}

// Apply implements payment.Store.
func (s *interleavedStore) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	s.once.Do(s.before)
	return s.Store.Apply(ctx, b)
}

// settleCard has a service settle a card that was entered, because of an event.
func (w *fixture) settleCard(svc *payment.Service, x stripetest.Session) {
	w.t.Helper()
	body := x.Event("checkout.session.completed")
	h := http.Header{"Stripe-Signature": {stripetest.Sign(stripetest.Secret, time.Now(), body)}}
	if err := svc.Event(w.t.Context(), h, body); err != nil {
		w.t.Errorf("settle session %s: %v", x.ID, err)
	}
}

// At most one card is the default when two nodes each make one the default and neither
// has read what the other writes: the second write is refused, and made again with what
// the first has written.
func TestDefaultCardOfTwoNodes(t *testing.T) {
	settle := func(w *fixture, svc *payment.Service, c api.Card) {
		w.settleCard(svc, w.stripe.SaveCard(w.t, c.Meta.ID, "4242"))
	}
	choose := func(w *fixture, svc *payment.Service, c api.Card) {
		if got, err := svc.SetDefaultCard(w.t.Context(), w.card(c.Meta.ID)); err != nil || !got.Status.Default || got.Meta.ID != c.Meta.ID {
			w.t.Errorf("choose card %s = %+v, %v; want it to be the default", c.Meta.ID, got, err)
		}
	}
	for name, test := range map[string]struct {
		spec  api.CardSpec
		saved bool // the cards are saved before, and none is the default
		write func(w *fixture, svc *payment.Service, c api.Card)
		want  []bool // which card is the default; the second is written last
	}{
		"the first two cards":       {write: settle, want: []bool{true, false}},
		"two cards that request it": {spec: api.CardSpec{Default: true}, write: settle, want: []bool{false, true}},
		"two cards that are chosen": {saved: true, write: choose, want: []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			var cards []api.Card
			if test.saved {
				was := w.saved("1111", api.CardSpec{})
				cards = append(cards, w.saved("2222", test.spec), w.saved("3333", test.spec))
				if _, err := client.Of[api.Card](w.op).Delete(t.Context(), was.Meta.ID); err != nil {
					t.Fatal(err)
				}
			} else {
				cards = append(cards, w.addCard(test.spec), w.addCard(test.spec))
			}
			s := &interleavedStore{Store: w.Store, before: func() { test.write(w, w.newService(w.Store), cards[0]) }}
			test.write(w, w.newService(s), cards[1])
			if diff := cmp.Diff(test.want, w.defaults(cards...)); diff != "" {
				t.Errorf("default cards (-want +got):\n%s", diff)
			}
			for i, c := range cards {
				o, err := w.Store.Get(t.Context(), api.KindCard, c.Meta.ID)
				if err != nil || (len(o.Claims) == 1) != test.want[i] {
					t.Errorf("claims of card %d = %q, %v; want one: %t", i, o.Claims, err, test.want[i])
				}
				if got := w.card(c.Meta.ID).Status.State; got != api.CardSaved {
					t.Errorf("state of card %d = %s, want %s", i, got, api.CardSaved)
				}
			}
		})
	}
}

// A card is removed at Stripe before it is removed here, and once, also if the answer
// was lost.
func TestCardRemoved(t *testing.T) {
	w := start(t)
	c := w.saved("4242", api.CardSpec{})
	cards := client.Of[api.Card](w.op)
	w.stripe.Break(stripetest.Down)
	if _, err := cards.Delete(t.Context(), c.Meta.ID); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("remove while Stripe is down: %v, want code %s", err, api.CodeUnavailable)
	}
	w.stripe.Break(stripetest.None)
	if got := w.card(c.Meta.ID).Status; got.State != api.CardSaved || !w.stripe.Attached(c.Status.PaymentMethod) {
		t.Errorf("status = %+v, attached: %t; want Saved, and true", got, w.stripe.Attached(c.Status.PaymentMethod))
	}
	if err := w.service.DetachCard(t.Context(), c); err != nil { // by a node that was killed before it deleted the object
		t.Fatal(err)
	}
	if w.stripe.Attached(c.Status.PaymentMethod) {
		t.Error("attached = true, want false")
	}
	if _, err := cards.Delete(t.Context(), c.Meta.ID); err != nil {
		t.Errorf("remove again: %v", err)
	}
	if _, err := cards.Get(t.Context(), c.Meta.ID, client.Query{}); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("get a removed card: %v, want code %s", err, api.CodeNotFound)
	}
}

// Pages that are not completed end, and their cards are deleted a day later.
func TestCardExpired(t *testing.T) {
	w := start(t)
	w.stripe.Break(stripetest.Down)
	if _, err := client.Of[api.Card](w.op).Create(t.Context(), api.Card{Meta: api.Meta{Organization: w.org.Meta.ID}}); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("add a card while Stripe is down: %v, want code %s", err, api.CodeUnavailable)
	}
	w.stripe.Break(stripetest.None)
	c := w.addCard(api.CardSpec{})
	w.stripe.Expire(t, c.Meta.ID)
	w.pass(11 * time.Minute)
	w.step()
	all, err := api.All[api.Card](t.Context(), w.Store, api.ListQuery{Kind: api.KindCard})
	if err != nil || len(all) != 2 {
		t.Fatalf("cards = %+v, %v; want 2", all, err)
	}
	for _, x := range all {
		want := api.CardFailed
		if x.Meta.ID == c.Meta.ID {
			want = api.CardExpired
		}
		if x.Status.State != want || x.Status.URL != "" || x.Status.DoneAt == nil {
			t.Errorf("status of card %s = %+v, want %s", x.Meta.ID, x.Status, want)
		}
	}
	w.pass(25 * time.Hour)
	w.step()
	if all, err = api.All[api.Card](t.Context(), w.Store, api.ListQuery{Kind: api.KindCard}); err != nil || len(all) > 0 {
		t.Errorf("cards = %+v, %v; want none", all, err)
	}
}
