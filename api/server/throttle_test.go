package server_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// asked sends a request with a token from an address.
func (p *people) asked(token, address string) *api.Error {
	r := httptest.NewRequest("GET", "/v1/whoami", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return p.from(r, address)
}

// TestWrongTokensDoNotBlock checks that any number of wrong tokens does not block
// a valid one from the same address, neither another user's nor the one they were
// guesses for. Only their sender is rate-limited.
func TestWrongTokensDoNotBlock(t *testing.T) {
	p := newPeople(t)
	good := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	id := strings.Split(good, "_")[1]
	wrong := map[string]func(int) string{
		"none":                   func(int) string { return "nonsense" },
		"of keys that are not":   func(i int) string { return fmt.Sprintf("bslt_key-%012x_%064x", i, i) },
		"of a key that is there": func(i int) string { return fmt.Sprintf("bslt_%s_%064x", id, i) },
		"of sessions":            func(i int) string { return fmt.Sprintf("bslt_ses-%012x_%064x", i, i) },
	}
	const address, each = "198.51.100.1:1000", 2500
	answers := map[api.Code]int{}
	for name, token := range wrong {
		for i := range each {
			e := p.asked(token(i), address)
			if e == nil {
				t.Fatalf("%s: wrong token %d was accepted", name, i)
			}
			answers[e.Code]++
			if i%100 == 0 {
				wanted(t, name+": a good key of the same address", p.asked(good, address), "")
			}
		}
	}
	// Each address gets 100 answers about wrong tokens, and so do guesses of one
	// credential.
	if answers[api.CodeUnauthenticated] != 100 || answers[api.CodeRateLimited] != 4*each-100 {
		t.Errorf("codes for %d wrong tokens = %v, want 100 times %s and else %s", 4*each, answers, api.CodeUnauthenticated, api.CodeRateLimited)
	}
	// Valid login links are accepted despite wrong ones, too.
	u, e := ask[api.User](p, p.Token, "POST", "/v1/users", api.User{Meta: api.Meta{Name: "ann@x.org", Organization: "acme"},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: "acme"}}}})
	wanted(t, "make a user", e, "")
	body := func(token string) *strings.Reader {
		return strings.NewReader(string(api.Encode(api.PasswordToken{Token: token, Password: horse})))
	}
	wanted(t, "a wrong link", p.from(httptest.NewRequest("POST", "/v1/password/link", body("x")), address), api.CodeRateLimited)
	wanted(t, "the good link", p.from(httptest.NewRequest("POST", "/v1/password/link", body(u.Link.Token)), address), "")
}

// TestSprayedPasswordsKeepNobodyOut checks that wrong passwords for many accounts do
// not block other users of the same address, not even on their first login from it.
func TestSprayedPasswordsKeepNobodyOut(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	login := func(email, word string) *api.Error {
		body, err := json.Marshal(api.Credentials{Email: email, Password: word})
		if err != nil {
			t.Fatal(err)
		}
		return p.from(httptest.NewRequest("POST", "/v1/login", strings.NewReader(string(body))), "198.51.100.1:1000")
	}
	for i := range 300 {
		wanted(t, "a wrong one", login(fmt.Sprintf("u%d@x.org", i), "wrong password"), api.CodeUnauthenticated)
	}
	wanted(t, "a good one", login("ann@x.org", horse), "")
}

// TestCountersAreSeparate checks that counters of many accounts and addresses are
// separate from each other.
func TestCountersAreSeparate(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	good := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	for i := range 12_000 {
		address := fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>8, i&255)
		wanted(t, "a wrong token", p.asked("nonsense", address), api.CodeUnauthenticated)
		if e := p.fromAs(address, fmt.Sprintf("u%d@x.org", i)); e == nil || e.Code != api.CodeUnauthenticated {
			t.Fatalf("login with wrong password %d: error %v, want %s", i, e, api.CodeUnauthenticated)
		}
	}
	r := httptest.NewRequest("POST", "/v1/login", strings.NewReader(`{"email":"ann@x.org","password":"`+horse+`"}`))
	wanted(t, "a good password", p.from(r, "203.0.113.1:1"), "")
	wanted(t, "a good key", p.asked(good, "203.0.113.1:1"), "")
}

// TestTrustedProxies checks that only trusted proxies can set the client's address.
func TestTrustedProxies(t *testing.T) {
	w := newWorld(t)
	token := w.scoped(t, "office", func(s *api.APIKeySpec) { s.Networks = []string{"192.0.2.0/24"} })
	h := auth.BehindProxies([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, w.Server)
	for name, c := range map[string]struct {
		from      string
		header    []string
		forwarded string
		want      int
	}{
		"by a proxy":                         {"10.0.0.1:5", []string{"192.0.2.7"}, "", 200},
		"by a proxy of IPv6":                 {"[fd00::1]:5", []string{"192.0.2.7"}, "", 200},
		"by a mapped one":                    {"[::ffff:10.0.0.1]:5", []string{"192.0.2.7"}, "", 200},
		"by two":                             {"10.0.0.1:5", []string{"192.0.2.7, 10.0.0.2"}, "", 200},
		"by two, in two headers":             {"10.0.0.1:5", []string{"192.0.2.7", "10.0.0.2"}, "", 200},
		"with a port":                        {"10.0.0.1:5", []string{"192.0.2.7:4000"}, "", 200},
		"as a mapped address":                {"10.0.0.1:5", []string{"::ffff:192.0.2.7"}, "", 200},
		"what the client wrote":              {"10.0.0.1:5", []string{"192.0.2.7, 203.0.113.9"}, "", 403},
		"what the client wrote, two headers": {"10.0.0.1:5", []string{"192.0.2.7", "203.0.113.9"}, "", 403},
		"as a proxy's address":               {"10.0.0.1:5", []string{"192.0.2.7, 203.0.113.9, 10.0.0.2"}, "", 403},
		"by nobody who is trusted":           {"203.0.113.9:5", []string{"192.0.2.7"}, "", 403},
		"by the proxy itself":                {"10.0.0.1:5", nil, "", 403},
		"nonsense":                           {"10.0.0.1:5", []string{"192.0.2.7, what"}, "", 403},
		"an empty one":                       {"10.0.0.1:5", []string{"192.0.2.7,"}, "", 403},
		"in the other header":                {"10.0.0.1:5", []string{"203.0.113.9"}, "for=192.0.2.7", 403},
		"more than are looked at":            {"10.0.0.1:5", []string{"192.0.2.7" + strings.Repeat(",10.0.0.2", 40)}, "", 403},
	} {
		r := httptest.NewRequest("GET", "/v1/nodes", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header["X-Forwarded-For"] = c.header
		if r.RemoteAddr = c.from; c.forwarded != "" {
			r.Header.Set("Forwarded", c.forwarded)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, rec.Code, rec.Body, c.want)
		}
	}
}
