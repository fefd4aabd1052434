package server_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
)

const ownPortal = "https://cloud.example.com/login/oidc"

// owners is a world in which acme and other have OpenID Connect providers named corp, and the
// operators have one too, named id: all three with the same issuer, whose claims the test sets.
// The users of all become admins of their organization by the group gpu.
type owners struct {
	*bazaar
	p             *provider
	admin, others *client.API // of acme and other
	corp          api.IdentityProvider
}

func newOwners(t *testing.T) *owners {
	t.Helper()
	w := &owners{p: newProvider(t)}
	w.bazaar = newBazaar(t, func(o *server.Options) {
		o.URLs.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.Now = time.Now
	})
	w.admin, w.others = w.as(api.RoleAdmin, w.acme, ""), w.as(api.RoleAdmin, w.other, "")
	w.corp = must(t, ret(w.make(w.admin, "corp"))).v
	must(t, ret(w.make(w.others, "corp")))
	must(t, ret(client.Of[api.IdentityProvider](w.op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "id"}, Spec: api.IdentityProviderSpec{Issuer: w.p.URL,
		ClientID: "basalt", ClientSecret: "s3cret", Redirects: []string{portal}, Create: true, Organization: w.top,
		Grants: []api.ClaimGrant{{Claim: "groups", Value: "gpu", Grant: api.Grant{Role: api.RoleAdmin, Organization: w.top}}}}})))
	return w
}

func (w *owners) make(as *client.API, name string, change ...func(*api.IdentityProviderSpec)) (api.IdentityProvider, error) {
	s := api.IdentityProviderSpec{Issuer: w.p.URL, ClientID: "basalt", ClientSecret: "s3cret", Create: true,
		Grants: []api.ClaimGrant{{Claim: "groups", Value: "gpu", Grant: api.Grant{Role: api.RoleAdmin}}}}
	for _, f := range change {
		f(&s)
	}
	return client.Of[api.IdentityProvider](as).Create(w.t.Context(), api.IdentityProvider{Meta: api.Meta{Name: name}, Spec: s})
}

// change changes acme's provider.
func (w *owners) change(f func(*api.IdentityProviderSpec)) {
	w.t.Helper()
	p := must(w.t, ret(client.Of[api.IdentityProvider](w.admin).Get(w.t.Context(), w.corp.Meta.ID, client.Query{}))).v
	f(&p.Spec)
	must(w.t, ret(client.Of[api.IdentityProvider](w.admin).Update(w.t.Context(), p.Meta.ID, p)))
}

// signIn signs in with a provider of an organization; without one, of the operators.
func (w *owners) signIn(organization, name string) (api.Session, error) {
	w.t.Helper()
	nobody, back := connect(w.t, w.Env, ""), ownPortal
	if organization == "" {
		back = portal
	}
	f := must(w.t, ret(nobody.BeginOIDCLogin(w.t.Context(), api.OIDCBegin{Organization: organization, Provider: name, Redirect: back}))).v
	state, code := w.p.visit(w.t, f.URL)
	return nobody.FinishOIDCLogin(w.t.Context(), api.OIDCFinish{Flow: f.Flow, State: state, Code: code})
}

func (w *owners) isAdminOf(token, organization string) {
	w.t.Helper()
	me := must(w.t, ret(connect(w.t, w.Env, token).Whoami(w.t.Context()))).v
	if me.Role != api.RoleAdmin || me.Organization != organization {
		w.t.Errorf("identity after the login = %+v, want an admin of %s", me, organization)
	}
}

