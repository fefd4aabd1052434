package server_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// provider is a minimal OpenID Connect provider: it issues codes to every caller,
// checks PKCE and the client's secret, and signs the claims that the test sets.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex // guards the rest
	claims map[string]any
	sign   *rsa.PrivateKey // nil: key
	alg    string
	again  bool    // codes are valid more than once
	page   *string // its authorization endpoint, instead of the one that works
	codes  map[string]url.Values
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, claims: map[string]any{}, codes: map[string]url.Values{}, alg: "RS256"}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		page := p.URL + "/authorize"
		if p.page != nil {
			page = *p.page
		}
		answer(map[string]any{"issuer": p.URL, "authorization_endpoint": page, "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}})
	case "/keys":
		answer(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": b64(p.key.N.Bytes()), "e": "AQAB"}}})
	case "/token":
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = r.ParseForm()
		asked, ok := p.codes[r.Form.Get("code")]
		id, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !ok || id != "basalt" || secret != "s3cret" || b64(sum[:]) != asked.Get("code_challenge") || r.Form.Get("redirect_uri") != asked.Get("redirect_uri") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			answer(map[string]any{"error": "invalid_grant"})
			return
		}
		if !p.again {
			delete(p.codes, r.Form.Get("code"))
		}
		claims := map[string]any{"iss": p.URL, "aud": "basalt", "sub": "42", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "nonce": asked.Get("nonce"),
			"email": "Ann@example.com", "email_verified": true, "name": "Ann", "groups": []string{"staff", "gpu"}}
		for k, v := range p.claims {
			claims[k] = v
		}
		answer(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token(claims)})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p *provider) token(claims map[string]any) string {
	b64 := base64.RawURLEncoding.EncodeToString
	head, _ := json.Marshal(map[string]any{"alg": p.alg, "kid": "1"})
	body, _ := json.Marshal(claims)
	text := b64(head) + "." + b64(body)
	if p.alg == "none" {
		return text + "."
	}
	key := p.key
	if p.sign != nil {
		key = p.sign
	}
	sum := sha256.Sum256([]byte(text))
	sig, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + b64(sig)
}

// visit acts as the browser at the provider: it returns the state and a code.
func (p *provider) visit(t *testing.T, to string) (state, code string) {
	t.Helper()
	u := must(t, ret(url.Parse(to))).v
	q := u.Query()
	if !strings.HasPrefix(to, p.URL+"/authorize?") || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("client_id") != "basalt" || q.Get("response_type") != "code" {
		t.Fatalf("authorization URL = %s, want the provider's with PKCE, nonce and state", to)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code = rand.Text()
	p.codes[code] = q
	return q.Get("state"), code
}

// safe seals secrets by storing them in memory.
type safe struct{ sync.Map }

func (s *safe) Seal(_ context.Context, secret string) (string, error) {
	id := "sealed:" + rand.Text()
	s.Store(id, secret)
	return id, nil
}

func (s *safe) Open(_ context.Context, sealed string) (string, error) {
	v, ok := s.Load(sealed)
	if !ok {
		return "", errors.New("not sealed here")
	}
	return v.(string), nil
}

type oidcWorld struct {
	*servertest.Env
	p       *provider
	op      *client.API
	acme    string
	skew    time.Duration
	sealing *safe
}

const portal = "https://cloud.example/login/oidc"

func newOIDCWorld(t *testing.T) *oidcWorld {
	t.Helper()
	w := &oidcWorld{p: newProvider(t), sealing: &safe{}}
	w.Env = servertest.StartWith(t, func(o *server.Options) {
		o.Secrets = w.sealing
		o.URLs.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.Now = func() time.Time { return time.Now().Add(w.skew) }
	})
	w.op = connect(t, w.Env, w.Token)
	w.acme = must(t, ret(client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"}}))).v.Meta.ID
	must(t, ret(client.Of[api.IdentityProvider](w.op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "id"}, Spec: api.IdentityProviderSpec{Issuer: w.p.URL, ClientID: "basalt",
		ClientSecret: "s3cret", Redirects: []string{portal}, Create: true, Organization: "acme",
		Grants: []api.ClaimGrant{{Claim: "groups", Value: "gpu", Grant: api.Grant{Role: api.RoleAdmin, Organization: "acme"}}}}})))
	return w
}

func (w *oidcWorld) login(t *testing.T) (api.Session, error) {
	t.Helper()
	nobody := connect(t, w.Env, "")
	f, err := nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "id", Redirect: portal})
	if err != nil {
		t.Fatal(err)
	}
	state, code := w.p.visit(t, f.URL)
	return nobody.FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: f.Flow, State: state, Code: code})
}

