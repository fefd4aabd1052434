package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// mall is a bazaar whose resellers top, mid and rival have portals, and where people sign up:
// as the cluster's customers with a credit of 10 EUR, as those of top with 3 EUR.
type mall struct{ *bazaar }

const (
	topHost     = "portal.top.example"
	midHost     = "portal.mid.example"
	rivalHost   = "portal.rival.example"
	clusterHost = "cloud.example.com"
)

func newMall(t *testing.T, change ...func(*server.Options)) *mall {
	t.Helper()
	m := &mall{newBazaar(t, change...)}
	m.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-000000000001", Name: api.DefaultPriceBook, Data: api.Encode(api.PriceBookSpec{Currency: "EUR"})})
	s := terms
	s.Enabled, s.Resellers, s.BlockedDomains = true, true, []string{"spam.example"}
	_, err := ask[api.SignUpSettings](m.people, m.Token, "PUT", "/v1/sign-up-settings", s)
	wanted(t, "enable sign-up", err, "")
	for id, host := range map[string]string{m.top: topHost, m.mid: midHost, m.rival: rivalHost} {
		m.approved(id, host)
		m.brand(m.Token, id, api.Branding{ProductName: "Product of " + host})
	}
	m.set(m.topKey, m.top, topSignUp, "")
	return m
}

// topSignUp is the sign-up settings of top.
var topSignUp = api.SignUpSettings{Enabled: true, Resellers: true, TermsURL: "https://top.example/terms", TermsVersion: "top-1", CreditMicros: 3_000_000, Currency: "EUR", Quota: api.Amounts{"instances": 1}}

// set replaces the settings of an organization, and checks the code of the response.
func (m *mall) set(key, organization string, s api.SignUpSettings, want api.Code) api.SignUpSettings {
	m.t.Helper()
	path := "/v1/organizations/" + organization + "/sign-up-settings"
	now, err := ask[api.SignUpSettings](m.people, m.Token, "GET", path, nil)
	if err == nil {
		s.Revision = now.Revision
	}
	out, err := ask[api.SignUpSettings](m.people, key, "PUT", path, s)
	wanted(m.t, "sign-up settings of "+organization, err, want)
	return out
}

// request asks for a link in a portal.
func (m *mall) request(host, address, email string) *httptest.ResponseRecorder {
	m.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://"+host+"/v1/sign-up", strings.NewReader(`{"email":"`+email+`"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-Host", rivalHost) // is never read
	r.RemoteAddr = address + ":1234"
	rec := httptest.NewRecorder()
	m.Server.ServeHTTP(rec, r)
	return rec
}

// last returns the last message to an address, and its token.
func (m *mall) last(email string) (msg api.MailMessage, token string) {
	m.t.Helper()
	for _, x := range m.outbox() {
		if x.Spec.To == email && x.Meta.Revision > msg.Meta.Revision {
			msg = x
		}
	}
	if msg.Spec.Secret != "" {
		var err error
		if token, err = m.safe.Open(m.t.Context(), msg.Spec.Secret); err != nil {
			m.t.Fatal(err)
		}
	}
	return msg, token
}

// token requests a link in a portal, and returns its token.
func (m *mall) token(host, address, email string) string {
	m.t.Helper()
	if rec := m.request(host, address, email); rec.Code != http.StatusAccepted {
		m.t.Fatalf("request a link at %s: %d %s, want 202", host, rec.Code, rec.Body)
	}
	_, token := m.last(email)
	return token
}

// finish uses a link in a portal.
func (m *mall) finish(host, token, name, terms string) (api.Session, *api.Error) {
	m.t.Helper()
	return ask[api.Session](m.people, "", "POST", "https://"+host+"/v1/sign-up/finish",
		jsonText(fmt.Sprintf(`{"token":%q,"organization":%q,"password":%q,"terms":%q}`, token, name, horse, terms)))
}

