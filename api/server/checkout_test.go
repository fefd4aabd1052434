package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

const cardKey, cardSecret = "sk_test_0123456789abcdef", "whsec_0123456789abcdef"

// cardsOn enables card payments in the cluster.
func cardsOn(p *people) api.PaymentSettings {
	p.t.Helper()
	s, err := ask[api.PaymentSettings](p, p.Token, "PUT", "/v1/payment-settings", api.PaymentSettings{Enabled: true, SecretKey: cardKey, WebhookSecret: cardSecret,
		PortalURL: "https://cloud.example.com"})
	wanted(p.t, "enable payments", err, "")
	return s
}

// TestPaymentSettings checks that operators configure payments, and that secrets are
// kept and never shown.
func TestPaymentSettings(t *testing.T) {
	p := newPeople(t)
	before, err := ask[api.PaymentSettings](p, p.Token, "GET", "/v1/payment-settings", nil)
	wanted(t, "read", err, "")
	if before.Enabled || before.Revision != 0 || before.MinMicros != 5_000_000 {
		t.Errorf("settings before any change = %+v, want disabled with defaults", before)
	}
	s := cardsOn(p)
	if s.SecretKey+s.WebhookSecret != "" || !s.HasSecretKey || !s.HasWebhookSecret || s.Provider != api.PaymentStripe {
		t.Errorf("settings after they were set = %+v, want both secrets present but hidden", s)
	}
	rec := p.call("GET", "/v1/payment-settings", p.Token, "")
	if strings.Contains(rec.Body.String(), cardKey) || strings.Contains(rec.Body.String(), cardSecret) {
		t.Errorf("settings contain a secret: %s", rec.Body)
	}
	old := s
	s.MaxMicros = 100_000_000
	s, err = ask[api.PaymentSettings](p, p.Token, "PUT", "/v1/payment-settings", s)
	wanted(t, "change without the secrets", err, "")
	if !s.HasSecretKey || !s.HasWebhookSecret || s.MaxMicros != 100_000_000 {
		t.Errorf("settings after a change without the secrets = %+v, want both secrets kept", s)
	}
	_, err = ask[api.PaymentSettings](p, p.Token, "PUT", "/v1/payment-settings", old)
	wanted(t, "change of an old revision", err, api.CodeConflict)
	for field, change := range map[string]func(*api.PaymentSettings){
		"secretKey":     func(s *api.PaymentSettings) { s.SecretKey = "pk_test_0123456789abcdef" },
		"webhookSecret": func(s *api.PaymentSettings) { s.WebhookSecret = "sk_test_0123456789abcdef" },
		"portalURL":     func(s *api.PaymentSettings) { s.PortalURL = "javascript:alert(1)" },
		"provider":      func(s *api.PaymentSettings) { s.Provider = "other" },
		"minMicros":     func(s *api.PaymentSettings) { s.MinMicros = -1 },
		"maxMicros":     func(s *api.PaymentSettings) { s.MaxMicros = 1_000_000 },
	} {
		bad := s
		change(&bad)
		if _, err := ask[api.PaymentSettings](p, p.Token, "PUT", "/v1/payment-settings", bad); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	_, err = ask[api.PaymentSettings](p, admin, "GET", "/v1/payment-settings", nil)
	wanted(t, "read by an admin", err, api.CodeForbidden)
}

// TestCreateCheckout checks who may create a checkout, of which amount and for which
// organization.
func TestCreateCheckout(t *testing.T) {
	p := newPeople(t)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	begin := func(token string, org string, s api.CheckoutSpec) (api.Checkout, *api.Error) {
		t.Helper()
		return ask[api.Checkout](p, token, "POST", "/v1/checkouts", api.Checkout{Kind: api.KindCheckout, Meta: api.Meta{Organization: org}, Spec: s})
	}
	_, err := begin(admin, "", api.CheckoutSpec{AmountMicros: 50_000_000})
	wanted(t, "while payments are disabled", err, api.CodeState)
	w, err := ask[api.Wallet](p, admin, "GET", "/v1/wallet", nil)
	wanted(t, "wallet", err, "")
	if w.Cards != nil {
		t.Errorf("wallet before payments are enabled = %+v, want no cards", w)
	}
	cardsOn(p)
	if w, err = ask[api.Wallet](p, admin, "GET", "/v1/wallet", nil); err != nil || w.Cards == nil || w.Cards.MinMicros != 5_000_000 {
		t.Errorf("wallet = %+v, %v; want cards", w, err)
	}
	c, err := begin(admin, "", api.CheckoutSpec{AmountMicros: 50_000_000})
	wanted(t, "by an admin", err, "")
	if c.Meta.Organization != p.acme || c.Spec.Currency != "EUR" || c.Status.URL == "" {
		t.Errorf("new checkout = %+v, want one in EUR of organization %s with a URL", c, p.acme)
	}
	got, err := ask[api.Checkout](p, admin, "GET", "/v1/checkouts/"+c.Meta.ID, nil)
	wanted(t, "read", err, "")
	if got.Status.URL != c.Status.URL {
		t.Errorf("checkout read again = %+v, want URL %s", got, c.Status.URL)
	}
	c, err = begin(admin, "", api.CheckoutSpec{Invoice: "INV-000001"})
	wanted(t, "an invoice", err, "")
	if c.Spec.Invoice != "inv-000000000001" || c.Spec.AmountMicros != 1_500_000 {
		t.Errorf("checkout of an invoice = %+v, want the invoice and its unpaid amount", c.Spec)
	}
	for field, bad := range map[string]api.CheckoutSpec{
		"spec.amountMicros": {AmountMicros: -50_000_000}, "spec.currency": {Currency: "USD", AmountMicros: 50_000_000}, "spec.invoice": {Invoice: "INV-9"},
	} {
		if _, err := begin(admin, "", bad); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	for name, micros := range map[string]int64{"too little": 4_990_000, "too much": 10_000_010_000, "a part of a cent": 50_000_001} {
		if _, err := begin(admin, "", api.CheckoutSpec{AmountMicros: micros}); err == nil || err.Field != "spec.amountMicros" {
			t.Errorf("%s: %v, want an error at spec.amountMicros", name, err)
		}
	}
	_, err = begin(admin, "", api.CheckoutSpec{Invoice: "INV-000001", AmountMicros: 2_000_000})
	wanted(t, "more than is left of the invoice", err, api.CodeInvalid)

	other := p.Key(t, api.Meta{Name: "k2", Organization: "org-0123456789ab"}, api.RoleAdmin)
	_, err = begin(other, p.acme, api.CheckoutSpec{AmountMicros: 50_000_000})
	wanted(t, "for somebody else", err, api.CodeInvalid)
	_, err = ask[api.Checkout](p, other, "GET", "/v1/checkouts/"+c.Meta.ID, nil)
	wanted(t, "read by somebody else", err, api.CodeNotFound)
	resold := p.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-00000000005d", Name: "sold", Organization: p.acme,
		Data: api.Encode(api.OrganizationSpec{Parent: api.OrganizationID(p.acme)})})[0]
	_, err = begin(p.Token, resold.Meta.ID, api.CheckoutSpec{AmountMicros: 50_000_000})
	wanted(t, "for a reseller's customer", err, api.CodeState)
}