// TestOwnProvider checks that an admin manages a provider with which people become users of
// the organization, that nobody else sees it, and that the general sign-in page does not
// offer it.
func TestOwnProvider(t *testing.T) {
	w := newOwners(t)
	if w.corp.Meta.Organization != w.acme || w.corp.Spec.Organization != "" || w.corp.Spec.Grants[0].Grant.Organization != w.acme {
		t.Errorf("provider = %+v, want one of acme with a grant in acme", w.corp)
	}
	s := must(t, ret(w.signIn("acme", "corp"))).v
	w.isAdminOf(s.Token, w.acme)
	u := must(t, ret(client.Of[api.User](w.op).Get(t.Context(), string(s.Spec.User), client.Query{}))).v
	if u.Meta.Organization != w.acme || u.Status.Verified {
		t.Errorf("user = %+v, want one of acme whose address is not verified", u)
	}
	if again := must(t, ret(w.signIn(w.acme, "corp"))).v; again.Spec.User != s.Spec.User {
		t.Errorf("user of the second login = %s, want %s", again.Spec.User, s.Spec.User)
	}
	nobody := connect(t, w.Env, "")
	for organization, want := range map[string][]string{"": {"id"}, "acme": {"corp"}, w.other: {"corp"}, "none": {}, "rival": {}, "top/mid": {}} {
		if got := must(t, ret(nobody.LoginProviders(t.Context(), organization))).v; !slices.Equal(got, want) {
			t.Errorf("login providers of %q = %q, want %q", organization, got, want)
		}
	}
	for organization, name := range map[string]string{"": "corp", "none": "corp", "acme": "id", "rival": "corp", "top": "corp"} {
		_, err := nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: organization, Provider: name, Redirect: ownPortal})
		wantErr(t, err, api.CodeInvalid, "provider")
	}
	all := client.Of[api.IdentityProvider](w.others)
	if items := must(t, ret(all.Page(t.Context(), client.Query{}))).v.Items; len(items) != 1 || items[0].Meta.Organization != w.other {
		t.Errorf("providers that other's admin sees = %+v, want its own", items)
	}
	_, err := all.Get(t.Context(), w.corp.Meta.ID, client.Query{})
	wantErr(t, err, api.CodeNotFound, "")
	_, err = all.Update(t.Context(), w.corp.Meta.ID, w.corp)
	wantErr(t, err, api.CodeNotFound, "")
	_, err = all.Delete(t.Context(), w.corp.Meta.ID)
	wantErr(t, err, api.CodeNotFound, "")
	_, err = all.Get(t.Context(), "id", client.Query{})
	wantErr(t, err, api.CodeNotFound, "")
	for _, role := range []api.Role{api.RoleMember, api.RoleViewer} {
		_, err = w.make(w.as(role, w.acme, w.web), "mine")
		wantErr(t, err, api.CodeForbidden, "")
	}
	if got := must(t, ret(client.Of[api.IdentityProvider](w.op).Get(t.Context(), "corp", client.Query{Organization: w.other}))).v; got.Meta.Organization != w.other {
		t.Errorf("provider corp of other = %+v, want other's", got.Meta)
	}
}

// TestOwnProviderIsTested checks that the admin of the organization tests its provider, and no
// other admin does.
func TestOwnProviderIsTested(t *testing.T) {
	w := newOwners(t)
	f := must(t, ret(connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: "acme", Provider: "corp", Redirect: ownPortal}))).v
	state, code := w.p.visit(t, f.URL)
	in := api.IdentityProviderTest{Flow: f.Flow, State: state, Code: code}
	_, err := w.others.TestIdentityProvider(t.Context(), w.corp.Meta.ID, in)
	wantErr(t, err, api.CodeNotFound, "")
	r := must(t, ret(w.admin.TestIdentityProvider(t.Context(), w.corp.Meta.ID, in))).v
	if r.Outcome != api.ProviderTestCreate || len(r.Grants) != 1 || r.Grants[0].Organization != w.acme {
		t.Errorf("test = %+v, want a new user who is an admin of acme", r)
	}
}

