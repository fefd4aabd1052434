package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"image"
	"image/png"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// bazaar is a world with three levels of organizations, top, mid and low, another reseller,
// rival, and a key of each reseller.
type bazaar struct {
	*people
	safe               *safe
	top, mid, low      string
	rival              string
	topKey, midKey     string
	rivalKey, adminKey string // the latter of an admin of top
}

func newBazaar(t *testing.T, change ...func(*server.Options)) *bazaar {
	t.Helper()
	b := &bazaar{safe: &safe{}}
	b.people = newPeople(t, append(change, func(o *server.Options) { o.Secrets = b.safe })...)
	org := func(name, parent string) string {
		return organization(t, b.op, name, api.OrganizationSpec{Parent: api.OrganizationID(parent)}).Meta.ID
	}
	b.top, b.rival = org("top", ""), org("rival", "")
	b.mid = org("mid", b.top)
	b.low = org("low", b.mid)
	b.topKey = b.Key(t, api.Meta{Name: "top", Organization: b.top}, api.RoleReseller)
	b.midKey = b.Key(t, api.Meta{Name: "mid", Organization: b.mid}, api.RoleReseller)
	b.rivalKey = b.Key(t, api.Meta{Name: "rival", Organization: b.rival}, api.RoleReseller)
	b.adminKey = b.Key(t, api.Meta{Name: "admin", Organization: b.top}, api.RoleAdmin)
	mailOn(b.people)
	return b
}

func (b *bazaar) request(key, organization, name string) (api.PortalDomain, *api.Error) {
	b.t.Helper()
	return ask[api.PortalDomain](b.people, key, "POST", "/v1/portal-domains", api.PortalDomain{Meta: api.Meta{Name: name, Organization: organization}})
}

func (b *bazaar) change(key string, d api.PortalDomain) (api.PortalDomain, *api.Error) {
	b.t.Helper()
	return ask[api.PortalDomain](b.people, key, "PUT", "/v1/portal-domains/"+d.Meta.ID, d)
}

// approved requests a name and approves it.
func (b *bazaar) approved(organization, name string) api.PortalDomain {
	b.t.Helper()
	d, err := b.request(b.Token, organization, name)
	wanted(b.t, "request "+name, err, "")
	d.Spec.Approved = true
	d, err = b.change(b.Token, d)
	wanted(b.t, "approve "+name, err, "")
	return d
}

func (b *bazaar) brand(key, organization string, to api.Branding) api.Branding {
	b.t.Helper()
	out, err := ask[api.Branding](b.people, key, "PUT", "/v1/organizations/"+organization+"/branding", to)
	wanted(b.t, "set branding of "+organization, err, "")
	return out
}

// shown returns the name of the product that a portal shows before anybody signs in.
func (b *bazaar) shown(host string) string {
	b.t.Helper()
	out, err := ask[api.Branding](b.people, "", "GET", "https://"+host+"/v1/branding", nil)
	wanted(b.t, "read branding at "+host, err, "")
	return out.ProductName
}