// TestOIDCLogin checks that a new person becomes a user with the grants of their
// claims, and that the next login finds the same user and updates the grants.
func TestOIDCLogin(t *testing.T) {
	w := newOIDCWorld(t)
	s, err := w.login(t)
	if err != nil {
		t.Fatal(err)
	}
	me := must(t, ret(connect(t, w.Env, s.Token).Whoami(t.Context()))).v
	if me.Role != api.RoleAdmin || me.Organization != w.acme || me.Name != "ann@example.com" {
		t.Errorf("identity after the login = %+v, want an admin of acme named ann@example.com", me)
	}
	users := must(t, ret(client.Of[api.User](w.op).Page(t.Context(), client.Query{}))).v.Items
	if len(users) != 1 || users[0].Meta.Organization != w.acme || users[0].Status.HasPassword {
		t.Fatalf("users after the login = %+v, want one of acme without a password", users)
	}
	// The same subject with another e-mail address is the same user.
	w.p.claims["email"] = "ann.new@example.com"
	again := must(t, ret(w.login(t))).v
	if again.Spec.User != s.Spec.User {
		t.Errorf("user after the address changed = %s, want %s", again.Spec.User, s.Spec.User)
	}
	// When the user leaves the group, logins are refused and the old sessions end.
	w.p.claims["groups"] = []string{"staff"}
	if _, err := w.login(t); api.CodeOf(err) != api.CodeForbidden {
		t.Error(err)
	}
	if _, err := connect(t, w.Env, s.Token).Whoami(t.Context()); api.CodeOf(err) != api.CodeUnauthenticated {
		t.Error(err)
	}
	// The user is disabled, then deleted.
	w.p.claims["groups"] = "gpu"
	must(t, ret(w.login(t)))
	u := must(t, ret(client.Of[api.User](w.op).Get(t.Context(), string(s.Spec.User), client.Query{}))).v
	u.Spec.Disabled = true
	must(t, ret(client.Of[api.User](w.op).Update(t.Context(), u.Meta.ID, u)))
	if _, err := w.login(t); api.CodeOf(err) != api.CodeForbidden {
		t.Error(err)
	}
	must(t, ret(client.Of[api.User](w.op).Delete(t.Context(), u.Meta.ID)))
	if other := must(t, ret(w.login(t))).v; other.Spec.User == s.Spec.User {
		t.Error("login after the user was deleted has the deleted user's ID, want a new user")
	}
}