// TestHostileOwnProvider checks that a provider whose organization decides everything that it
// says signs in nobody but people of that organization, with roles in it.
func TestHostileOwnProvider(t *testing.T) {
	t.Run("an operator's address", func(t *testing.T) {
		w := newOwners(t)
		root := w.user("root@example.com", "", api.Grant{Role: api.RoleOperator})
		w.p.claims["email"] = "root@example.com"
		s := must(t, ret(w.signIn("acme", "corp"))).v
		w.isAdminOf(s.Token, w.acme)
		if s.Spec.User == api.UserID(root.Meta.ID) {
			t.Error("the provider has signed in the operator")
		}
		// The name in the cluster is still the operator's.
		own, e := w.login(api.Credentials{Email: "root@example.com", Password: horse})
		if wanted(t, "login of the operator", e, ""); own.Spec.User != api.UserID(root.Meta.ID) {
			t.Errorf("user of the address = %s, want the operator %s", own.Spec.User, root.Meta.ID)
		}
	})
	t.Run("an address that nobody has", func(t *testing.T) {
		w := newOwners(t)
		w.p.claims["email"] = "ceo@victim.example"
		must(t, ret(w.signIn("acme", "corp")))
		w.user("ceo@victim.example", w.other, api.Grant{Role: api.RoleAdmin, Organization: w.other}) // claims it
		_, e := w.login(api.Credentials{Email: "ceo@victim.example", Password: horse})
		wanted(t, "login of the owner of the address", e, "")
	})
	t.Run("another user of the organization", func(t *testing.T) {
		w := newOwners(t)
		w.user("ann@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
		_, err := w.signIn("acme", "corp")
		wantErr(t, err, api.CodeExists, "")
	})
	t.Run("roles that were granted later", func(t *testing.T) {
		w := newOwners(t)
		for _, g := range []api.Grant{{Role: api.RoleOperator}, {Role: api.RoleReseller, Organization: w.acme}, {Role: api.RoleViewer, Organization: w.other, Project: w.theirs}} {
			s := must(t, ret(w.signIn("acme", "corp"))).v
			u := must(t, ret(client.Of[api.User](w.op).Get(t.Context(), string(s.Spec.User), client.Query{}))).v
			own := u.Spec.Grants
			u.Spec.Grants = append(slices.Clone(own), g)
			u = must(t, ret(client.Of[api.User](w.op).Update(t.Context(), u.Meta.ID, u))).v
			_, err := w.signIn("acme", "corp")
			wantErr(t, err, api.CodeForbidden, "")
			u = must(t, ret(client.Of[api.User](w.op).Get(t.Context(), u.Meta.ID, client.Query{}))).v
			if !slices.Contains(u.Spec.Grants, g) {
				t.Errorf("roles after a refused login = %+v, want %+v among them", u.Spec.Grants, g)
			}
			u.Spec.Grants = own
			must(t, ret(client.Of[api.User](w.op).Update(t.Context(), u.Meta.ID, u)))
		}
	})
	t.Run("the same issuer and subject elsewhere", func(t *testing.T) {
		w := newOwners(t)
		users := map[api.UserID]bool{}
		for organization, id := range map[string]string{"": w.top, "acme": w.acme, "other": w.other} {
			name := "corp"
			if organization == "" {
				name = "id"
			}
			s := must(t, ret(w.signIn(organization, name))).v
			w.isAdminOf(s.Token, id)
			users[s.Spec.User] = true
		}
		if len(users) != 3 {
			t.Errorf("users of one subject at three providers = %d, want 3", len(users))
		}
	})
	t.Run("groups of others", func(t *testing.T) {
		w := newOwners(t)
		w.change(func(s *api.IdentityProviderSpec) { s.GroupsClaim = "groups" })
		p := must(t, ret(client.Of[api.IdentityProvider](w.op).Get(t.Context(), "id", client.Query{}))).v
		p.Spec.GroupsClaim = "groups"
		must(t, ret(client.Of[api.IdentityProvider](w.op).Update(t.Context(), p.Meta.ID, p)))
		group := func(organization, name, provider string) api.Group {
			t.Helper()
			return must(t, ret(client.Of[api.Group](w.op).Create(t.Context(), api.Group{Meta: api.Meta{Name: name, Organization: organization}, Spec: api.GroupSpec{
				Grants: []api.Grant{{Role: api.RoleBilling}}, Source: api.GroupIdentityProvider, IdentityProvider: api.IdentityProviderID(provider), ExternalID: "staff"}}))).v
		}
		mine, others, operators := group("acme", "staff", "corp"), group("other", "staff", "corp"), group("top", "staff", "id")
		if mine.Spec.IdentityProvider != api.IdentityProviderID(w.corp.Meta.ID) {
			t.Errorf("provider of acme's group = %s, want acme's %s", mine.Spec.IdentityProvider, w.corp.Meta.ID)
		}
		_, err := client.Of[api.Group](w.others).Create(t.Context(), api.Group{Meta: api.Meta{Name: "g"}, Spec: api.GroupSpec{Source: api.GroupIdentityProvider, IdentityProvider: api.IdentityProviderID(w.corp.Meta.ID)}})
		wantErr(t, err, api.CodeInvalid, "spec.identityProvider")
		must(t, ret(w.signInAs("acme", api.OIDCFinish{Organization: w.acme})))
		for _, c := range []struct {
			g    api.Group
			want int
		}{{mine, 1}, {others, 0}, {operators, 0}} {
			if now := must(t, ret(client.Of[api.Group](w.op).Get(t.Context(), c.g.Meta.ID, client.Query{}))).v; len(now.Spec.Members) != c.want {
				t.Errorf("group staff of %s has %d members, want %d", now.Meta.Organization, len(now.Spec.Members), c.want)
			}
		}
	})
	t.Run("a flow of another organization", func(t *testing.T) {
		w := newOwners(t)
		nobody := connect(t, w.Env, "")
		mine := must(t, ret(nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: "acme", Provider: "corp", Redirect: ownPortal}))).v
		other := must(t, ret(nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: "other", Provider: "corp", Redirect: ownPortal}))).v
		state, code := w.p.visit(t, mine.URL)
		otherState, _ := w.p.visit(t, other.URL)
		_, err := nobody.FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: other.Flow, State: otherState, Code: code})
		wantErr(t, err, api.CodeUnauthenticated, "")
		_, err = nobody.FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: other.Flow, State: state, Code: code})
		wantErr(t, err, api.CodeUnauthenticated, "")
	})
}