func (m *mall) count(kind api.Kind) int {
	m.t.Helper()
	p, err := m.Store.List(m.t.Context(), api.ListQuery{Kind: kind, Limit: 1000})
	if err != nil {
		m.t.Fatal(err)
	}
	return len(p.Items)
}

// open reports whether people can sign up in a portal.
func (m *mall) open(host string) bool {
	m.t.Helper()
	info, err := ask[api.SignUpInfo](m.people, "", "GET", "https://"+host+"/v1/sign-up", nil)
	wanted(m.t, "read sign-up at "+host, err, "")
	return info.Enabled
}

// TestSignUpWithReseller checks a sign-up in a reseller's portal: with its terms and credit, a
// customer of it, in its portal, and managed by it.
func TestSignUpWithReseller(t *testing.T) {
	m := newMall(t)
	info, err := ask[api.SignUpInfo](m.people, "", "GET", "https://"+topHost+"/v1/sign-up", nil)
	wanted(t, "read", err, "")
	if !info.Enabled || info.TermsVersion != "top-1" || info.TermsURL != "https://top.example/terms" {
		t.Errorf("sign-up at %s = %+v, want top's terms", topHost, info)
	}
	token := m.token(topHost, "192.0.2.1", "ann@example.com")
	if msg, _ := m.last("ann@example.com"); msg.Spec.Organization != m.top || msg.Spec.Data != nil {
		t.Errorf("message = %+v, want one of %s without other texts", msg.Spec, m.top)
	}
	_, err = m.finish(topHost, token, "ann-inc", "2026-03")
	wanted(t, "with the cluster's terms", err, api.CodeInvalid)
	s, err := m.finish(topHost, token, "ann-inc", "top-1")
	wanted(t, "finish", err, "")
	me, err := ask[api.Identity](m.people, s.Token, "GET", "https://"+topHost+"/v1/whoami", nil)
	wanted(t, "whoami", err, "")
	org, err := ask[api.Organization](m.people, m.topKey, "GET", "/v1/organizations/"+me.Organization, nil)
	wanted(t, "top reads its customer", err, "")
	if org.Meta.Name != "ann-inc" || org.Spec.Parent != api.OrganizationID(m.top) || org.Meta.Organization != m.top || org.Spec.Quota["instances"] != 1 || org.Spec.Billing.Mode != api.BillingPrepaid {
		t.Errorf("organization = %+v, want a prepaid customer of %s with its quota", org, m.top)
	}
	paid, err := ask[api.PaymentList](m.people, s.Token, "GET", "/v1/payments", nil)
	wanted(t, "payments", err, "")
	if len(paid.Items) != 1 || paid.Items[0].Spec.AmountMicros != 3_000_000 {
		t.Errorf("payments = %+v, want top's credit of 3", paid.Items)
	}
	u, err := ask[api.User](m.people, s.Token, "GET", "/v1/users/"+string(me.User), nil)
	wanted(t, "user", err, "")
	if u.Spec.Terms == nil || u.Spec.Terms.Version != "top-1" || !u.Status.Verified {
		t.Errorf("user = %+v, want one with top's terms and a verified address", u)
	}
	_, err = ask[api.Organization](m.people, m.rivalKey, "GET", "/v1/organizations/"+me.Organization, nil)
	wanted(t, "rival reads top's customer", err, api.CodeNotFound)
	creds := jsonText(fmt.Sprintf(`{"email":"ann@example.com","password":%q}`, horse))
	_, err = ask[api.Session](m.people, "", "POST", "https://"+topHost+"/v1/login", creds)
	wanted(t, "sign in at top's portal", err, "")
	_, err = ask[api.Session](m.people, "", "POST", "https://"+rivalHost+"/v1/login", creds)
	wanted(t, "sign in at rival's portal", err, api.CodeForbidden)
	// The owner of an account is told where it is, whichever portal was asked.
	for i, host := range []string{topHost, clusterHost} {
		m.request(host, fmt.Sprintf("192.0.2.%d", 10+i), "ann@example.com")
		if msg, _ := m.last("ann@example.com"); msg.Spec.Type != api.MailTypeSignUpKnown || msg.Spec.Organization != me.Organization {
			t.Errorf("message after a request at %s = %+v, want one of the portal of the account", host, msg.Spec)
		}
	}
	// Names are unique among the customers of one reseller.
	_, err = m.finish(clusterHost, m.token(clusterHost, "192.0.2.2", "bob@example.com"), "ann-inc", "2026-03")
	wanted(t, "the same name as the cluster's customer", err, "")
	_, err = m.finish(topHost, m.token(topHost, "192.0.2.3", "eve@example.com"), "ann-inc", "top-1")
	wanted(t, "the same name as top's customer", err, api.CodeExists)
}