// TestTopUp checks who may read and change the automatic top-up of which organization,
// and what is refused.
func TestTopUp(t *testing.T) {
	p := newPeople(t)
	admin, member := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin), p.Key(t, api.Meta{Name: "m", Organization: p.acme}, api.RoleMember)
	save := func(token string, s api.TopUp) (api.TopUp, *api.Error) {
		t.Helper()
		return ask[api.TopUp](p, token, "PUT", "/v1/top-up", s)
	}
	good := api.TopUp{Enabled: true, BelowMicros: 10_000_000, AmountMicros: 50_000_000, MonthlyLimitMicros: 200_000_000}
	_, err := save(admin, good)
	wanted(t, "while payments are disabled", err, api.CodeState)
	cardsOn(p)
	_, err = save(admin, good)
	wanted(t, "of an organization that does not pay in advance", err, api.CodeState)
	org, err := ask[api.Organization](p, p.Token, "GET", "/v1/organizations/"+p.acme, nil)
	wanted(t, "read the organization", err, "")
	org.Spec.Billing = &api.OrganizationBilling{Mode: api.BillingPrepaid}
	_, err = ask[api.Organization](p, p.Token, "PUT", "/v1/organizations/"+p.acme, org)
	wanted(t, "let it pay in advance", err, "")
	if w, err := ask[api.Wallet](p, admin, "GET", "/v1/wallet", nil); err != nil || !w.TopUp {
		t.Errorf("wallet of an organization that pays in advance = %+v, %v; want that it can top up", w, err)
	}
	_, err = save(admin, good)
	wanted(t, "without a card", err, api.CodeState)
	card, err := ask[api.Card](p, admin, "POST", "/v1/cards", api.Card{Kind: api.KindCard, Spec: api.CardSpec{Default: true}})
	wanted(t, "save a card", err, "")
	for field, change := range map[string]func(*api.TopUp){
		"amountMicros": func(s *api.TopUp) { s.AmountMicros = 50_000_001 }, "monthlyLimitMicros": func(s *api.TopUp) { s.MonthlyLimitMicros = 49_990_000 },
		"card": func(s *api.TopUp) { s.Card = "card-0000000000ff" },
	} {
		bad := good
		change(&bad)
		if _, err := save(admin, bad); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	got, err := save(admin, good)
	wanted(t, "save", err, "")
	if got.Organization != api.OrganizationID(p.acme) || got.Revision == 0 || got.Currency != "EUR" || got.Status.State != api.TopUpReady {
		t.Errorf("saved top-up = %+v, want it Ready in EUR for organization %s", got, p.acme)
	}
	_, err = save(admin, good)
	wanted(t, "save an old revision", err, api.CodeConflict)
	got.Card, got.Enabled = api.CardID(card.Meta.ID), false
	got, err = save(admin, got)
	wanted(t, "disable", err, "")
	if again, err := ask[api.TopUp](p, admin, "GET", "/v1/top-up", nil); err != nil || again.Status.State != api.TopUpOff || again.Card != got.Card || again.Revision != got.Revision {
		t.Errorf("read = %+v, %v; want Off with card %s at revision %d", again, err, card.Meta.ID, got.Revision)
	}
	_, err = ask[api.TopUp](p, member, "GET", "/v1/top-up", nil)
	wanted(t, "read by a member", err, api.CodeForbidden)
	_, err = save(member, good)
	wanted(t, "save by a member", err, api.CodeForbidden)
	other := p.Key(t, api.Meta{Name: "k2", Organization: "org-0123456789ab"}, api.RoleAdmin)
	for method, body := range map[string]any{"GET": nil, "PUT": good} {
		_, err = ask[api.TopUp](p, other, method, "/v1/top-up?organization="+p.acme, body)
		wanted(t, method+" of another organization", err, api.CodeNotFound)
	}
	resold := p.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-00000000005d", Name: "sold", Organization: p.acme,
		Data: api.Encode(api.OrganizationSpec{Parent: api.OrganizationID(p.acme), Billing: &api.OrganizationBilling{Mode: api.BillingPrepaid}})})[0]
	_, err = ask[api.TopUp](p, p.Token, "PUT", "/v1/top-up?organization="+resold.Meta.ID, good)
	wanted(t, "of a reseller's customer", err, api.CodeState)
}

