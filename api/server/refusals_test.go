package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// TestRefusedSAMLSignIns checks that why responses were refused is listed, with what was found
// and wanted, for as long as it is of use.
func TestRefusedSAMLSignIns(t *testing.T) {
	w := newSAMLWorld(t)
	refused := func(change func(*samltest.Answer)) api.RefusedSignIn {
		t.Helper()
		if _, err := w.login(t, change); err == nil {
			t.Fatal("login succeeded, want it refused")
		}
		return must(t, ret(w.op.RefusedSignIns(t.Context(), "corp"))).v.Items[0]
	}
	for name, c := range map[string]struct {
		change    func(*samltest.Answer)
		confirmed bool
		email     string
		reason    []string
	}{
		"not signed":   {func(a *samltest.Answer) { a.SignAssertion = false }, false, "", []string{"neither the response nor the assertion is signed"}},
		"audience":     {func(a *samltest.Answer) { a.Audience = "https://shop.example" }, false, "", []string{"https://cloud.example/v1/login/saml/corp/metadata"}},
		"other domain": {func(a *samltest.Answer) { a.Attributes["email"] = []string{"ann@example.org"} }, true, "ann@example.org", []string{"example.org", "example.com"}},
		"no attribute": {func(a *samltest.Answer) { delete(a.Attributes, "email") }, true, "", []string{`"email" has 0 values, want one`, "groups"}},
		"no group":     {func(a *samltest.Answer) { a.Attributes["groups"] = nil }, true, "ann@example.com", []string{"no account here"}},
	} {
		got := refused(c.change)
		if got.Confirmed != c.confirmed || got.Email != c.email || got.Count != 1 {
			t.Errorf("%s: refusal = %+v, want confirmed %t, email %q", name, got, c.confirmed, c.email)
		}
		for _, part := range c.reason {
			if !strings.Contains(got.Reason, part) {
				t.Errorf("%s: reason = %q, want %q in it", name, got.Reason, part)
			}
		}
	}
	if again := refused(func(a *samltest.Answer) { a.SignAssertion = false }); again.Count != 2 {
		t.Errorf("equal refusal = %+v, want it counted with the first", again)
	}
	w.skew = 25 * time.Hour
	if left := must(t, ret(w.op.RefusedSignIns(t.Context(), "corp"))).v.Items; len(left) != 0 {
		t.Errorf("refusals after a day = %+v, want none", left)
	}
}

// TestRefusalsByStrangers checks that requests of anybody neither write to the store, nor fill
// the list, nor displace what people of the provider met, and that their text is limited.
func TestRefusalsByStrangers(t *testing.T) {
	w := newSAMLWorld(t)
	if _, err := w.login(t, func(a *samltest.Answer) { a.Attributes["email"] = []string{"ann@example.org"} }); err == nil {
		t.Fatal("login succeeded, want it refused")
	}
	before := w.Store.Revision()
	for i := range 30 { // with three requests each: an address may send 100 at once
		text := fmt.Sprintf("<x%d\x1b[31m%s", i, strings.Repeat("\u202e", 500))
		form := url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(text + "/>"))}, "RelayState": {"guessed.0"}}
		if status, to, body := w.deliver(t, "corp", form); status != http.StatusSeeOther || to.Query().Get("error") == "" {
			t.Fatalf("response %d of a stranger: %d to %s: %s", i, status, to, body)
		}
		root := samltest.Form(fmt.Appendf(nil, "<x%d/>", i), "guessed.0")
		if status, to, _ := w.deliver(t, "none", root); status != http.StatusNotFound {
			t.Fatalf("response to a provider that does not exist: %d to %s, want 404", status, to)
		}
		if status, to, _ := w.deliver(t, "corp", root); status != http.StatusSeeOther {
			t.Fatalf("response to a provider that exists: %d to %s, want 303", status, to)
		}
	}
	if after := w.Store.Revision(); after != before {
		t.Errorf("revision after responses of strangers = %d, want %d: nothing is written", after, before)
	}
	all := must(t, ret(w.op.RefusedSignIns(t.Context(), "corp"))).v.Items
	known, others := 0, 0
	for _, x := range all {
		if x.Confirmed {
			known++
		} else {
			others++
		}
		if len(x.Reason) > 400 || strings.ContainsAny(x.Reason, "\x1b\u202e\n") {
			t.Errorf("reason = %q, want at most 400 bytes of printable characters", x.Reason)
		}
	}
	if known != 1 || others != 10 {
		t.Errorf("refusals after responses of strangers = %d confirmed and %d others, want 1 and 10", known, others)
	}
}