// TestSignUpLinkBelongsToPortal checks that a link is valid only in the portal where it was
// requested: neither a forged Host, nor one that was not approved, gives somebody the credit,
// the prices or the terms of another, or avoids a captcha.
func TestSignUpLinkBelongsToPortal(t *testing.T) {
	m := newMall(t)
	m.set(m.rivalKey, m.rival, api.SignUpSettings{Enabled: true}, "")
	_, err := m.bazaar.request(m.rivalKey, m.rival, "waiting.rival.example")
	wanted(t, "request a name", err, "")
	before := m.count(api.KindOrganization)
	hosts := map[string]string{topHost: "top-1", rivalHost: "", clusterHost: "2026-03"}
	n := 0
	for from := range hosts {
		n++
		token := m.token(from, fmt.Sprintf("192.0.2.%d", n), fmt.Sprintf("p%d@example.com", n))
		for at, version := range hosts {
			if at == from {
				continue
			}
			if _, err := m.finish(at, token, "x", version); err == nil || err.Field != "token" {
				t.Errorf("link of %s used at %s: %v, want an error at token", from, at, err)
			}
		}
	}
	if got := m.count(api.KindOrganization); got != before || m.count(api.KindPayment) != 0 {
		t.Errorf("%d organizations and %d payments exist, want %d and none", got, m.count(api.KindPayment), before)
	}
	// Names that were not approved, and names of no one, are the cluster's portal.
	for i, host := range []string{"waiting.rival.example", "unknown.example", "x." + topHost, "192.0.2.99"} {
		m.request(host, fmt.Sprintf("198.51.100.%d", i), fmt.Sprintf("u%d@example.com", i))
		if msg, _ := m.last(fmt.Sprintf("u%d@example.com", i)); msg.Spec.Organization != "" {
			t.Errorf("message after a request at %s is of organization %s, want the cluster", host, msg.Spec.Organization)
		}
	}
	// A sealed text with another reseller's ID cannot be made: an older link is the cluster's.
	old, _ := m.safe.Seal(t.Context(), `{"use":"sign-up","email":"old@example.com","until":"2100-01-01T00:00:00Z"}`)
	_, err = m.finish(topHost, old, "old", "top-1")
	wanted(t, "older link at top's portal", err, api.CodeInvalid)
	_, err = m.finish(clusterHost, old, "old", "2026-03")
	wanted(t, "older link at the cluster's portal", err, "")
}