// TestBrandingByHost checks that a portal shows the branding of the nearest reseller by the
// host name of the request, and the cluster's under every other name.
func TestBrandingByHost(t *testing.T) {
	b := newBazaar(t)
	_, err := ask[api.Branding](b.people, b.Token, "PUT", "/v1/branding", api.Branding{ProductName: "Cluster"})
	wanted(t, "set the cluster's branding", err, "")
	top := b.brand(b.topKey, b.top, api.Branding{ProductName: "Top", AccentColor: "#0b5cad", SupportEmail: "help@top.example"})
	d := b.approved(b.top, "portal.top.example")
	b.approved(b.mid, "portal.mid.example")
	_, err = b.request(b.midKey, b.mid, "waiting.mid.example")
	wanted(t, "request a name", err, "")
	check := func(want map[string]string) {
		t.Helper()
		for host, name := range want {
			if got := b.shown(host); got != name {
				t.Errorf("product at %s = %q, want %q", host, got, name)
			}
		}
	}
	check(map[string]string{"portal.top.example": "Top", "portal.top.example:8443": "Top", "PORTAL.TOP.EXAMPLE.": "Top", "portal.mid.example": "Top", // mid has no branding
		"waiting.mid.example": "Cluster", "cloud.example.com": "Cluster", "192.0.2.1": "Cluster", "unknown.example": "Cluster", "x.portal.top.example": "Cluster", "top.example": "Cluster"})
	b.brand(b.midKey, "mid", api.Branding{ProductName: "Mid"})
	check(map[string]string{"portal.top.example": "Top", "portal.mid.example": "Mid"})
	_, err = ask[api.Branding](b.people, b.topKey, "PUT", "/v1/organizations/"+b.top+"/branding", api.Branding{ProductName: "Late"})
	wanted(t, "change branding of an older revision", err, api.CodeConflict)
	// Without settings there is no branding.
	b.brand(b.topKey, b.top, api.Branding{Revision: top.Revision})
	check(map[string]string{"portal.top.example": "Cluster", "portal.mid.example": "Mid"})
	// X-Forwarded-Host is what a client says.
	r := httptest.NewRequest(http.MethodGet, "https://unknown.example/v1/branding", nil)
	r.Header.Set("X-Forwarded-Host", "portal.mid.example")
	rec := httptest.NewRecorder()
	if b.Server.ServeHTTP(rec, r); !strings.Contains(rec.Body.String(), "Cluster") {
		t.Errorf("branding with X-Forwarded-Host = %s, want the cluster's", rec.Body)
	}
	d.Spec.Approved = false
	_, err = b.change(b.Token, d)
	wanted(t, "withdraw the approval", err, "")
	check(map[string]string{"portal.top.example": "Cluster"})
	// The name of a deleted organization is answered as any other, and can be given again.
	wantDeleted := func(id string) {
		t.Helper()
		_, err := ask[api.Organization](b.people, b.Token, "DELETE", "/v1/organizations/"+id, nil)
		wanted(t, "delete "+id, err, "")
	}
	gone := organization(t, b.op, "gone", api.OrganizationSpec{}).Meta.ID
	b.brand(b.Token, gone, api.Branding{ProductName: "Gone"})
	b.approved(gone, "portal.gone.example")
	check(map[string]string{"portal.gone.example": "Gone"})
	wantDeleted(gone)
	check(map[string]string{"portal.gone.example": "Cluster"})
	b.approved(b.rival, "portal.gone.example")
}