// TestAutoPay checks who may read and change the automatic payment of which organization's
// invoices, what is refused, and that the consent is recorded.
func TestAutoPay(t *testing.T) {
	p := newPeople(t)
	admin, member := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin), p.Key(t, api.Meta{Name: "m", Organization: p.acme}, api.RoleMember)
	save := func(token string, s api.AutoPay) (api.AutoPay, *api.Error) {
		t.Helper()
		return ask[api.AutoPay](p, token, "PUT", "/v1/auto-pay", s)
	}
	pays := func(mode api.BillingMode) {
		t.Helper()
		org, err := ask[api.Organization](p, p.Token, "GET", "/v1/organizations/"+p.acme, nil)
		wanted(t, "read the organization", err, "")
		org.Spec.Billing = &api.OrganizationBilling{Mode: mode}
		_, err = ask[api.Organization](p, p.Token, "PUT", "/v1/organizations/"+p.acme, org)
		wanted(t, "set its billing mode", err, "")
	}
	good := api.AutoPay{Enabled: true, Consent: true}
	_, err := save(admin, good)
	wanted(t, "while payments are disabled", err, api.CodeState)
	cardsOn(p)
	pays(api.BillingPrepaid)
	_, err = save(admin, good)
	wanted(t, "of an organization that pays in advance", err, api.CodeState)
	pays(api.BillingInvoice)
	if w, err := ask[api.Wallet](p, admin, "GET", "/v1/wallet", nil); err != nil || !w.AutoPay || w.TopUp {
		t.Errorf("wallet of an organization that pays by invoice = %+v, %v; want automatic payment and no top-up", w, err)
	}
	_, err = save(admin, good)
	wanted(t, "without a card", err, api.CodeState)
	card, err := ask[api.Card](p, admin, "POST", "/v1/cards", api.Card{Kind: api.KindCard, Spec: api.CardSpec{Default: true}})
	wanted(t, "save a card", err, "")
	for field, bad := range map[string]api.AutoPay{"consent": {Enabled: true}, "card": {Enabled: true, Consent: true, Card: "card-0000000000ff"}} {
		if _, err := save(admin, bad); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	forged := good
	forged.ConsentBy, forged.Status = "somebody else", api.AutoPayStatus{Checkout: "chk-0123456789ab"}
	got, err := save(admin, forged)
	wanted(t, "save", err, "")
	if got.Organization != api.OrganizationID(p.acme) || got.Revision == 0 || got.Status.State != api.AutoPayReady || got.ConsentBy != "k" || got.ConsentAt == nil || !got.Consent {
		t.Errorf("saved = %+v, want it Ready for organization %s with the consent of k", got, p.acme)
	}
	_, err = save(admin, good)
	wanted(t, "save an old revision", err, api.CodeConflict)
	at := *got.ConsentAt
	got.Card = api.CardID(card.Meta.ID)
	if got, err = save(p.Key(t, api.Meta{Name: "k3", Organization: p.acme}, api.RoleBilling), got); err != nil || got.ConsentBy != "k" || !got.ConsentAt.Equal(at) {
		t.Errorf("saved by another user = %+v, %v; want the consent of k at %s kept", got, err, at)
	}
	got.Enabled = false
	got, err = save(admin, got)
	wanted(t, "disable", err, "")
	if again, err := ask[api.AutoPay](p, admin, "GET", "/v1/auto-pay", nil); err != nil || again.Status.State != api.AutoPayOff || again.Consent || again.Revision != got.Revision {
		t.Errorf("read = %+v, %v; want Off without consent at revision %d", again, err, got.Revision)
	}
	_, err = ask[api.AutoPay](p, member, "GET", "/v1/auto-pay", nil)
	wanted(t, "read by a member", err, api.CodeForbidden)
	_, err = save(member, good)
	wanted(t, "save by a member", err, api.CodeForbidden)
	other := p.Key(t, api.Meta{Name: "k2", Organization: "org-0123456789ab"}, api.RoleAdmin)
	for method, body := range map[string]any{"GET": nil, "PUT": good} {
		_, err = ask[api.AutoPay](p, other, method, "/v1/auto-pay?organization="+p.acme, body)
		wanted(t, method+" of another organization", err, api.CodeNotFound)
	}
	p.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindAutoPay, ID: api.AutoPayID(api.OrganizationID(p.acme)), Expect: api.AnyRevision,
		Data: api.Encode(api.AutoPayStatus{Checkout: "chk-0123456789ab", Invoice: "inv-000000000001"})})
	_, err = ask[api.Checkout](p, admin, "POST", "/v1/checkouts", api.Checkout{Kind: api.KindCheckout, Spec: api.CheckoutSpec{Invoice: "INV-000001"}})
	wanted(t, "pay an invoice that is being charged", err, api.CodeState)
}