// TestSignUpIsPermittedAbove checks that sign-up in a reseller's portal is open only while
// all providers above permit it and none is suspended, and while mail leads to that portal.
func TestSignUpIsPermittedAbove(t *testing.T) {
	m := newMall(t)
	if !m.open(topHost) || m.open(midHost) || m.open(rivalHost) {
		t.Error("sign-up is not open at top only, want top")
	}
	m.set(m.midKey, m.mid, api.SignUpSettings{Enabled: true}, "")
	if got := m.set(m.topKey, m.top, topSignUp, ""); !got.Allowed || !m.open(midHost) {
		t.Errorf("settings of top = %+v, open at mid %t; want allowed, and open", got, m.open(midHost))
	}
	token := m.token(midHost, "192.0.2.1", "ann@example.com")
	cluster := func(change func(*api.SignUpSettings)) {
		t.Helper()
		s, err := ask[api.SignUpSettings](m.people, m.Token, "GET", "/v1/sign-up-settings", nil)
		wanted(t, "read", err, "")
		change(&s)
		_, err = ask[api.SignUpSettings](m.people, m.Token, "PUT", "/v1/sign-up-settings", s)
		wanted(t, "change", err, "")
	}
	suspend := func(id string, s *api.OrganizationSuspension) {
		t.Helper()
		o, err := ask[api.Organization](m.people, m.Token, "GET", "/v1/organizations/"+id, nil)
		wanted(t, "read organization", err, "")
		o.Spec.Suspended = s
		_, err = ask[api.Organization](m.people, m.Token, "PUT", "/v1/organizations/"+id, o)
		wanted(t, "suspend", err, "")
	}
	closed := func(what string, hosts ...string) {
		t.Helper()
		for _, host := range hosts {
			if m.open(host) {
				t.Errorf("%s: sign-up is open at %s, want closed", what, host)
			}
			if rec := m.request(host, "203.0.113.1", "bob@example.com"); rec.Code != http.StatusConflict {
				t.Errorf("%s: request at %s: %d, want 409", what, host, rec.Code)
			}
		}
		if _, err := m.finish(midHost, token, "ann-inc", ""); codeOf(err) != api.CodeState {
			t.Errorf("%s: use a link: %v, want %s", what, err, api.CodeState)
		}
	}
	cluster(func(s *api.SignUpSettings) { s.Resellers = false })
	closed("the operator does not permit it", topHost, midHost)
	m.set(m.rivalKey, m.rival, api.SignUpSettings{Enabled: true}, api.CodeForbidden)
	if got := m.set(m.topKey, m.top, topSignUp, ""); got.Allowed { // other settings can still be changed
		t.Errorf("settings of top = %+v, want not allowed", got)
	}
	cluster(func(s *api.SignUpSettings) { s.Resellers, s.Enabled = true, false })
	if !m.open(topHost) || m.open(clusterHost) {
		t.Error("sign-up at the cluster's portal decides on that at top's, want each its own")
	}
	own := topSignUp
	own.Resellers = false
	m.set(m.topKey, m.top, own, "")
	closed("top does not permit it", midHost)
	m.set(m.topKey, m.top, topSignUp, "")
	for _, id := range []string{m.top, m.mid} {
		suspend(id, &api.OrganizationSuspension{Reason: "test"})
		closed("suspended", midHost)
		suspend(id, nil)
	}
	m.brand(m.midKey, m.mid, api.Branding{Revision: m.revision(m.mid)})
	closed("without a branding", midHost)
	m.set(m.midKey, m.mid, api.SignUpSettings{}, "")
	m.set(m.midKey, m.mid, api.SignUpSettings{Enabled: true}, api.CodeInvalid)
	m.brand(m.midKey, m.mid, api.Branding{Revision: m.revision(m.mid), ProductName: "Mid"})
	m.set(m.midKey, m.mid, api.SignUpSettings{Enabled: true}, "")
	_, err := m.finish(midHost, token, "ann-inc", "")
	wanted(t, "when all permit it again", err, "")
	// A domain that a provider above has blocked stays blocked.
	if rec := m.request(midHost, "192.0.2.9", "eve@x.spam.example"); rec.Code != http.StatusForbidden {
		t.Errorf("sign-up of a blocked domain at mid: %d %s, want 403", rec.Code, rec.Body)
	}
	// The lowest level cannot have customers.
	m.set(m.Token, m.low, api.SignUpSettings{Enabled: true}, api.CodeInvalid)
}

