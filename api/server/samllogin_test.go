package server_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

type samlWorld struct {
	*servertest.Env
	idp     *samltest.IdP
	op      *client.API
	acme    string
	skew    time.Duration
	sealing *safe
}

func newSAMLWorld(t *testing.T) *samlWorld {
	t.Helper()
	w := &samlWorld{idp: samltest.New(t), sealing: &safe{}}
	w.Env = servertest.StartWith(t, func(o *server.Options) {
		o.Secrets = w.sealing
		o.Now = func() time.Time { return time.Now().Add(w.skew) }
	})
	w.op = connect(t, w.Env, w.Token)
	w.acme = must(t, ret(client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"}}))).v.Meta.ID
	must(t, ret(w.create(t.Context(), "corp", w.idp)))
	return w
}

func (w *samlWorld) create(ctx context.Context, name string, i *samltest.IdP) (api.IdentityProvider, error) {
	return client.Of[api.IdentityProvider](w.op).Create(ctx, api.IdentityProvider{Meta: api.Meta{Name: name}, Spec: api.IdentityProviderSpec{
		Redirects: []string{portal}, Create: true, Organization: "acme",
		Grants: []api.ClaimGrant{{Claim: "groups", Value: "gpu", Grant: api.Grant{Role: api.RoleAdmin, Organization: "acme"}}},
		SAML:   &api.SAMLProvider{Metadata: i.Metadata(), EmailDomains: []string{"example.com"}}}})
}

// begin begins a login, and returns the request that the browser brings to the provider.
func (w *samlWorld) begin(t *testing.T, redirect string) (api.OIDCFlow, samltest.Request) {
	t.Helper()
	f := must(t, ret(connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "corp", Redirect: redirect}))).v
	return f, samltest.Read(t, f.URL)
}

// deliver acts as the browser with the provider's form, and returns the answer.
func (w *samlWorld) deliver(t *testing.T, provider string, form url.Values) (status int, to *url.URL, body string) {
	t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.PostForm(w.URL+"/v1/login/saml/"+provider+"/acs", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	to, err = url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, to, string(raw)
}

// code delivers a response that must be accepted, and returns what the browser brings back.
func (w *samlWorld) code(t *testing.T, r samltest.Request, response []byte) (state, code string) {
	t.Helper()
	status, to, body := w.deliver(t, "corp", samltest.Form(response, r.RelayState))
	q := to.Query()
	if status != http.StatusSeeOther || q.Get("error") != "" || q.Get("code") == "" || q.Get("state") != r.RelayState {
		t.Fatalf("answer to a valid response = %d to %s: %s; want 303 with a code", status, to, body)
	}
	return q.Get("state"), q.Get("code")
}

// login signs in with an answer that change has changed.
func (w *samlWorld) login(t *testing.T, change func(*samltest.Answer)) (api.Session, error) {
	t.Helper()
	f, r := w.begin(t, portal)
	a := samltest.To(r)
	if change != nil {
		change(&a)
	}
	_, to, _ := w.deliver(t, "corp", samltest.Form(w.idp.Response(t, a), r.RelayState))
	if e := to.Query().Get("error"); e != "" {
		return api.Session{}, api.Errorf(api.CodeUnauthenticated, "%s", e)
	}
	return connect(t, w.Env, "").FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: f.Flow, State: to.Query().Get("state"), Code: to.Query().Get("code")})
}

// TestSAMLLogin checks that a new person becomes a user with the grants of their
// attributes, and that the next login finds the same user and updates the grants.
func TestSAMLLogin(t *testing.T) {
	w := newSAMLWorld(t)
	s := must(t, ret(w.login(t, nil))).v
	me := must(t, ret(connect(t, w.Env, s.Token).Whoami(t.Context()))).v
	if me.Role != api.RoleAdmin || me.Organization != w.acme || me.Name != "ann@example.com" {
		t.Errorf("identity after the login = %+v, want an admin of acme named ann@example.com", me)
	}
	again := must(t, ret(w.login(t, func(a *samltest.Answer) { a.Attributes["email"] = []string{"ann.new@example.com"} }))).v
	if again.Spec.User != s.Spec.User {
		t.Errorf("user after the address changed = %s, want %s", again.Spec.User, s.Spec.User)
	}
	if _, err := w.login(t, func(a *samltest.Answer) { a.NameID = "u-2" }); api.CodeOf(err) != api.CodeExists {
		t.Errorf("another NameID with the same address: %v, want %s", err, api.CodeExists)
	}
	if _, err := w.login(t, func(a *samltest.Answer) { a.Attributes["groups"] = []string{"staff"} }); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("login without a group: %v, want %s", err, api.CodeForbidden)
	}
	if _, err := connect(t, w.Env, s.Token).Whoami(t.Context()); api.CodeOf(err) != api.CodeUnauthenticated {
		t.Errorf("session after the user left the group: %v, want %s", err, api.CodeUnauthenticated)
	}
}