// TestOIDCRefusals checks that invalid tokens, logins and users are refused.
func TestOIDCRefusals(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*oidcWorld)
		code   api.Code
	}{
		"bad signature":   {func(w *oidcWorld) { w.p.sign = other }, api.CodeUnauthenticated},
		"no signature":    {func(w *oidcWorld) { w.p.alg = "none" }, api.CodeUnauthenticated},
		"wrong nonce":     {func(w *oidcWorld) { w.p.claims["nonce"] = "another" }, api.CodeUnauthenticated},
		"no nonce":        {func(w *oidcWorld) { w.p.claims["nonce"] = nil }, api.CodeUnauthenticated},
		"wrong audience":  {func(w *oidcWorld) { w.p.claims["aud"] = "shop" }, api.CodeUnauthenticated},
		"another party's": {func(w *oidcWorld) { w.p.claims["aud"] = []string{"shop", "basalt"}; w.p.claims["azp"] = "shop" }, api.CodeUnauthenticated},
		"wrong issuer":    {func(w *oidcWorld) { w.p.claims["iss"] = "https://evil.example" }, api.CodeUnauthenticated},
		"expired":         {func(w *oidcWorld) { w.p.claims["exp"] = time.Now().Add(-time.Hour).Unix() }, api.CodeUnauthenticated},
		"not yet":         {func(w *oidcWorld) { w.p.claims["nbf"] = time.Now().Add(time.Hour).Unix() }, api.CodeUnauthenticated},
		"no subject":      {func(w *oidcWorld) { w.p.claims["sub"] = "" }, api.CodeUnauthenticated},
		"unverified":      {func(w *oidcWorld) { w.p.claims["email_verified"] = false }, api.CodeUnauthenticated},
		"not said":        {func(w *oidcWorld) { w.p.claims["email_verified"] = nil }, api.CodeUnauthenticated},
		"no e-mail":       {func(w *oidcWorld) { w.p.claims["email"] = "" }, api.CodeUnauthenticated},
		"no group":        {func(w *oidcWorld) { w.p.claims["groups"] = []string{"gpus"} }, api.CodeForbidden},
		"taken": {func(w *oidcWorld) {
			_, _ = client.Of[api.User](w.op).Create(context.Background(), api.User{Meta: api.Meta{Name: "ann@example.com"}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}})
		}, api.CodeExists},
		"makes nobody": {func(w *oidcWorld) {
			p, _ := client.Of[api.IdentityProvider](w.op).Get(context.Background(), "id", client.Query{})
			p.Spec.Create = false
			_, _ = client.Of[api.IdentityProvider](w.op).Update(context.Background(), p.Meta.ID, p)
		}, api.CodeForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOIDCWorld(t)
			c.change(w)
			if s, err := w.login(t); err == nil || api.CodeOf(err) != c.code || s.Token != "" {
				t.Errorf("login = %+v, error %v; want %s and no token", s, err, c.code)
			}
		})
	}
}

// TestOIDCFlows checks that a login can be finished only by the browser that began it,
// once, and within ten minutes.
func TestOIDCFlows(t *testing.T) {
	w := newOIDCWorld(t)
	nobody := connect(t, w.Env, "")
	begin := func() (f api.OIDCFlow, state, code string) {
		f = must(t, ret(nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "id", Redirect: "http://127.0.0.1:4711/callback"}))).v
		state, code = w.p.visit(t, f.URL)
		return f, state, code
	}
	refused := func(what string, in api.OIDCFinish) {
		t.Helper()
		if _, err := nobody.FinishOIDCLogin(t.Context(), in); api.CodeOf(err) != api.CodeUnauthenticated || err == nil {
			t.Errorf("%s: error %v, want %s", what, err, api.CodeUnauthenticated)
		}
	}
	f, state, code := begin()
	other, otherState, otherCode := begin()
	refused("another state", api.OIDCFinish{Flow: f.Flow, State: otherState, Code: code})
	for _, in := range []api.OIDCFinish{{Flow: f.Flow, Code: code}, {State: state, Code: code}, {Flow: f.Flow, State: state}} {
		_, err := nobody.FinishOIDCLogin(t.Context(), in)
		wantErr(t, err, api.CodeInvalid, "flow")
	}
	refused("a made-up flow", api.OIDCFinish{Flow: "x", State: state, Code: code})
	sealed, _ := w.sealing.Seal(t.Context(), `{"state":"`+state+`","until":"2100-01-01T00:00:00Z"}`)
	refused("another sealed text", api.OIDCFinish{Flow: sealed, State: state, Code: code})
	refused("another login's code", api.OIDCFinish{Flow: f.Flow, State: state, Code: otherCode}) // the attempt uses up the code
	good := api.OIDCFinish{Flow: f.Flow, State: state, Code: code}
	must(t, ret(nobody.FinishOIDCLogin(t.Context(), good)))
	refused("the code again", good)

	// The same holds with a provider that accepts codes again.
	w.p.again = true
	f, state, code = begin()
	good = api.OIDCFinish{Flow: f.Flow, State: state, Code: code}
	must(t, ret(nobody.FinishOIDCLogin(t.Context(), good)))
	refused("the flow again", good)
	_ = other
	f, state, code = begin()
	w.skew = 11 * time.Minute
	refused("too late", api.OIDCFinish{Flow: f.Flow, State: state, Code: code})
	w.skew = 0

	for _, to := range []string{"https://evil.example", portal + "/x", "http://127.0.0.1.evil.example/", "http://localhost/", "javascript:alert(1)", "http://u@127.0.0.1/", ""} {
		if _, err := nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "id", Redirect: to}); api.CodeOf(err) != api.CodeInvalid && api.CodeOf(err) != api.CodeRateLimited {
			t.Errorf("begin a login that returns to %q: %v, want it refused", to, err)
		}
	}
}