// signInAs is signIn with corp and a choice of the role.
func (w *owners) signInAs(organization string, in api.OIDCFinish) (api.Session, error) {
	w.t.Helper()
	nobody := connect(w.t, w.Env, "")
	f := must(w.t, ret(nobody.BeginOIDCLogin(w.t.Context(), api.OIDCBegin{Organization: organization, Provider: "corp", Redirect: ownPortal}))).v
	in.Flow = f.Flow
	in.State, in.Code = w.p.visit(w.t, f.URL)
	return nobody.FinishOIDCLogin(w.t.Context(), in)
}

// TestOwnProviderAndDirectory checks that a user of the organization's directory is found by
// the address unless the user has roles elsewhere, and is linked to one account only.
func TestOwnProviderAndDirectory(t *testing.T) {
	w := newOwners(t)
	key := w.Key(t, api.Meta{Name: "directory", Organization: w.acme}, api.RoleAdmin)
	if rec := w.call("POST", "/scim/v2/Users", key, `{"userName":"ann@example.com","active":true}`); rec.Code != 201 {
		t.Fatalf("provision a user: %d %s, want 201", rec.Code, rec.Body)
	}
	u := must(t, ret(client.Of[api.User](w.op).Get(t.Context(), "ann@example.com", client.Query{}))).v
	u.Spec.Grants = []api.Grant{{Role: api.RoleOperator}}
	u = must(t, ret(client.Of[api.User](w.op).Update(t.Context(), u.Meta.ID, u))).v
	_, err := w.signIn("acme", "corp")
	wantErr(t, err, api.CodeForbidden, "")
	u.Spec.Grants = nil
	must(t, ret(client.Of[api.User](w.op).Update(t.Context(), u.Meta.ID, u)))
	for _, subject := range []string{"1", "2", "3", "1"} {
		w.p.claims["sub"] = subject
		if s := must(t, ret(w.signIn("acme", "corp"))).v; s.Spec.User != api.UserID(u.Meta.ID) {
			t.Errorf("user of subject %s = %s, want the provisioned one, %s", subject, s.Spec.User, u.Meta.ID)
		}
	}
	links := must(t, ret(w.Store.List(t.Context(), api.ListQuery{Kind: api.KindExternalIdentity, Project: u.Meta.ID, Limit: 10}))).v.Items
	if len(links) != 1 {
		t.Errorf("links of the user = %d, want 1", len(links))
	}
}