// TestSAMLGroups checks that the attribute of groups decides memberships.
func TestSAMLGroups(t *testing.T) {
	w := newSAMLWorld(t)
	p := must(t, ret(client.Of[api.IdentityProvider](w.op).Get(t.Context(), "corp", client.Query{}))).v
	p.Spec.GroupsClaim, p.Spec.Grants = "groups", nil
	must(t, ret(client.Of[api.IdentityProvider](w.op).Update(t.Context(), p.Meta.ID, p)))
	must(t, ret(client.Of[api.Group](w.op).Create(t.Context(), api.Group{Meta: api.Meta{Name: "staff", Organization: "acme"}, Spec: api.GroupSpec{
		Grants: []api.Grant{{Role: api.RoleBilling}}, Source: api.GroupIdentityProvider, IdentityProvider: "corp", ExternalID: "staff"}})))
	many := make([]string, 700) // groups that decide nothing are not in the code
	many[0] = "staff"
	s := must(t, ret(w.login(t, func(a *samltest.Answer) { a.Attributes["groups"] = many }))).v
	if me := must(t, ret(connect(t, w.Env, s.Token).Whoami(t.Context()))).v; me.Role != api.RoleBilling {
		t.Errorf("role = %s, want that of the group, %s", me.Role, api.RoleBilling)
	}
}

// TestSAMLRefusals checks what the assertion consumer service refuses: the browser returns
// with an error, and no code.
func TestSAMLRefusals(t *testing.T) {
	for name, change := range map[string]func(*samltest.Answer){
		"not signed":   func(a *samltest.Answer) { a.SignAssertion = false },
		"audience":     func(a *samltest.Answer) { a.Audience = "https://shop.example" },
		"other domain": func(a *samltest.Answer) { a.Attributes["email"] = []string{"ceo@victim.example"} },
		"subdomain":    func(a *samltest.Answer) { a.Attributes["email"] = []string{"ann@evil.example.com"} },
		"no address":   func(a *samltest.Answer) { a.Attributes["email"] = []string{"ann"} },
		"two at signs": func(a *samltest.Answer) { a.Attributes["email"] = []string{"ann@victim.example@example.com"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSAMLWorld(t)
			if s, err := w.login(t, change); api.CodeOf(err) != api.CodeUnauthenticated || s.Token != "" {
				t.Errorf("login = %+v, error %v; want access_denied", s, err)
			}
		})
	}
}

// TestSAMLFlows checks that a response is used once, by the browser that began the login,
// within its time, and that nothing of it can be exchanged.
func TestSAMLFlows(t *testing.T) {
	w := newSAMLWorld(t)
	nobody := connect(t, w.Env, "")
	refused := func(what string, in api.OIDCFinish) {
		t.Helper()
		if s, err := nobody.FinishOIDCLogin(t.Context(), in); api.CodeOf(err) != api.CodeUnauthenticated || s.Token != "" {
			t.Errorf("%s: error %v, want %s", what, err, api.CodeUnauthenticated)
		}
	}
	f, r := w.begin(t, portal)
	response := w.idp.Response(t, samltest.To(r))
	state, code := w.code(t, r, response)
	other, otherRequest := w.begin(t, portal)
	refused("another browser's flow", api.OIDCFinish{Flow: other.Flow, State: state, Code: code})
	refused("another login's state", api.OIDCFinish{Flow: other.Flow, State: otherRequest.RelayState, Code: code})
	refused("the flow as the code", api.OIDCFinish{Flow: f.Flow, State: state, Code: f.Flow})
	refused("the code as the flow", api.OIDCFinish{Flow: code, State: state, Code: code})
	refused("a long code", api.OIDCFinish{Flow: f.Flow, State: state, Code: strings.Repeat("x", 7<<10)})

	f, r = w.begin(t, portal)
	response = w.idp.Response(t, samltest.To(r))
	state, code = w.code(t, r, response)
	good := api.OIDCFinish{Flow: f.Flow, State: state, Code: code}
	s := must(t, ret(nobody.FinishOIDCLogin(t.Context(), good))).v
	refused("the code again", good)
	state, code = w.code(t, r, response)
	refused("the response again", api.OIDCFinish{Flow: f.Flow, State: state, Code: code})
	must(t, ret(connect(t, w.Env, s.Token).Logout(t.Context())))
	refused("the response after the logout", api.OIDCFinish{Flow: f.Flow, State: state, Code: code})

	f, r = w.begin(t, portal)
	state, code = w.code(t, r, w.idp.Response(t, samltest.To(r)))
	w.skew = 3 * time.Minute
	refused("too late", api.OIDCFinish{Flow: f.Flow, State: state, Code: code})
}