func TestIdentityProviders(t *testing.T) {
	w := newOIDCWorld(t)
	o := must(t, ret(client.Of[api.IdentityProvider](w.op).Get(t.Context(), "id", client.Query{}))).v
	if o.Spec.ClientSecret != "" || o.Spec.Organization != w.acme || o.Spec.Grants[0].Grant.Organization != w.acme {
		t.Errorf("identity provider = %+v, want acme's ID and no secret", o)
	}
	stored := must(t, ret(w.Store.Get(t.Context(), api.KindIdentityProvider, o.Meta.ID))).v
	if strings.Contains(string(stored.Spec), "s3cret") {
		t.Errorf("stored identity provider contains the secret: %s", stored.Spec)
	}
	o = must(t, ret(client.Of[api.IdentityProvider](w.op).Update(t.Context(), o.Meta.ID, o))).v // without a secret the old one is kept
	must(t, ret(w.login(t)))
	if names := must(t, ret(connect(t, w.Env, "").LoginProviders(t.Context(), ""))).v; len(names) != 1 || names[0] != "id" {
		t.Errorf("login providers = %q, want id only", names)
	}
	for field, change := range map[string]func(*api.IdentityProviderSpec){
		"spec.issuer": func(s *api.IdentityProviderSpec) { s.Issuer = "https://other.example" }, "spec.clientId": func(s *api.IdentityProviderSpec) { s.ClientID = "" },
		"spec.redirects[0]": func(s *api.IdentityProviderSpec) { s.Redirects = []string{"http://cloud.example"} },
		"spec.grants[0].grant.role": func(s *api.IdentityProviderSpec) {
			s.Grants = []api.ClaimGrant{{Claim: "a", Value: "b", Grant: api.Grant{Role: "x"}}}
		},
		"spec.organization": func(s *api.IdentityProviderSpec) { s.Organization = "none" },
	} {
		bad := o
		change(&bad.Spec)
		_, err := client.Of[api.IdentityProvider](w.op).Update(t.Context(), o.Meta.ID, bad)
		wantErr(t, err, api.CodeInvalid, field)
	}
}

// try returns the result of a test of the provider.
func (w *oidcWorld) try(t *testing.T, as *client.API) (api.IdentityProviderTestResult, error) {
	t.Helper()
	f := must(t, ret(connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "id", Redirect: portal}))).v
	state, code := w.p.visit(t, f.URL)
	return as.TestIdentityProvider(t.Context(), "id", api.IdentityProviderTest{Flow: f.Flow, State: state, Code: code})
}