// TestSignUpSettingsOfHostileResellers checks who may change the settings of whom, and by
// which price books and with what credit a reseller's customers begin.
func TestSignUpSettingsOfHostileResellers(t *testing.T) {
	m := newMall(t)
	m.set(m.rivalKey, m.top, topSignUp, api.CodeNotFound)
	m.set(m.midKey, m.top, topSignUp, api.CodeNotFound)
	m.set(m.adminKey, m.top, topSignUp, api.CodeForbidden)
	_, err := ask[api.SignUpSettings](m.people, m.topKey, "GET", "/v1/sign-up-settings", nil)
	wanted(t, "a reseller reads the cluster's settings", err, api.CodeForbidden)
	_, err = ask[api.SignUpSettings](m.people, m.rivalKey, "GET", "/v1/organizations/top/sign-up-settings", nil)
	wanted(t, "rival reads top's settings", err, api.CodeNotFound)
	book := func(key, name, currency string) api.PriceBook {
		t.Helper()
		b, err := ask[api.PriceBook](m.people, key, "POST", "/v1/price-books", api.PriceBook{Meta: api.Meta{Name: name}, Spec: api.PriceBookSpec{Currency: currency}})
		wanted(t, "create price book "+name, err, "")
		return b
	}
	rivals, cheap, tops := book(m.rivalKey, "rivals", "EUR"), book(m.Token, "cheap", "EUR"), book(m.topKey, "tops", "USD")
	by := func(b api.PriceBook, currency string) api.SignUpSettings {
		s := topSignUp
		s.PriceBook, s.Currency = api.PriceBookID(b.Meta.ID), currency
		return s
	}
	m.set(m.topKey, m.top, by(rivals, "EUR"), api.CodeInvalid) // does not exist, for top
	m.set(m.Token, m.top, by(rivals, "EUR"), api.CodeInvalid)
	m.set(m.topKey, m.top, by(cheap, "EUR"), api.CodeInvalid)
	m.set(m.Token, m.top, by(cheap, "EUR"), api.CodeInvalid) // not offered
	m.set(m.topKey, m.top, by(tops, "EUR"), api.CodeInvalid) // the book is in USD
	m.set(m.topKey, m.top, by(tops, "USD"), "")
	// An offer that was withdrawn is not for new customers.
	offer := func(ids ...api.PriceBookID) {
		t.Helper()
		o, err := ask[api.Organization](m.people, m.Token, "GET", "/v1/organizations/top", nil)
		wanted(t, "read top", err, "")
		o.Spec.Offers = ids
		_, err = ask[api.Organization](m.people, m.Token, "PUT", "/v1/organizations/top", o)
		wanted(t, "offer", err, "")
	}
	offer(api.PriceBookID(cheap.Meta.ID))
	m.set(m.topKey, m.top, by(cheap, "EUR"), "")
	token := m.token(topHost, "192.0.2.1", "ann@example.com")
	offer()
	_, err = m.finish(topHost, token, "ann-inc", "top-1")
	wanted(t, "by a price book that is not offered any more", err, api.CodeState)
	offer(api.PriceBookID(cheap.Meta.ID))
	_, err = m.finish(topHost, token, "ann-inc", "top-1")
	wanted(t, "by a price book that is offered", err, "")
	// Without a credit of its own a reseller does not give that of the cluster.
	m.set(m.rivalKey, m.rival, api.SignUpSettings{Enabled: true}, "")
	paid := m.count(api.KindPayment)
	_, err = m.finish(rivalHost, m.token(rivalHost, "192.0.2.2", "bob@example.com"), "bob-inc", "")
	wanted(t, "sign up with rival", err, "")
	if got := m.count(api.KindPayment); got != paid {
		t.Errorf("a sign-up with rival created %d payments, want none", got-paid)
	}
	// A quota of the reseller's counts; the person does not learn of it.
	o, err := ask[api.Organization](m.people, m.Token, "GET", "/v1/organizations/rival", nil)
	wanted(t, "read rival", err, "")
	o.Spec.Quota = api.Amounts{"organizations": 1}
	_, err = ask[api.Organization](m.people, m.Token, "PUT", "/v1/organizations/rival", o)
	wanted(t, "limit rival", err, "")
	_, err = m.finish(rivalHost, m.token(rivalHost, "192.0.2.3", "eve@example.com"), "eve-inc", "")
	wanted(t, "beyond the quota", err, api.CodeState)
	if err != nil && strings.Contains(err.Error(), "quota") {
		t.Errorf("error beyond the quota = %v, want one without the quota", err)
	}
}