// TestSAMLRelayState checks that a response goes only where its login said.
func TestSAMLRelayState(t *testing.T) {
	w := newSAMLWorld(t)
	const loopback = "http://127.0.0.1:4711/callback"
	f, r := w.begin(t, loopback)
	if len(r.RelayState) > 80 {
		t.Errorf("relay state %q has %d bytes, want at most 80", r.RelayState, len(r.RelayState))
	}
	response := w.idp.Response(t, samltest.To(r))
	status, to, _ := w.deliver(t, "corp", samltest.Form(response, r.RelayState))
	if q := to.Query(); status != http.StatusSeeOther || !strings.HasPrefix(to.String(), loopback+"?") || q.Get("code") == "" {
		t.Fatalf("answer = %d to %s, want 303 to %s with a code", status, to, loopback)
	}
	must(t, ret(connect(t, w.Env, "").FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: f.Flow, State: to.Query().Get("state"), Code: to.Query().Get("code")})))

	id, _, _ := strings.Cut(r.RelayState, ".")
	for relay, want := range map[string]int{"": 401, "x": 401, id: 401, id + ".https://evil.example/": 401, id + ".1": 401, id + ".-1": 401, id + ".http://127.0.0.1@evil.example/": 401,
		id + ".0": 303, id + ".http://127.0.0.1:1/x": 303, "other." + loopback: 303} {
		status, to, body := w.deliver(t, "corp", samltest.Form(response, relay))
		if q := to.Query(); status != want || q.Get("code") != "" || want == http.StatusSeeOther && q.Get("error") == "" || strings.Contains(to.Host, "evil") {
			t.Errorf("relay state %q: %d to %s %s, want %d and no code", relay, status, to, body, want)
		}
	}
	for _, to := range []string{"https://evil.example", portal + "/x", "http://127.0.0.1:1/" + strings.Repeat("x", 60), ""} {
		_, err := connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "corp", Redirect: to})
		wantErr(t, err, api.CodeInvalid, "redirect")
	}
}

// TestSAMLForms checks requests that are not a provider's form.
func TestSAMLForms(t *testing.T) {
	w := newSAMLWorld(t)
	must(t, ret(client.Of[api.IdentityProvider](w.op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "oidc"}, Spec: api.IdentityProviderSpec{Issuer: "https://id.example", ClientID: "basalt"}})))
	_, r := w.begin(t, portal)
	good := samltest.Form(w.idp.Response(t, samltest.To(r)), r.RelayState)
	for name, c := range map[string]struct {
		provider, kind, form string
		want                 int
	}{
		"no provider":   {"none", formType, good.Encode(), 404},
		"an OIDC one":   {"oidc", formType, good.Encode(), 404},
		"JSON":          {"corp", "application/json", "{}", 415},
		"multipart":     {"corp", "multipart/form-data; boundary=x", "--x--", 415},
		"empty":         {"corp", formType, "", 400},
		"no response":   {"corp", formType, "RelayState=x", 400},
		"two responses": {"corp", formType, good.Encode() + "&SAMLResponse=x", 400},
		"two states":    {"corp", formType, good.Encode() + "&RelayState=x", 400},
		"no base64":     {"corp", formType, "SAMLResponse=%21", 400},
		"bad escape":    {"corp", formType, "SAMLResponse=%zz", 400},
		"large":         {"corp", formType, "SAMLResponse=" + strings.Repeat("A", 900<<10), 413},
		"larger":        {"corp", formType, "SAMLResponse=" + strings.Repeat("A", 2<<20), 413},
		"response only": {"corp", formType, url.Values{"SAMLResponse": good["SAMLResponse"]}.Encode(), 401},
	} {
		resp, err := http.Post(w.URL+"/v1/login/saml/"+c.provider+"/acs", c.kind, strings.NewReader(c.form))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.want)
		}
	}
}

const formType = "application/x-www-form-urlencoded"