// TestOpenCheckouts checks that concurrent requests open at most ten checkouts.
func TestOpenCheckouts(t *testing.T) {
	p := newPeople(t)
	cardsOn(p)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	var wg sync.WaitGroup
	codes := make(chan int, 30)
	for range cap(codes) {
		wg.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/v1/checkouts", strings.NewReader(`{"kind":"Checkout","meta":{"name":""},"spec":{"amountMicros":50000000}}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+admin)
			rec := httptest.NewRecorder()
			p.Server.ServeHTTP(rec, r)
			codes <- rec.Code
		})
	}
	wg.Wait()
	close(codes)
	got := map[int]int{}
	for c := range codes {
		got[c]++
	}
	if got[http.StatusCreated] != api.MaxOpenCheckouts || got[http.StatusTooManyRequests] != cap(codes)-api.MaxOpenCheckouts {
		t.Errorf("statuses of %d requests = %v, want 201 for %d and 429 for the rest", cap(codes), got, api.MaxOpenCheckouts)
	}
}

// TestCards checks who may save, choose and remove cards, for which organizations, and
// that an organization has at most ten.
func TestCards(t *testing.T) {
	p := newPeople(t)
	admin, member := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin), p.Key(t, api.Meta{Name: "m", Organization: p.acme}, api.RoleMember)
	add := func(token, org string) (api.Card, *api.Error) {
		t.Helper()
		return ask[api.Card](p, token, "POST", "/v1/cards", api.Card{Kind: api.KindCard, Meta: api.Meta{Organization: org}})
	}
	_, err := add(admin, "")
	wanted(t, "while payments are disabled", err, api.CodeState)
	cardsOn(p)
	c, err := add(admin, "")
	wanted(t, "save a card", err, "")
	if c.Meta.Organization != p.acme || !strings.HasPrefix(c.Status.URL, "https://") {
		t.Errorf("new card = %+v, want one of organization %s with a URL", c, p.acme)
	}
	_, err = add(member, "")
	wanted(t, "by a member", err, api.CodeForbidden)
	_, err = add(p.Token, "org-0000000000ff")
	wanted(t, "for an unknown organization", err, api.CodeInvalid)
	resold := p.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-00000000005d", Name: "sold", Organization: p.acme,
		Data: api.Encode(api.OrganizationSpec{Parent: api.OrganizationID(p.acme)})})[0]
	_, err = add(p.Token, resold.Meta.ID)
	wanted(t, "for a reseller's customer", err, api.CodeState)
	foreign := p.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-00000000005e", Name: "foreign", Data: api.Encode(api.OrganizationSpec{})})[0]
	theirs, err := add(p.Token, foreign.Meta.ID)
	wanted(t, "for another organization, by an operator", err, "")
	for what, call := range map[string][2]string{"read": {"GET", ""}, "remove": {"DELETE", ""}, "choose": {"POST", "/default"}} {
		_, err = ask[api.Card](p, admin, call[0], "/v1/cards/"+theirs.Meta.ID+call[1], nil)
		wanted(t, what+" a card of another organization", err, api.CodeNotFound)
	}
	got, err := ask[api.Card](p, admin, "POST", "/v1/cards/"+c.Meta.ID+"/default", nil)
	wanted(t, "choose a card", err, "")
	if !got.Status.Default {
		t.Errorf("chosen card = %+v, want it to be the default", got.Status)
	}
	for range api.MaxCards - 1 {
		_, err = add(admin, "")
		wanted(t, "save another card", err, "")
	}
	_, err = add(admin, "")
	wanted(t, "save an eleventh card", err, api.CodeRateLimited)
	_, err = ask[api.Card](p, admin, "DELETE", "/v1/cards/"+c.Meta.ID, nil)
	wanted(t, "remove a card", err, "")
	_, err = add(admin, "")
	wanted(t, "save a card in place of it", err, "")
}