// TestSignUpFloodOfReseller checks that robots in one reseller's portals neither use up what
// others have, nor get more than all together have.
func TestSignUpFloodOfReseller(t *testing.T) {
	m := newMall(t)
	m.set(m.midKey, m.mid, api.SignUpSettings{Enabled: true}, "")
	m.set(m.rivalKey, m.rival, api.SignUpSettings{Enabled: true}, "")
	n := 0
	flood := func(host string, requests int) (accepted int) {
		for range requests {
			n++
			if m.request(host, fmt.Sprintf("10.0.%d.%d", n/250, n%250), fmt.Sprintf("bot%d@example.com", n)).Code == http.StatusAccepted {
				accepted++
			}
		}
		return accepted
	}
	if got := flood(topHost, 50) + flood(midHost, 50); got != 20 {
		t.Errorf("%d requests in the portals of top and mid were accepted, want 20 together", got)
	}
	if got := flood(rivalHost, 50); got != 20 {
		t.Errorf("%d requests in the portal of rival were accepted, want 20", got)
	}
	if got := flood(clusterHost, 100); got != 20 {
		t.Errorf("%d requests in the cluster's portal were accepted, want 20: 60 in all", got)
	}
	// Messages that wait.
	m.clock.Advance(time.Hour)
	end := m.clock.Now().Add(time.Hour)
	for i := range api.MaxPendingResellerSignUps {
		m.Apply(t, api.QueueMail(fmt.Sprintf("mail-%012x", i), api.MailMessageSpec{Type: api.MailTypeSignUp, To: "x@example.com", Organization: m.mid, ExpiresAt: &end}))
	}
	for host, want := range map[string]int{topHost: http.StatusTooManyRequests, midHost: http.StatusTooManyRequests, rivalHost: http.StatusAccepted, clusterHost: http.StatusAccepted} {
		if rec := m.request(host, "192.0.2.77", "late-"+host+"@example.com"); rec.Code != want {
			t.Errorf("request at %s while many messages of top wait: %d %s, want %d", host, rec.Code, rec.Body, want)
		}
	}
}

// TestSignUpSettingsEndWithReseller checks that the settings, with the captcha's secret, are
// deleted with the organization.
func TestSignUpSettingsEndWithReseller(t *testing.T) {
	m := newMall(t)
	m.set(m.rivalKey, m.rival, api.SignUpSettings{Enabled: true}, "")
	before := m.count(api.KindSignUpSettings)
	keys, fault := api.All[api.APIKey](t.Context(), m.Store, api.ListQuery{Kind: api.KindAPIKey, Organization: m.rival})
	if fault != nil || len(keys) != 1 {
		t.Fatalf("keys of rival = %v, %v, want one", keys, fault)
	}
	m.Apply(t, api.Command{Op: api.OpDelete, Kind: api.KindAPIKey, ID: keys[0].Meta.ID, Expect: api.AnyRevision})
	_, err := ask[api.Organization](m.people, m.Token, "DELETE", "/v1/organizations/"+m.rival, nil)
	wanted(t, "delete rival", err, "")
	if got := m.count(api.KindSignUpSettings); got != before-1 {
		t.Errorf("%d sign-up settings remain, want %d", got, before-1)
	}
	if m.open(rivalHost) != m.open(clusterHost) { // the name is now as any other
		t.Error("the deleted reseller's name has sign-up settings of its own, want the cluster's")
	}
}