// TestSAMLProvidersAreApart checks that a provider that claims to be another one signs in
// nobody else's users: entity IDs prove nothing.
func TestSAMLProvidersAreApart(t *testing.T) {
	w := newSAMLWorld(t)
	must(t, ret(w.login(t, nil)))
	evil := samltest.New(t) // with the same entity ID, but another key
	must(t, ret(w.create(t.Context(), "evil", evil)))
	f := must(t, ret(connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "evil", Redirect: portal}))).v
	r := samltest.Read(t, f.URL)
	response := evil.Response(t, samltest.To(r))
	if _, to, _ := w.deliver(t, "corp", samltest.Form(response, r.RelayState)); to.Query().Get("code") != "" {
		t.Errorf("a response of another provider has a code: %s", to)
	}
	_, to, _ := w.deliver(t, "evil", samltest.Form(response, r.RelayState))
	s, err := connect(t, w.Env, "").FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: f.Flow, State: r.RelayState, Code: to.Query().Get("code")})
	if api.CodeOf(err) != api.CodeExists || s.Token != "" {
		t.Errorf("login by another provider with the same entity ID = %+v, error %v; want %s", s, err, api.CodeExists)
	}
}

// TestSAMLProviders checks what is stored of a provider, and which changes are refused.
func TestSAMLProviders(t *testing.T) {
	w := newSAMLWorld(t)
	all := client.Of[api.IdentityProvider](w.op)
	o := must(t, ret(all.Get(t.Context(), "corp", client.Query{}))).v
	want := api.SAMLProvider{BaseURL: "https://cloud.example", SignOnURL: w.idp.SignOnURL, Certificates: []string{w.idp.PEM()}, NameIDFormat: api.NameIDPersistent, EmailAttribute: "email", EmailDomains: []string{"example.com"}}
	if got := *o.Spec.SAML; o.Spec.Issuer != w.idp.EntityID || string(api.Encode(got)) != string(api.Encode(want)) {
		t.Errorf("provider = %s %+v, want %s %+v", o.Spec.Issuer, got, w.idp.EntityID, want)
	}
	o = must(t, ret(all.Update(t.Context(), o.Meta.ID, o))).v
	other := samltest.New(t)
	other.EntityID = "https://other.example"
	for field, change := range map[string]func(*api.IdentityProviderSpec){
		"spec.saml":                 func(s *api.IdentityProviderSpec) { s.SAML, s.ClientID = nil, "x" },
		"spec.issuer":               func(s *api.IdentityProviderSpec) { s.Issuer = "urn:other" },
		"spec.saml.metadata":        func(s *api.IdentityProviderSpec) { s.SAML.Metadata = other.Metadata() },
		"spec.clientSecret":         func(s *api.IdentityProviderSpec) { s.ClientSecret = "x" },
		"spec.scopes":               func(s *api.IdentityProviderSpec) { s.Scopes = []string{"x"} },
		"spec.saml.signOnURL":       func(s *api.IdentityProviderSpec) { s.SAML.SignOnURL = "http://idp.example" },
		"spec.saml.baseURL":         func(s *api.IdentityProviderSpec) { s.SAML.BaseURL = "https://cloud.example/x" },
		"spec.saml.nameIdFormat":    func(s *api.IdentityProviderSpec) { s.SAML.NameIDFormat = "transient" },
		"spec.saml.nameAttribute":   func(s *api.IdentityProviderSpec) { s.SAML.NameAttribute = "\x00" },
		"spec.saml.certificates":    func(s *api.IdentityProviderSpec) { s.SAML.Certificates = nil },
		"spec.saml.certificates[0]": func(s *api.IdentityProviderSpec) { s.SAML.Certificates = []string{"x"} },
		"spec.saml.emailDomains":    func(s *api.IdentityProviderSpec) { s.SAML.EmailDomains = nil },
		"spec.saml.emailDomains[0]": func(s *api.IdentityProviderSpec) { s.SAML.EmailDomains = []string{"@"} },
	} {
		bad, c := o, *o.Spec.SAML
		bad.Spec.SAML = &c
		change(&bad.Spec)
		_, err := all.Update(t.Context(), o.Meta.ID, bad)
		wantErr(t, err, api.CodeInvalid, field)
	}
	next := samltest.New(t) // the provider has changed its key
	o.Spec.SAML.Metadata = next.Metadata()
	if o = must(t, ret(all.Update(t.Context(), o.Meta.ID, o))).v; o.Spec.SAML.Certificates[0] != next.PEM() {
		t.Errorf("certificate after new metadata = %s, want the new one", o.Spec.SAML.Certificates[0])
	}
	var b strings.Builder
	must(t, connect(t, w.Env, "").SAMLMetadata(t.Context(), "corp", &b))
	if !strings.Contains(b.String(), `entityID="https://cloud.example/v1/login/saml/corp/metadata"`) {
		t.Errorf("metadata = %s, want the entity ID of corp", b.String())
	}
}