// TestOwnProviderSpecs checks what an admin cannot configure.
func TestOwnProviderSpecs(t *testing.T) {
	w := newOwners(t)
	for _, c := range []struct {
		field  string
		change func(*api.IdentityProviderSpec)
	}{
		{"spec.redirects", func(s *api.IdentityProviderSpec) { s.Redirects = []string{"https://evil.example/login/oidc"} }},
		{"spec.organization", func(s *api.IdentityProviderSpec) { s.Organization = "acme" }},
		{"spec.grants[0].grant.role", func(s *api.IdentityProviderSpec) { s.Grants[0].Grant = api.Grant{Role: api.RoleOperator} }},
		{"spec.grants[0].grant.role", func(s *api.IdentityProviderSpec) { s.Grants[0].Grant = api.Grant{Role: api.RoleReseller} }},
		{"spec.grants[0].grant.organization", func(s *api.IdentityProviderSpec) { s.Grants[0].Grant.Organization = w.other }},
		{"spec.grants[0].grant.project", func(s *api.IdentityProviderSpec) {
			s.Grants[0].Grant = api.Grant{Role: api.RoleMember, Project: w.theirs}
		}},
		{"spec.saml.baseURL", func(s *api.IdentityProviderSpec) {
			*s = api.IdentityProviderSpec{SAML: &api.SAMLProvider{Metadata: samltest.New(t).Metadata(), EmailDomains: []string{"example.com"}, BaseURL: "https://evil.example"}}
		}},
	} {
		_, err := w.make(w.admin, "bad", c.change)
		wantErr(t, err, api.CodeInvalid, c.field)
	}
	_, err := w.make(w.op, "bad", func(s *api.IdentityProviderSpec) { s.Grants[0].Grant = api.Grant{Role: api.RoleOperator} })
	must(t, struct{}{}, err) // an operator's may
	_, err = client.Of[api.IdentityProvider](w.admin).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "bad", Organization: w.other}, Spec: w.corp.Spec})
	if err == nil {
		t.Error("an admin of acme has created a provider of other")
	}
	for n := range 7 { // one exists
		must(t, ret(w.make(w.admin, "more-"+string(rune('a'+n)))))
	}
	if _, err := w.make(w.admin, "one-more"); api.CodeOf(err) != api.CodeQuota {
		t.Errorf("the ninth provider: %v, want %s", err, api.CodeQuota)
	}
}

// TestOwnProviderRedirects checks that browsers return to the portals of the organization
// only: that of the cluster and those of its resellers.
func TestOwnProviderRedirects(t *testing.T) {
	w := newOwners(t)
	w.approved(w.top, "portal.top.example")
	w.approved(w.rival, "portal.rival.example")
	must(t, ret(w.make(connect(t, w.Env, w.Key(t, api.Meta{Name: "low", Organization: w.low}, api.RoleAdmin)), "corp")))
	nobody := connect(t, w.Env, "")
	for _, c := range []struct {
		organization, to string
		ok               bool
	}{
		{"acme", ownPortal, true}, {"acme", "http://127.0.0.1:4711/callback", true}, {"acme", portal, false}, {"acme", "https://evil.example/login/oidc", false},
		{"acme", "https://portal.top.example/login/oidc", false}, {"acme", ownPortal + "/x", false}, {"acme", "https://cloud.example.com", false},
		{w.low, "https://portal.top.example/login/oidc", true}, {"top/mid/low", ownPortal, true}, {w.low, "https://portal.rival.example/login/oidc", false},
	} {
		_, err := nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: c.organization, Provider: "corp", Redirect: c.to})
		if c.ok {
			must(t, struct{}{}, err)
			continue
		}
		wantErr(t, err, api.CodeInvalid, "redirect")
	}
}

// TestHostilePages checks that browsers are not sent to an address of the provider's metadata
// that would run in the portal.
func TestHostilePages(t *testing.T) {
	w := newOwners(t)
	for _, page := range []string{"javascript:alert(1)//", "data:text/html,x", "https:", "//evil.example/", ""} {
		hostile := newProvider(t)
		hostile.page = &page
		name := "hostile-" + hostile.URL[strings.LastIndexByte(hostile.URL, ':')+1:]
		p := must(t, ret(w.make(w.admin, name, func(s *api.IdentityProviderSpec) { s.Issuer = hostile.URL }))).v
		f, err := connect(t, w.Env, "").BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: "acme", Provider: name, Redirect: ownPortal})
		if api.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("begin at a provider whose page is %q = %+v, error %v; want %s", page, f, err, api.CodeUnavailable)
		}
		must(t, ret(client.Of[api.IdentityProvider](w.admin).Delete(t.Context(), p.Meta.ID)))
	}
}