// TestOrganizationLogo checks that a reseller's logo is shown by its portal only, with the
// headers of the cluster's.
func TestOrganizationLogo(t *testing.T) {
	b := newBazaar(t)
	b.brand(b.topKey, b.top, api.Branding{ProductName: "Top"})
	b.approved(b.top, "portal.top.example")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 32, 32))); err != nil {
		t.Fatal(err)
	}
	put := func(key, organization, body string) int {
		t.Helper()
		r := httptest.NewRequest(http.MethodPut, "/v1/organizations/"+organization+"/branding/logo", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "image/png")
		rec := httptest.NewRecorder()
		b.Server.ServeHTTP(rec, r)
		return rec.Code
	}
	for what, c := range map[string]struct {
		key, organization, body string
		status                  int
	}{
		"SVG":             {b.topKey, b.top, `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, 400},
		"too much":        {b.topKey, b.top, strings.Repeat("x", api.MaxLogoBytes+1), 400},
		"of a rival":      {b.rivalKey, b.top, picture.String(), 404},
		"of the reseller": {b.topKey, b.top, picture.String(), 200},
	} {
		if got := put(c.key, c.organization, c.body); got != c.status {
			t.Errorf("upload of a logo, %s: %d, want %d", what, got, c.status)
		}
	}
	for target, status := range map[string]int{"https://portal.top.example/v1/branding/logo": 200, "https://unknown.example/v1/branding/logo": 404} {
		rec := b.call("GET", target, "", "")
		if rec.Code != status {
			t.Errorf("logo at %s: %d, want %d", target, rec.Code, status)
		}
		if csp := rec.Header().Get("Content-Security-Policy"); status == 200 && (csp != "default-src 'none'; sandbox" || rec.Header().Get("Content-Type") != "image/png") {
			t.Errorf("logo at %s has policy %q and type %q, want those of a PNG", target, csp, rec.Header().Get("Content-Type"))
		}
	}
	if rec := b.call("GET", "/v1/organizations/top/branding/logo", b.topKey, ""); rec.Code != 200 {
		t.Errorf("own logo: %d, want 200", rec.Code)
	}
	b.call("DELETE", "/v1/organizations/top/branding/logo", b.topKey, "")
	if rec := b.call("GET", "https://portal.top.example/v1/branding/logo", "", ""); rec.Code != 404 {
		t.Errorf("logo after its deletion: %d, want 404", rec.Code)
	}
}

// TestOrganizationBrandingIsTheResellers checks who may set the branding of whom.
func TestOrganizationBrandingIsTheResellers(t *testing.T) {
	b := newBazaar(t)
	for what, c := range map[string]struct {
		key, organization string
		to                api.Branding
		code              api.Code
	}{
		"its own":                    {b.midKey, b.mid, api.Branding{ProductName: "Mid"}, ""},
		"its customer's":             {b.topKey, b.mid, api.Branding{ProductName: "Mid"}, api.CodeConflict}, // changed before
		"its reseller's":             {b.midKey, b.top, api.Branding{ProductName: "x"}, api.CodeNotFound},
		"another's":                  {b.rivalKey, b.top, api.Branding{ProductName: "x"}, api.CodeNotFound},
		"of one without customers":   {b.topKey, b.low, api.Branding{ProductName: "x"}, api.CodeInvalid},
		"by an admin":                {b.adminKey, b.top, api.Branding{ProductName: "x"}, api.CodeForbidden},
		"the cluster's":              {b.topKey, "org-000000000000", api.Branding{ProductName: "x"}, api.CodeNotFound},
		"without a name":             {b.topKey, b.top, api.Branding{SupportEmail: "a@b.example"}, api.CodeInvalid},
		"with control characters":    {b.topKey, b.top, api.Branding{ProductName: "Top\r\nBcc: eve@example.com"}, api.CodeInvalid},
		"with a script as a link":    {b.topKey, b.top, api.Branding{ProductName: "Top", SupportURL: "javascript:alert(1)"}, api.CodeInvalid},
		"with an unreadable color":   {b.topKey, b.top, api.Branding{ProductName: "Top", AccentColor: "#ffffff"}, api.CodeInvalid},
		"with a color that is style": {b.topKey, b.top, api.Branding{ProductName: "Top", AccentColor: "red;}*{"}, api.CodeInvalid},
	} {
		if what == "its customer's" {
			b.brand(b.Token, b.mid, api.Branding{Revision: b.revision(b.mid), ProductName: "Operator's"})
		}
		_, err := ask[api.Branding](b.people, c.key, "PUT", "/v1/organizations/"+c.organization+"/branding", c.to)
		if code := codeOf(err); code != c.code && (what != "its own" || code != api.CodeConflict) {
			t.Errorf("set branding, %s: %v, want %q", what, err, c.code)
		}
	}
	_, err := ask[api.Branding](b.people, b.topKey, "PUT", "/v1/branding", api.Branding{ProductName: "x"})
	wanted(t, "a reseller sets the cluster's branding", err, api.CodeForbidden)
	if got := b.shown("cloud.example.com"); got != "" {
		t.Errorf("the cluster's product = %q, want none", got)
	}
}

func (b *bazaar) revision(organization string) int64 {
	b.t.Helper()
	out, err := ask[api.Branding](b.people, b.Token, "GET", "/v1/organizations/"+organization+"/branding", nil)
	wanted(b.t, "read branding of "+organization, err, "")
	return out.Revision
}

func codeOf(e *api.Error) api.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

// TestPortalDomainsOfHostileResellers checks the names that a reseller cannot have.
func TestPortalDomainsOfHostileResellers(t *testing.T) {
	b := newBazaar(t, func(o *server.Options) { o.Apps = servertest.Apps{} })
	for _, name := range []string{"cloud.example.com", "example.com", "apps.example.com", "x.apps.example.com", "*.top.example", "localhost", "192.0.2.1", "a.localhost", "Top.example", "top.example:443",
		"top.example\r\nx", "t\x00p.example", "töp.example", "xn--a.example", "xn--0.example", "portal", "top.example/", strings.Repeat("a", 70) + ".example"} {
		for who, key := range map[string]string{"the reseller": b.topKey, "the operator": b.Token} {
			_, err := b.request(key, b.top, name)
			if err == nil || err.Code != api.CodeInvalid || err.Field != "meta.name" {
				t.Errorf("name %q requested by %s: %v, want it refused at meta.name", name, who, err)
			}
		}
	}
	d, err := b.request(b.topKey, "", "portal.top.example")
	wanted(t, "request a name", err, "")
	_, err = ask[api.PortalDomain](b.people, b.topKey, "POST", "/v1/portal-domains", api.PortalDomain{Meta: api.Meta{Name: "own.top.example"}, Spec: api.PortalDomainSpec{Approved: true}})
	wanted(t, "a reseller requests an approved name", err, api.CodeForbidden)
	for what, c := range map[string]struct {
		key    string
		change func(*api.PortalDomain)
		code   api.Code
	}{
		"approve it":              {b.topKey, func(d *api.PortalDomain) { d.Spec.Approved = true }, api.CodeForbidden},
		"approve another's":       {b.rivalKey, func(d *api.PortalDomain) { d.Spec.Approved = true }, api.CodeNotFound},
		"approve a customer's":    {b.adminKey, func(d *api.PortalDomain) { d.Spec.Approved = true }, api.CodeForbidden},
		"rename it":               {b.topKey, func(d *api.PortalDomain) { d.Meta.Name = "portal.rival.example" }, api.CodeInvalid},
		"rename it (by operator)": {b.Token, func(d *api.PortalDomain) { d.Meta.Name = "portal.rival.example" }, api.CodeInvalid},
	} {
		to := d
		c.change(&to)
		if _, err := b.change(c.key, to); codeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
	}
	_, err = b.request(b.topKey, b.rival, "rival.top.example")
	wanted(t, "request a name for another", err, api.CodeInvalid)
	_, err = b.request(b.topKey, b.low, "low.top.example")
	wanted(t, "request a name for one without customers", err, api.CodeInvalid)
	// A request blocks nobody: the operator decides whose the name is.
	mine, err := b.request(b.rivalKey, "", "portal.top.example")
	wanted(t, "request the name of another", err, "")
	d.Spec.Approved = true
	_, err = b.change(b.Token, d)
	wanted(t, "approve the name", err, "")
	mine.Spec.Approved = true
	_, err = b.change(b.Token, mine)
	wanted(t, "approve the name for another as well", err, api.CodeConflict)
	// A name that became the cluster's own after it was approved is the cluster's.
	b.brand(b.topKey, b.top, api.Branding{ProductName: "Top"})
	if got := b.shown("portal.top.example"); got != "Top" {
		t.Errorf("product = %q, want Top", got)
	}
	b.named("https://portal.top.example")
	if got := b.shown("portal.top.example"); got != "" {
		t.Errorf("product under the cluster's own name = %q, want the cluster's", got)
	}
}

// TestPortalDomainsAreLimited checks that a reseller cannot request names without limit.
func TestPortalDomainsAreLimited(t *testing.T) {
	b := newBazaar(t)
	n := 0
	for ; n < 10_000; n++ {
		if _, err := b.request(b.topKey, "", fmt.Sprintf("p%d.top.example", n)); err != nil {
			wanted(t, "one too many", err, api.CodeQuota)
			break
		}
	}
	if n != 16 {
		t.Errorf("a reseller has requested %d names, want 16", n)
	}
	_, err := b.request(b.rivalKey, "", "portal.rival.example")
	wanted(t, "request a name as another reseller", err, "")
}

// TestSignInAtAnotherResellersPortal checks that only users of a reseller and of its
// customers can sign in at its portal, and that nobody can sign up there.
func TestSignInAtAnotherResellersPortal(t *testing.T) {
	b := newBazaar(t)
	b.approved(b.top, "portal.top.example")
	b.approved(b.mid, "portal.mid.example")
	b.user("op@x.org", "", api.Grant{Role: api.RoleOperator})
	for name, org := range map[string]string{"top": b.top, "mid": b.mid, "low": b.low, "rival": b.rival} {
		b.user(name+"@x.org", org, api.Grant{Role: api.RoleAdmin, Organization: org})
	}
	for host, may := range map[string]string{"portal.top.example": "top mid low", "portal.mid.example": "mid low", "cloud.example.com": "op top mid low rival", "unknown.example": "op top mid low rival"} {
		for _, name := range []string{"op", "top", "mid", "low", "rival"} {
			want := api.CodeForbidden
			if slices.Contains(strings.Fields(may), name) {
				want = ""
			}
			_, err := ask[api.Session](b.people, "", "POST", "https://"+host+"/v1/login", api.Credentials{Email: name + "@x.org", Password: horse})
			if codeOf(err) != want {
				t.Errorf("%s signs in at %s: %v, want %q", name, host, err, want)
			}
			// Who does not know the password learns nothing.
			_, err = ask[api.Session](b.people, "", "POST", "https://"+host+"/v1/login", api.Credentials{Email: name + "@x.org", Password: "wrong password"})
			wanted(t, "a wrong password at "+host, err, api.CodeUnauthenticated)
		}
	}
	u := b.user("ann@rival.example", b.rival, api.Grant{Role: api.RoleAdmin, Organization: b.rival})
	link, err := ask[api.LoginLink](b.people, b.rivalKey, "POST", "/v1/users/"+u.Meta.ID+"/login-link", nil)
	wanted(t, "make a link", err, "")
	_, err = ask[api.Session](b.people, "", "POST", "https://portal.top.example/v1/login/link", api.LoginToken{Token: link.Token})
	wanted(t, "use the link at another's portal", err, api.CodeForbidden)
	_, err = ask[api.Session](b.people, "", "POST", "/v1/login/link", api.LoginToken{Token: link.Token})
	wanted(t, "use the link at the cluster's portal", err, "")
	_, err = ask[api.SignUpSettings](b.people, b.Token, "PUT", "/v1/sign-up-settings", api.SignUpSettings{Enabled: true})
	wanted(t, "enable sign-up", err, "")
	for host, want := range map[string]bool{"portal.top.example": false, "cloud.example.com": true} {
		got, err := ask[api.SignUpInfo](b.people, "", "GET", "https://"+host+"/v1/sign-up", nil)
		if wanted(t, "read sign-up", err, ""); got.Enabled != want {
			t.Errorf("sign-up at %s is enabled = %v, want %v", host, got.Enabled, want)
		}
	}
	_, err = ask[api.SignUpRequest](b.people, "", "POST", "https://portal.top.example/v1/sign-up", api.SignUpRequest{Email: "eve@x.org"})
	wanted(t, "sign up at a reseller's portal", err, api.CodeState)
}

// TestPasskeysOfAResellersPortal checks that passkeys belong to the portal in which they
// were made.
func TestPasskeysOfAResellersPortal(t *testing.T) {
	b := newBazaar(t)
	b.named(cloudPortal)
	b.approved(b.top, "portal.top.example")
	b.user("ann@x.org", b.top, api.Grant{Role: api.RoleAdmin, Organization: b.top})
	token := b.session("ann@x.org")
	at := func(host, path string) string { return "https://" + host + path }
	d := b.device()
	d.rp.ID, d.rp.Origin = "portal.top.example", "https://portal.top.example:8443"
	c, err := ask[api.PasskeyChallenge](b.people, token, "POST", at("portal.top.example", "/v1/passkeys"), api.PasskeyBegin{Name: "laptop", Password: horse})
	wanted(t, "begin to add a passkey", err, "")
	answer := d.made(c)
	_, err = ask[api.PasskeyAdded](b.people, token, "POST", at("cloud.example.com", "/v1/passkeys/confirm"), answer)
	wanted(t, "confirm it at another portal", err, api.CodeInvalid)
	added, err := ask[api.PasskeyAdded](b.people, token, "POST", at("portal.top.example", "/v1/passkeys/confirm"), answer)
	if wanted(t, "add a passkey", err, ""); added.Passkey.Site != "portal.top.example" {
		t.Errorf("the passkey is of %q, want portal.top.example", added.Passkey.Site)
	}
	for host, want := range map[string]api.Code{"cloud.example.com": api.CodeUnauthenticated, "portal.top.example": ""} {
		c, err := ask[api.PasskeyChallenge](b.people, "", "POST", at(host, "/v1/login/passkey"), nil)
		wanted(t, "begin a sign-in", err, "")
		_, err = ask[api.Session](b.people, "", "POST", at(host, "/v1/login/passkey/finish"), d.answer(c))
		if codeOf(err) != want {
			t.Errorf("sign in with the passkey at %s: %v, want %q", host, err, want)
		}
	}
}

// certified returns a certificate for a name that is valid around the world's time, and its
// key.
func (b *bazaar) certified(name string) api.PortalDomainSpec {
	b.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: b.clock.Now().Add(-time.Hour), NotAfter: b.clock.Now().Add(time.Hour), DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		b.t.Fatal(err)
	}
	text := func(typ string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
	}
	return api.PortalDomainSpec{Certificate: text("CERTIFICATE", der), Key: text("PRIVATE KEY", raw)}
}

// TestPortalDomainCertificate checks that a reseller sets its certificate, that the key is
// sealed and never shown, and that it is kept while the certificate is the same.
func TestPortalDomainCertificate(t *testing.T) {
	b := newBazaar(t)
	d := b.approved(b.top, "portal.top.example")
	good, other := b.certified("portal.top.example"), b.certified("portal.rival.example")
	set := func(cert, key string) (api.PortalDomain, *api.Error) {
		t.Helper()
		to := d
		to.Spec.Certificate, to.Spec.Key = cert, key
		return b.change(b.topKey, to)
	}
	stored := func() api.PortalDomainSpec {
		t.Helper()
		o, err := b.Store.Get(t.Context(), api.KindPortalDomain, d.Meta.ID)
		if err != nil {
			t.Fatal(err)
		}
		return must(t, ret(api.Decode[api.PortalDomain](o))).v.Spec
	}
	for what, c := range map[string][2]string{"of another name": {other.Certificate, other.Key}, "with another key": {good.Certificate, other.Key}, "without a key": {good.Certificate, ""}, "a key alone": {"", good.Key}} {
		if _, err := set(c[0], c[1]); codeOf(err) != api.CodeInvalid {
			t.Errorf("a certificate %s: %v, want it refused", what, err)
		}
	}
	var err *api.Error
	d, err = set(good.Certificate, good.Key)
	wanted(t, "set the certificate", err, "")
	if d.Spec.Key != "" || d.Spec.ExpiresAt == nil || !d.Spec.ExpiresAt.Equal(b.clock.Now().Add(time.Hour)) || !d.Spec.Approved {
		t.Errorf("domain = %+v, want no key, the expiry %s and the approval", d.Spec, b.clock.Now().Add(time.Hour))
	}
	was := stored().Key
	if plain, err := b.safe.Open(t.Context(), was); err != nil || plain != good.Key {
		t.Errorf("stored key = %q (%v), want the sealed key", was, err)
	}
	for what, rec := range map[string]*httptest.ResponseRecorder{"get": b.call("GET", "/v1/portal-domains/"+d.Meta.ID, b.Token, ""), "list": b.call("GET", "/v1/portal-domains", b.topKey, "")} {
		if strings.Contains(rec.Body.String(), "PRIVATE") || strings.Contains(rec.Body.String(), was) {
			t.Errorf("%s shows the key: %s", what, rec.Body)
		}
	}
	d, err = set(good.Certificate, "")
	if wanted(t, "write it again", err, ""); stored().Key != was || d.Spec.ExpiresAt == nil {
		t.Errorf("stored key after a change of something else = %q, want it kept", stored().Key)
	}
	d, err = set("", "")
	if wanted(t, "remove it", err, ""); stored().Key != "" || d.Spec.ExpiresAt != nil {
		t.Errorf("stored key after the certificate was removed = %q, want none", stored().Key)
	}
}