// TestTestIdentityProvider checks that a test shows what the sign-in would do, and does
// none of it.
func TestTestIdentityProvider(t *testing.T) {
	w := newOIDCWorld(t)
	w.p.claims["x"] = map[string]any{"a": 1}
	w.p.claims["long"] = strings.Repeat("é", 1000)
	r := must(t, ret(w.try(t, w.op))).v
	if r.Outcome != api.ProviderTestCreate || r.Email != "ann@example.com" || r.Subject != "42" || len(r.Grants) != 1 || r.Grants[0].Organization != w.acme {
		t.Errorf("test before the first sign-in = %+v, want create, Ann, and an admin of acme", r)
	}
	claims := map[string]string{}
	for _, c := range r.Claims {
		claims[c.Name] = strings.Join(c.Values, "|")
	}
	if claims["groups"] != "staff|gpu" || claims["x"] != `{"a":1}` || claims["long"] != strings.Repeat("é", 128) {
		t.Errorf("claims = %q, want the groups, the object as JSON, and the beginning of the long text", claims)
	}
	if users := must(t, ret(client.Of[api.User](w.op).Page(t.Context(), client.Query{}))).v.Items; len(users) != 0 {
		t.Errorf("users after a test = %+v, want none", users)
	}
	w.p.claims["groups"] = []string{"staff"}
	if r := must(t, ret(w.try(t, w.op))).v; r.Outcome != api.ProviderTestRefused || !strings.Contains(r.Reason, "no account here") || len(r.Grants) != 0 {
		t.Errorf("test without a grant = %+v, want it refused", r)
	}
	delete(w.p.claims, "groups")
	s := must(t, ret(w.login(t))).v
	ann := connect(t, w.Env, s.Token)
	if r := must(t, ret(w.try(t, w.op))).v; r.Outcome != api.ProviderTestSignIn || r.User != "ann@example.com" {
		t.Errorf("test of a known user = %+v, want a sign-in of Ann", r)
	}
	w.p.claims["groups"] = []string{"staff"}
	if r := must(t, ret(w.try(t, w.op))).v; r.Outcome != api.ProviderTestRefused || !strings.Contains(r.Reason, "no role") {
		t.Errorf("test of a user who has left the group = %+v, want it refused", r)
	}
	must(t, ret(ann.Whoami(t.Context()))) // the test has not changed the roles
	if _, err := w.try(t, ann); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("test of an operator's provider by an admin: %v, want %s", err, api.CodeNotFound)
	}
}

// TestTestIdentityProviderRefusals checks that only the provider's own sign-in is tested.
func TestTestIdentityProviderRefusals(t *testing.T) {
	w := newOIDCWorld(t)
	must(t, ret(client.Of[api.IdentityProvider](w.op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "other"}, Spec: api.IdentityProviderSpec{Issuer: "https://other.example", ClientID: "x"}})))
	f := must(t, ret(connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Provider: "id", Redirect: portal}))).v
	state, code := w.p.visit(t, f.URL)
	in := api.IdentityProviderTest{Flow: f.Flow, State: state, Code: code}
	_, err := w.op.TestIdentityProvider(t.Context(), "none", in)
	wantErr(t, err, api.CodeNotFound, "")
	_, err = w.op.TestIdentityProvider(t.Context(), "other", in)
	wantErr(t, err, api.CodeInvalid, "flow")
	_, err = w.op.TestIdentityProvider(t.Context(), "id", api.IdentityProviderTest{Flow: f.Flow, State: "x" + state, Code: code})
	wantErr(t, err, api.CodeUnauthenticated, "")
	_, err = w.op.TestIdentityProvider(t.Context(), "id", in) // the code was used
	wantErr(t, err, api.CodeUnauthenticated, "")
	_, err = w.op.TestIdentityProvider(t.Context(), "id", api.IdentityProviderTest{})
	wantErr(t, err, api.CodeInvalid, "flow")
}
