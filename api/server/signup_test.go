package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// crowd is a world with people who sign up.
type crowd struct {
	*people
	safe *safe
}

func newCrowd(t *testing.T, s api.SignUpSettings) *crowd {
	t.Helper()
	c := &crowd{safe: &safe{}}
	c.people = newPeople(t, func(o *server.Options) {
		o.Secrets, o.Networking = c.safe, true
		o.URLs.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	c.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-000000000001", Name: api.DefaultPriceBook, Data: api.Encode(api.PriceBookSpec{Currency: "EUR"})})
	mailOn(c.people)
	s.Enabled = true
	_, err := ask[api.SignUpSettings](c.people, c.Token, "PUT", "/v1/sign-up-settings", s)
	wanted(t, "enable sign-up", err, "")
	return c
}

var terms = api.SignUpSettings{TermsURL: "https://example.com/terms", TermsVersion: "2026-03", CreditMicros: 10_000_000, Currency: "EUR", Quota: api.Amounts{"instances": 2}}

// from sends a sign-up request from a client address.
func (c *crowd) from(address, email, captcha string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/sign-up", strings.NewReader(string(api.Encode(api.SignUpRequest{Email: email, Captcha: captcha}))))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = address + ":1234"
	rec := httptest.NewRecorder()
	c.Server.ServeHTTP(rec, r)
	return rec
}

// token returns the token in the last message to an address; empty: there is none.
func (c *crowd) token(email string) string {
	c.t.Helper()
	var last api.MailMessage
	for _, m := range c.outbox() {
		if m.Spec.To == email {
			last = m
		}
	}
	if last.Spec.Secret == "" {
		return ""
	}
	token, err := c.safe.Open(c.t.Context(), last.Spec.Secret)
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

func (c *crowd) finish(in api.SignUpCompletion) (api.Session, *api.Error) {
	c.t.Helper()
	raw := fmt.Sprintf(`{"token":%q,"organization":%q,"displayName":%q,"password":%q,"terms":%q}`, in.Token, in.Organization, in.DisplayName, in.Password, in.Terms)
	return ask[api.Session](c.people, "", "POST", "/v1/sign-up/finish", jsonText(raw))
}

// jsonText is JSON that is sent unchanged, since marshaling a struct would drop its
// secrets.
type jsonText string

func (j jsonText) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// count returns the number of objects of a kind.
func (c *crowd) count(kind api.Kind) int {
	c.t.Helper()
	p, err := c.Store.List(c.t.Context(), api.ListQuery{Kind: kind, Limit: 1000})
	if err != nil {
		c.t.Fatal(err)
	}
	return len(p.Items)
}

// TestSignUp checks the whole sign-up, from an address to a session: an organization
// with project, quota, credit and an owner who has accepted the terms.
func TestSignUp(t *testing.T) {
	c := newCrowd(t, terms)
	info, err := ask[api.SignUpInfo](c.people, "", "GET", "/v1/sign-up", nil)
	wanted(t, "read", err, "")
	if !info.Enabled || info.TermsVersion != "2026-03" {
		t.Errorf("sign-up info = %+v, want enabled with terms 2026-03", info)
	}
	users, orgs := c.count(api.KindUser), c.count(api.KindOrganization)
	if rec := c.from("192.0.2.7", " Ann@Example.com ", ""); rec.Code != http.StatusAccepted {
		t.Fatalf("request a link: %d %s, want 202", rec.Code, rec.Body)
	}
	if c.count(api.KindUser) != users || c.count(api.KindOrganization) != orgs {
		t.Error("a user or an organization exists before the address was verified, want none")
	}
	good := api.SignUpCompletion{Token: c.token("ann@example.com"), Organization: "ann-inc", DisplayName: "Ann", Password: horse, Terms: "2026-03"}
	for field, change := range map[string]func(*api.SignUpCompletion){
		"organization": func(s *api.SignUpCompletion) { s.Organization = "No Name" },
		"password":     func(s *api.SignUpCompletion) { s.Password = "short" },
		"displayName":  func(s *api.SignUpCompletion) { s.DisplayName = strings.Repeat("x", 1000) },
		"terms":        func(s *api.SignUpCompletion) { s.Terms = "2025-01" },
		"token":        func(s *api.SignUpCompletion) { s.Token += "x" },
	} {
		bad := good
		change(&bad)
		if _, err := c.finish(bad); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	taken := good
	taken.Organization = "acme"
	if _, err := c.finish(taken); err == nil || err.Field != "organization" {
		t.Errorf("name of an existing organization: error %v, want one at organization", err)
	}
	if c.count(api.KindUser) != users || c.count(api.KindOrganization) != orgs || c.count(api.KindPayment) != 0 {
		t.Error("a refused sign-up created a user, an organization or a payment, want nothing")
	}
	s, err := c.finish(good)
	wanted(t, "finish", err, "")
	me, err := ask[api.Identity](c.people, s.Token, "GET", "/v1/whoami", nil)
	wanted(t, "whoami", err, "")
	if me.Role != api.RoleAdmin || me.Organization == "" {
		t.Errorf("identity after the sign-up = %+v, want an admin of an organization", me)
	}
	org, err := ask[api.Organization](c.people, s.Token, "GET", "/v1/organizations/"+me.Organization, nil)
	wanted(t, "organization", err, "")
	if org.Meta.Name != "ann-inc" || org.Spec.Billing == nil || org.Spec.Billing.Mode != api.BillingPrepaid || org.Spec.Quota["instances"] != 2 {
		t.Errorf("organization after the sign-up = %+v, want ann-inc, prepaid, with a quota", org)
	}
	projects, err := ask[api.ProjectList](c.people, s.Token, "GET", "/v1/projects", nil)
	wanted(t, "projects", err, "")
	if len(projects.Items) != 1 || projects.Items[0].Meta.Name != "default" {
		t.Errorf("projects after the sign-up = %+v, want one named default", projects.Items)
	}
	networks, err := ask[api.NetworkList](c.people, s.Token, "GET", "/v1/networks", nil)
	wanted(t, "networks", err, "")
	if len(networks.Items) != 1 || networks.Items[0].Meta.Name != "default" {
		t.Errorf("networks after the sign-up = %+v, want one named default", networks.Items)
	}
	paid, err := ask[api.PaymentList](c.people, s.Token, "GET", "/v1/payments", nil)
	wanted(t, "payments", err, "")
	if len(paid.Items) != 1 || paid.Items[0].Spec.AmountMicros != 10_000_000 || paid.Items[0].Spec.Type != api.PaymentVoucher {
		t.Errorf("payments after the sign-up = %+v, want one voucher of 10", paid.Items)
	}
	people, err := ask[api.UserList](c.people, s.Token, "GET", "/v1/users", nil)
	wanted(t, "users", err, "")
	if len(people.Items) != 1 {
		t.Fatalf("users after the sign-up = %+v, want one", people.Items)
	}
	u := people.Items[0]
	if u.Meta.Name != "ann@example.com" || !u.Status.Verified || u.Spec.Terms == nil || u.Spec.Terms.Version != "2026-03" || !u.Spec.Terms.AcceptedAt.Equal(c.clock.Now()) {
		t.Errorf("user after the sign-up = %+v, want ann@example.com, verified, with accepted terms", u)
	}
	u.Spec.DisplayName, u.Spec.Terms = "Ann B.", nil
	u, err = ask[api.User](c.people, s.Token, "PUT", "/v1/users/"+u.Meta.ID, u)
	wanted(t, "change the user", err, "")
	if u.Spec.Terms == nil {
		t.Error("a change of the user removed the accepted terms, want them kept")
	}
	if _, err := c.finish(good); err == nil || err.Code != api.CodeExists {
		t.Errorf("use the link again: %v, want %s", err, api.CodeExists)
	}
	_, err = c.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "sign in", err, "")
}

// TestSignUpAtOnce checks that a link used several times concurrently creates one
// customer.
func TestSignUpAtOnce(t *testing.T) {
	c := newCrowd(t, terms)
	c.from("192.0.2.7", "ann@example.com", "")
	token, orgs := c.token("ann@example.com"), c.count(api.KindOrganization)
	var wg sync.WaitGroup
	codes := make(chan int, 8)
	for i := range cap(codes) {
		wg.Go(func() {
			codes <- c.call("POST", "/v1/sign-up/finish", "", fmt.Sprintf(`{"token":%q,"organization":"ann-%d","password":%q,"terms":"2026-03"}`, token, i, horse)).Code
		})
	}
	wg.Wait()
	close(codes)
	made := 0
	for code := range codes {
		if code == http.StatusCreated {
			made++
		} else if code != http.StatusConflict {
			t.Errorf("finish the sign-up: status %d, want 201 or 409", code)
		}
	}
	if made != 1 || c.count(api.KindOrganization) != orgs+1 || c.count(api.KindPayment) != 1 {
		t.Errorf("%d sign-ups succeeded, with %d organizations and %d payments; want 1 of each", made, c.count(api.KindOrganization)-orgs, c.count(api.KindPayment))
	}
}

// TestSignUpRevealsNothing checks that responses do not reveal whether an address is
// known: only the message to its owner differs.
func TestSignUpRevealsNothing(t *testing.T) {
	c := newCrowd(t, terms)
	c.from("192.0.2.7", "ann@example.com", "")
	_, err := c.finish(api.SignUpCompletion{Token: c.token("ann@example.com"), Organization: "ann-inc", Password: horse, Terms: "2026-03"})
	wanted(t, "finish", err, "")
	known, unknown := c.from("192.0.2.8", "ann@example.com", ""), c.from("192.0.2.9", "bob@example.com", "")
	if known.Code != unknown.Code || strings.ReplaceAll(known.Body.String(), "ann@", "") != strings.ReplaceAll(unknown.Body.String(), "bob@", "") {
		t.Errorf("responses for a known address %d %s and for an unknown one %d %s, want the same", known.Code, known.Body, unknown.Code, unknown.Body)
	}
	types := map[string]api.MailType{}
	for _, m := range c.outbox() {
		types[m.Spec.To] = m.Spec.Type
		if m.Spec.Data != nil {
			t.Errorf("message contains text from an unauthenticated request: %+v", m.Spec)
		}
	}
	seen := map[api.MailType]int{}
	for _, m := range c.outbox() {
		seen[m.Spec.Type]++
	}
	if seen[api.MailTypeSignUpKnown] != 1 || seen[api.MailTypeSignUp] != 2 {
		t.Errorf("messages by type = %v, want 1 to a known address and 2 to unknown ones", seen)
	}
}

// TestSignUpFlood checks that automated requests cause few messages and no objects, and
// that tokens cannot be guessed.
func TestSignUpFlood(t *testing.T) {
	c := newCrowd(t, terms)
	got := map[int]int{}
	for i := range 100 { // one client, many e-mail addresses
		got[c.from("192.0.2.7", fmt.Sprintf("robot%d@example.com", i), "").Code]++
	}
	if got[http.StatusAccepted] != 5 || got[http.StatusTooManyRequests] != 95 {
		t.Errorf("statuses for one client = %v, want 202 for 5 and 429 for 95", got)
	}
	for i := range 20 { // many clients, one e-mail address
		if rec := c.from(fmt.Sprintf("198.51.100.%d", i), "victim@example.com", ""); rec.Code != http.StatusAccepted {
			t.Errorf("request %d for one person: %d %s, want the usual response", i, rec.Code, rec.Body)
		}
	}
	victims := 0
	for _, m := range c.outbox() {
		if m.Spec.To == "victim@example.com" {
			victims++
		}
	}
	if victims != 3 {
		t.Errorf("%d messages to one person, want 3", victims)
	}
	got = map[int]int{}
	for i := range 250 { // many clients, many e-mail addresses
		got[c.from(fmt.Sprintf("203.0.113.%d", i), fmt.Sprintf("bot%d@example.com", i), "").Code]++
	}
	if got[http.StatusAccepted] > 60 {
		t.Errorf("statuses for many clients = %v, want at most 60 of 202", got)
	}
	if n := c.count(api.KindUser); n != 0 {
		t.Errorf("%d users exist, want none", n)
	}
	sealed, _ := c.safe.Seal(t.Context(), `{"use":"oidc","email":"eve@example.com","until":"2100-01-01T00:00:00Z"}`)
	late, _ := c.safe.Seal(t.Context(), `{"use":"sign-up","email":"eve@example.com","until":"2026-03-01T11:00:00Z"}`)
	for name, token := range map[string]string{"nothing": "", "a guess": "abcdef", "sealed for something else": sealed, "late": late, "long": strings.Repeat("x", 1<<13),
		"plain": `{"use":"sign-up","email":"eve@example.com","until":"2100-01-01T00:00:00Z"}`} {
		if _, err := c.finish(api.SignUpCompletion{Token: token, Organization: "eve", Password: horse, Terms: "2026-03"}); err == nil || err.Code != api.CodeInvalid {
			t.Errorf("token that is %s: error %v, want an invalid token", name, err)
		}
	}
	slowed := false
	for range 200 {
		_, err := c.finish(api.SignUpCompletion{Token: "guess", Organization: "eve", Password: horse, Terms: "2026-03"})
		slowed = slowed || err.Code == api.CodeRateLimited
	}
	if !slowed {
		t.Error("guessing tokens was never rate-limited, want it limited")
	}
}

// TestPendingSignUps checks the limit on sign-up messages that wait in the outbox, e.g.
// while the mail server is unreachable.
func TestPendingSignUps(t *testing.T) {
	c := newCrowd(t, terms)
	end := c.clock.Now().Add(time.Hour)
	for i := range api.MaxPendingSignUps {
		c.Apply(t, api.QueueMail(fmt.Sprintf("mail-%012x", i), api.MailMessageSpec{Type: api.MailTypeSignUp, To: "x@example.com", ExpiresAt: &end}))
	}
	if rec := c.from("192.0.2.7", "ann@example.com", ""); rec.Code != http.StatusTooManyRequests {
		t.Errorf("request beyond the limit: %d %s, want 429", rec.Code, rec.Body)
	}
}

// TestSignUpCaptcha checks that a captcha is verified, and that sign-up fails if its
// provider is unreachable.
func TestSignUpCaptcha(t *testing.T) {
	answer := `{"success": false}`
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("secret") != "geheim" {
			t.Errorf("the provider received secret %q, want geheim", r.FormValue("secret"))
		}
		if r.FormValue("response") == "solved" {
			_, _ = w.Write([]byte(`{"success": true}`))
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	c := newCrowd(t, terms)
	now, err := ask[api.SignUpSettings](c.people, c.Token, "GET", "/v1/sign-up-settings", nil)
	wanted(t, "read", err, "")
	set := func(secret, at string) *api.Error {
		raw := fmt.Sprintf(`{"revision":%d,"enabled":true,"captcha":"turnstile","siteKey":"site","verifyURL":%q,"captchaSecret":%q}`, now.Revision, at, secret)
		got, err := ask[api.SignUpSettings](c.people, c.Token, "PUT", "/v1/sign-up-settings", jsonText(raw))
		if err == nil {
			now = got
		}
		return err
	}
	if err := set("", provider.URL); err == nil || err.Field != "captchaSecret" {
		t.Errorf("enable the captcha without a secret: %v, want an error at captchaSecret", err)
	}
	wanted(t, "with a secret", set("geheim", provider.URL), "")
	wanted(t, "keep the secret", set("", provider.URL), "")
	if err := set("", "https://evil.example.com"); err == nil || err.Field != "captchaSecret" {
		t.Errorf("keep the secret for another address: %v, want an error at captchaSecret", err)
	}
	if !now.HasCaptchaSecret || strings.Contains(c.call("GET", "/v1/sign-up-settings", c.Token, "").Body.String(), "geheim") {
		t.Errorf("settings = %+v, want a secret that is not shown", now)
	}
	for _, x := range []struct {
		token, answer string
		want          int
	}{{"", "", 400}, {"wrong", `{"success": false}`, 400}, {"wrong", `nonsense`, 503}, {"solved", "", 202}} {
		answer = x.answer
		if rec := c.from("192.0.2.7", "ann@example.com", x.token); rec.Code != x.want || strings.Contains(rec.Body.String(), "geheim") {
			t.Errorf("captcha token %q, provider's response %q: %d %s, want %d", x.token, x.answer, rec.Code, rec.Body, x.want)
		}
	}
	provider.Close()
	if rec := c.from("192.0.2.8", "bob@example.com", "solved"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("sign-up while the provider is unreachable: %d %s, want 503", rec.Code, rec.Body)
	}
	if n := len(c.outbox()); n != 1 {
		t.Errorf("%d messages in the outbox, want 1", n)
	}
}

// TestSignUpSettings checks that sign-up is disabled by default, and restricted to the
// domains that operators allow.
func TestSignUpSettings(t *testing.T) {
	p := newPeople(t)
	if rec := p.call("POST", "/v1/sign-up", "", `{"email":"ann@example.com"}`); rec.Code != http.StatusConflict {
		t.Errorf("sign-up while it is disabled: %d %s, want 409", rec.Code, rec.Body)
	}
	s := terms
	s.AllowedDomains, s.BlockedDomains = []string{"Example.com"}, []string{"bad.example.com"}
	c := newCrowd(t, s)
	for email, want := range map[string]int{"a@example.com": 202, "a@sub.example.com": 202, "a@bad.example.com": 403, "a@x.bad.example.com": 403, "a@notexample.com": 403, "nonsense": 400} {
		if rec := c.from("192.0.2."+fmt.Sprint(len(email)), email, ""); rec.Code != want {
			t.Errorf("sign-up of %s: %d %s, want %d", email, rec.Code, rec.Body, want)
		}
	}
	for field, raw := range map[string]string{
		"termsVersion":      `{"termsURL":"https://example.com"}`,
		"termsURL":          `{"termsURL":"javascript:alert(1)","termsVersion":"1"}`,
		"allowedDomains[0]": `{"allowedDomains":["@example.com"]}`,
		"currency":          `{"creditMicros":5,"currency":"USD"}`,
		"captcha":           `{"captcha":"other","siteKey":"x","captchaSecret":"y"}`,
		"quota":             `{"quota":{"nonsense":1}}`,
		"priceBook":         `{"priceBook":"none"}`,
	} {
		if _, err := ask[api.SignUpSettings](c.people, c.Token, "PUT", "/v1/sign-up-settings", jsonText(raw)); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	admin := c.Key(t, api.Meta{Name: "k", Organization: c.acme}, api.RoleAdmin)
	_, err := ask[api.SignUpSettings](c.people, admin, "GET", "/v1/sign-up-settings", nil)
	wanted(t, "read by an admin", err, api.CodeForbidden)
}