// TestOwnProvidersEndWithOrganization checks that the providers of an organization are deleted
// with it.
func TestOwnProvidersEndWithOrganization(t *testing.T) {
	w := newOwners(t)
	o := organization(t, w.op, "short", api.OrganizationSpec{})
	p := must(t, ret(client.Of[api.IdentityProvider](w.op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "corp", Organization: o.Meta.ID}, Spec: api.IdentityProviderSpec{Issuer: w.p.URL, ClientID: "basalt"}}))).v
	must(t, ret(client.Of[api.Organization](w.op).Delete(t.Context(), o.Meta.ID)))
	_, err := client.Of[api.IdentityProvider](w.op).Get(t.Context(), p.Meta.ID, client.Query{})
	wantErr(t, err, api.CodeNotFound, "")
}

// TestOwnSAMLProvider checks that the addresses of a SAML provider of an organization contain
// its ID, that responses reach it there only, and that two organizations with the same entity
// ID and NameID have different users.
func TestOwnSAMLProvider(t *testing.T) {
	w := newOwners(t)
	idp := samltest.New(t)
	saml := func(s *api.IdentityProviderSpec) {
		*s = api.IdentityProviderSpec{Create: true, Grants: s.Grants, SAML: &api.SAMLProvider{Metadata: idp.Metadata(), EmailDomains: []string{"example.com"}}}
	}
	p := must(t, ret(w.make(w.admin, "saml", saml))).v
	q := must(t, ret(w.make(w.others, "saml", saml))).v
	if p.Spec.SAML.BaseURL != "https://cloud.example.com" {
		t.Errorf("base URL = %s, want that of the portal", p.Spec.SAML.BaseURL)
	}
	sw := &samlWorld{Env: w.Env, idp: idp, op: w.op}
	nobody := connect(t, w.Env, "")
	begin := func(organization string) (api.OIDCFlow, samltest.Request) {
		f := must(t, ret(nobody.BeginOIDCLogin(t.Context(), api.OIDCBegin{Organization: organization, Provider: "saml", Redirect: ownPortal}))).v
		return f, samltest.Read(t, f.URL)
	}
	users := map[api.UserID]bool{}
	for organization, o := range map[string]api.IdentityProvider{"acme": p, "other": q} {
		f, r := begin(organization)
		answer := samltest.To(r)
		if want := "https://cloud.example.com/v1/login/saml/" + o.Meta.ID + "/acs"; answer.ACS != want {
			t.Fatalf("ACS of the request = %s, want %s", answer.ACS, want)
		}
		form := samltest.Form(idp.Response(t, answer), r.RelayState)
		for _, elsewhere := range []string{"saml", "corp", map[string]string{p.Meta.ID: q.Meta.ID, q.Meta.ID: p.Meta.ID}[o.Meta.ID]} {
			status, to, _ := sw.deliver(t, elsewhere, form)
			if to.Query().Get("code") != "" || status != http.StatusNotFound && to.Query().Get("error") == "" {
				t.Errorf("response for %s at %s: %d to %s, want it refused", o.Meta.ID, elsewhere, status, to)
			}
		}
		status, to, body := sw.deliver(t, o.Meta.ID, form)
		if status != http.StatusSeeOther || !strings.HasPrefix(to.String(), ownPortal+"?") {
			t.Fatalf("response: %d to %s %s, want 303 to the portal", status, to, body)
		}
		s := must(t, ret(nobody.FinishOIDCLogin(t.Context(), api.OIDCFinish{Flow: f.Flow, State: to.Query().Get("state"), Code: to.Query().Get("code")}))).v
		w.isAdminOf(s.Token, o.Meta.Organization)
		users[s.Spec.User] = true
	}
	if len(users) != 2 {
		t.Errorf("users of one NameID in two organizations = %d, want 2", len(users))
	}
	// Operators' providers are reached by name only.
	id := must(t, ret(client.Of[api.IdentityProvider](w.op).Create(t.Context(), api.IdentityProvider{Meta: api.Meta{Name: "cluster"}, Spec: api.IdentityProviderSpec{Redirects: []string{portal},
		SAML: &api.SAMLProvider{Metadata: idp.Metadata(), EmailDomains: []string{"example.com"}}}}))).v
	if status, _, _ := sw.deliver(t, id.Meta.ID, url.Values{"SAMLResponse": {"eA=="}}); status != http.StatusNotFound {
		t.Errorf("ACS of an operator's provider by ID: %d, want 404", status)
	}
}