// TestRefusedOIDCSignIns checks what is listed of OpenID Connect, and that only the admins of
// the organization see it.
func TestRefusedOIDCSignIns(t *testing.T) {
	w := newOwners(t)
	w.p.claims["email_verified"] = false
	if _, err := w.signIn("acme", "corp"); err == nil {
		t.Fatal("login without a verified address succeeded")
	}
	all := must(t, ret(w.admin.RefusedSignIns(t.Context(), "corp"))).v
	if len(all.Items) != 1 || !all.Items[0].Confirmed || all.Items[0].Email == "" || !strings.Contains(all.Items[0].Reason, "email_verified is false, want true") {
		t.Errorf("refusals = %+v, want one of the address that is not verified", all.Items)
	}
	_, err := w.others.RefusedSignIns(t.Context(), w.corp.Meta.ID)
	wantErr(t, err, api.CodeNotFound, "")
	_, err = w.admin.RefusedSignIns(t.Context(), "id") // of the operators
	wantErr(t, err, api.CodeNotFound, "")
	if own := must(t, ret(w.others.RefusedSignIns(t.Context(), "corp"))).v.Items; len(own) != 0 {
		t.Errorf("refusals of other's provider = %+v, want none", own)
	}
	w.change(func(s *api.IdentityProviderSpec) { s.ClientSecret = "another" })
	_, err = w.signIn("acme", "corp")
	wantErr(t, err, api.CodeUnauthenticated, "")
	if got := must(t, ret(w.admin.RefusedSignIns(t.Context(), "corp"))).v.Items[0]; got.Confirmed || !strings.Contains(got.Reason, "invalid_grant") {
		t.Errorf("refusal with a wrong client secret = %+v, want the error of the provider", got)
	}
}

// TestRefusalsTellNothingOfAddresses checks that an admin learns nothing of what the address of
// an issuer, its keys and its token endpoint respond, which may be inside of the network.
func TestRefusalsTellNothingOfAddresses(t *testing.T) {
	const inside = "secret-of-the-inside"
	w := newOwners(t)
	var answers atomic.Pointer[map[string]string] // instead of the provider's, by path
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, ok := (*answers.Load())[r.URL.Path]
		if !ok {
			http.Error(rw, inside, http.StatusTeapot)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		if strings.Contains(text, inside) {
			rw.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(rw, text)
	}))
	t.Cleanup(front.Close)
	unsigned := w.p.token(map[string]any{"iss": front.URL, "aud": "basalt", "sub": "42", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()})
	metadata := string(api.Encode(map[string]any{"issuer": front.URL, "authorization_endpoint": front.URL + "/authorize", "token_endpoint": front.URL + "/token", "jwks_uri": front.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}}))
	const discovery = "/.well-known/openid-configuration"
	for i, set := range []map[string]string{
		{},
		{discovery: metadata},
		{discovery: metadata, "/token": `{"error": "` + inside + `", "error_description": "` + inside + `"}`},
		{discovery: metadata, "/token": string(api.Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": unsigned}))},
		{discovery: metadata, "/token": string(api.Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": unsigned})), "/keys": `{"x": "` + inside + `"}`},
	} {
		answers.Store(&set)
		name := fmt.Sprintf("front-%d", i)
		must(t, ret(w.make(w.admin, name, func(s *api.IdentityProviderSpec) { s.Issuer = front.URL })))
		f, err := connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: "acme", Provider: name, Redirect: ownPortal})
		if err == nil {
			state := must(t, ret(url.Parse(f.URL))).v.Query().Get("state")
			_, err = connect(t, w.Env, "").FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: f.Flow, State: state, Code: "any"})
		}
		if err == nil {
			t.Fatalf("%s: login succeeded", name)
		}
		all := must(t, ret(w.admin.RefusedSignIns(t.Context(), name))).v.Items
		if len(all) != 1 || strings.Contains(all[0].Reason, inside) || strings.Contains(all[0].Reason, "418") || !strings.Contains(all[0].Reason, "cannot be fetched") {
			t.Errorf("%s: refusals = %+v, want one without what the address has responded", name, all)
		}
	}
}

// TestRefusalsOfNodes checks that what other nodes have refused is listed as well.
func TestRefusalsOfNodes(t *testing.T) {
	at := time.Now().UTC().Add(-time.Minute)
	complete := true
	e := servertest.StartWith(t, func(o *server.Options) {
		o.Refusals = func(context.Context, string) ([]api.RefusedSignIn, bool) {
			return []api.RefusedSignIn{{At: at, Count: 1, Reason: "b"}, {At: at.Add(time.Second), Count: 2, Reason: "a"}, {At: at, Count: 3, Reason: "a"}}, complete
		}
	})
	op := connect(t, e, e.Token)
	must(t, ret(client.Of[api.IdentityProvider](op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "id"}, Spec: api.IdentityProviderSpec{Issuer: "https://id.example", ClientID: "basalt"}})))
	got := must(t, ret(op.RefusedSignIns(t.Context(), "id"))).v
	if len(got.Items) != 2 || got.Items[0].Reason != "a" || got.Items[0].Count != 5 || !got.Items[0].At.Equal(at.Add(time.Second)) || got.Incomplete {
		t.Errorf("refusals of all nodes = %+v, want a with both counts, then b", got)
	}
	complete = false
	if got := must(t, ret(op.RefusedSignIns(t.Context(), "id"))).v; !got.Incomplete {
		t.Error("refusals without a node's are not incomplete")
	}
}
