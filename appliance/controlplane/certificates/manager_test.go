package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
	"golang.org/x/crypto/acme"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

const (
	ownHost  = "cloud.example.com"
	shopHost = "portal.shop.example"
	shop     = "org-00000000005a"
	shopID   = "pdom-00000000005a"
)

// fixture is a cluster whose portals answer at one port, and an authority (Pebble) that
// resolves all names to this machine.
type fixture struct {
	*testing.T
	store   *memstore.Store
	ca      *httptest.Server
	orders  atomic.Int64 // new orders that the authority received
	refuse  atomic.Bool  // the authority answers that there were too many
	silent  atomic.Bool  // nodes do not answer challenges
	checked atomic.Int64 // challenges that nodes answered
	now     time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_AUTHZREUSE", "0")                                                 // so that each order has a challenge
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")                                            // so that orders can be counted
	f := &fixture{T: t, store: memstore.New(), now: time.Now().UTC().Add(time.Minute)} // certificates are valid from the system's time
	logger, store := log.New(io.Discard, "", 0), db.NewMemoryStore()
	authority := ca.New(logger, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: 90 * 24 * 3600}})
	front := wfe.New(logger, store, va.New(logger, 1, f.node(), true, f.resolver(), store), authority, []string{"ca.example"}, true, false, 1, 1)
	handler := front.Handler()
	f.ca = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "order-plz") {
			f.orders.Add(1)
			if f.refuse.Load() {
				w.Header().Set("Content-Type", "application/problem+json")
				w.Header().Set("Retry-After", "7200")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many new orders"}`)
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(f.ca.Close)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f.settings(api.ACMESettingsSpec{Enabled: true, AcceptTerms: true, DirectoryURL: f.ca.URL + wfe.DirectoryPath, Email: "ops@example.com",
		AccountKey: "sealed:" + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
	f.put(api.KindACMESettings, api.ACMECertificateID, "", struct{}{})
	f.put(api.KindOrganization, shop, "", api.OrganizationSpec{})
	return f
}

func (f *fixture) put(kind api.Kind, id, organization string, spec any) {
	f.Helper()
	c := api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: organization, Expect: api.AnyRevision, Data: api.Encode(spec)}
	if kind == api.KindPortalDomain {
		c.Name = shopHost
	}
	if _, err := f.store.Apply(f.Context(), api.Batch{At: f.now, Commands: []api.Command{c}}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) settings(s api.ACMESettingsSpec) {
	f.Helper()
	f.put(api.KindACMESettings, api.ACMESettingsID, "", s)
}

func (f *fixture) portal(url string) {
	f.Helper()
	f.put(api.KindMailSettings, api.MailSettingsID, "", api.MailSettingsSpec{PortalURL: url})
}

// seal and open are a stand-in for the encryption of secrets.
func seal(_ context.Context, s string) (string, error) { return "sealed:" + s, nil }

func open(_ context.Context, s string) (string, error) {
	plain, ok := strings.CutPrefix(s, "sealed:")
	if !ok {
		return "", fmt.Errorf("%.10q is not sealed", s)
	}
	return plain, nil
}

// find returns the status of a host name, as a node reads it.
func (f *fixture) find(host string) (api.CertificateStatus, error) {
	return StatusOf(f.Context(), f.store, host)
}

// node listens as a node does, and returns the port.
func (f *fixture) node() int {
	f.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if f.silent.Load() {
			return nil, fmt.Errorf("not now")
		}
		c, err := ChallengeConfig(hello, f.find, func(s string) (string, error) { return open(f.Context(), s) })
		if c != nil {
			f.checked.Add(1)
		}
		return c, err
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = c.(*tls.Conn).Handshake()
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// resolver resolves every name to this machine, and returns its address.
func (f *fixture) resolver() string {
	f.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // Pebble asks by TCP
	if err != nil {
		f.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	f.Cleanup(func() { _ = s.Shutdown() })
	return l.Addr().String()
}

// manager returns a new manager, as of a new leader.
func (f *fixture) manager() *Manager {
	return New(Options{Store: f.store, Seal: seal, Open: open, HTTP: f.ca.Client(), Now: func() time.Time { return f.now }})
}

func (f *fixture) step(m *Manager) {
	f.Helper()
	if err := m.Step(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// status returns the status of a host name, and its condition.
func (f *fixture) status(host string) (api.CertificateStatus, api.Condition) {
	f.Helper()
	st, err := f.find(host)
	if err != nil {
		f.Fatal(err)
	}
	if len(st.Conditions) == 0 {
		return st, api.Condition{}
	}
	return st, st.Conditions[0]
}

// wantIssued checks that a host name has a certificate for it, with its key.
func (f *fixture) wantIssued(host string) api.CertificateStatus {
	f.Helper()
	st, c := f.status(host)
	if !c.Status || c.Reason != api.CertificateIssued || st.ChallengeCertificate != "" || st.ChallengeKey != "" || st.Attempts != 0 {
		f.Fatalf("certificate of %s: %+v, condition %+v; want one that was issued, and no challenge", host, st, c)
	}
	key, err := open(f.Context(), st.Key)
	if err != nil {
		f.Fatalf("key of %s: %v, want a sealed one", host, err)
	}
	if end, err := api.ValidatePortalCertificate(host, api.PortalDomainSpec{Certificate: st.Certificate, Key: key}, f.now); err != nil || !end.Equal(*st.ExpiresAt) {
		f.Fatalf("certificate of %s: %v, expires %v, want %v", host, err, end, st.ExpiresAt)
	}
	return st
}

// TestCertificatesOfPortals checks that the cluster's portal and an approved name get
// certificates, each once, and that they are renewed when a third of their time is left.
func TestCertificatesOfPortals(t *testing.T) {
	f := newFixture(t)
	f.portal("https://" + ownHost + ":443")
	f.put(api.KindPortalDomain, shopID, shop, api.PortalDomainSpec{Approved: true})
	m := f.manager()
	for range 4 { // one name in each step
		f.step(m)
	}
	own, shops := f.wantIssued(ownHost), f.wantIssued(shopHost)
	if f.orders.Load() != 2 || f.checked.Load() < 2 {
		t.Errorf("%d orders and %d checked challenges for two names, want 2 orders", f.orders.Load(), f.checked.Load())
	}
	// Nothing is due before a third of the time is left; another leader goes on.
	f.now = own.ExpiresAt.Add(-own.ExpiresAt.Sub(f.now) / 3).Add(-time.Hour)
	f.step(f.manager())
	if f.orders.Load() != 2 {
		t.Error("a certificate was renewed before a third of its time was left")
	}
	f.now = f.now.Add(2 * time.Hour)
	for range 2 {
		f.step(f.manager())
	}
	if own.Certificate == f.wantIssued(ownHost).Certificate || shops.Certificate == f.wantIssued(shopHost).Certificate || f.orders.Load() != 4 {
		t.Errorf("%d orders after the renewal, want 4 and other certificates", f.orders.Load())
	}
	// Another address of the portal is another name.
	f.portal("https://other.example.com")
	f.step(f.manager())
	if st, err := f.find(ownHost); err != nil || st.HostName != "" {
		t.Errorf("status of the former address = %+v, %v; want none", st, err)
	}
	f.wantIssued("other.example.com")
}

// TestFailedRequests checks that a failure is shown with what to do, delays further requests,
// and leaves a certificate that is valid.
func TestFailedRequests(t *testing.T) {
	f := newFixture(t)
	f.put(api.KindPortalDomain, shopID, shop, api.PortalDomainSpec{Approved: true})
	f.silent.Store(true)
	f.step(f.manager())
	st, c := f.status(shopHost)
	if c.Status || c.Reason != api.CertificateFailed || !strings.Contains(c.Message, "point "+shopHost+" in DNS") || st.Attempts != 1 || st.ChallengeKey != "" {
		t.Fatalf("status = %+v, condition %+v; want a failure with what to do, and no challenge", st, c)
	}
	f.step(f.manager()) // also another leader waits
	if f.orders.Load() != 1 {
		t.Errorf("%d orders, want 1 before the delay", f.orders.Load())
	}
	f.now = *st.NextAt
	f.step(f.manager())
	again, _ := f.status(shopHost)
	if again.Attempts != 2 || again.NextAt.Sub(f.now) <= st.NextAt.Sub(f.now.Add(-20*time.Minute))/2 {
		t.Errorf("status after two failures = %+v, want a longer delay", again)
	}
	f.silent.Store(false)
	f.now = *again.NextAt
	f.step(f.manager())
	good := f.wantIssued(shopHost)
	f.silent.Store(true)
	f.now = *good.NextAt
	f.step(f.manager())
	st, c = f.status(shopHost)
	if st.Certificate != good.Certificate || !c.Status || c.Reason != api.CertificateFailed {
		t.Errorf("status after a failed renewal = %+v, condition %+v; want the certificate, still ready", st, c)
	}
}

// TestRateLimit checks that no name is requested while the authority refuses more requests.
func TestRateLimit(t *testing.T) {
	f := newFixture(t)
	f.portal("https://" + ownHost)
	f.put(api.KindPortalDomain, shopID, shop, api.PortalDomainSpec{Approved: true})
	f.refuse.Store(true)
	m := f.manager()
	for range 3 {
		f.step(m)
	}
	if f.orders.Load() != 1 {
		t.Errorf("%d orders while the authority refuses more, want 1", f.orders.Load())
	}
	st, c := f.status(ownHost) // that of the cluster is first
	if c.Reason != api.CertificateRateLimited || st.NextAt.Sub(f.now) < 2*time.Hour-time.Second {
		t.Errorf("status = %+v, condition %+v; want %s, and two hours", st, c, api.CertificateRateLimited)
	}
	f.refuse.Store(false)
	f.now = f.now.Add(3 * time.Hour)
	for range 2 {
		f.step(m)
	}
	f.wantIssued(ownHost)
	f.wantIssued(shopHost)
}

// TestOnlyProvenNames checks for which names a certificate is requested.
func TestOnlyProvenNames(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later, earlier := now.Add(time.Hour), now.Add(-time.Hour)
	on := api.ACMESettingsSpec{Enabled: true, AcceptTerms: true, DirectoryURL: "https://ca.example"}
	domain := func(name string, s api.PortalDomainSpec, st api.CertificateStatus) api.PortalDomain {
		return api.PortalDomain{Meta: api.Meta{ID: "pdom-" + name, Name: name, Organization: shop}, Spec: s, Status: st}
	}
	deleted := domain("deleted.example", api.PortalDomainSpec{Approved: true}, api.CertificateStatus{})
	deleted.Meta.DeletedAt = &earlier
	for what, x := range map[string]struct {
		s    State
		want string
	}{
		"not enabled":             {State{PortalURL: "https://" + ownHost}, ""},
		"terms not accepted":      {State{Settings: api.ACMESettingsSpec{Enabled: true}, PortalURL: "https://" + ownHost}, ""},
		"the cluster's":           {State{Settings: on, PortalURL: "https://Cloud.Example.com:8443/x"}, ownHost},
		"the cluster's, by HTTP":  {State{Settings: on, PortalURL: "http://" + ownHost}, ""},
		"an address":              {State{Settings: on, PortalURL: "https://192.0.2.1"}, ""},
		"a file":                  {State{Settings: on, PortalURL: "https://" + ownHost, OwnFile: true}, ""},
		"requested, not approved": {State{Settings: on, Domains: []api.PortalDomain{domain("a.example", api.PortalDomainSpec{}, api.CertificateStatus{})}}, ""},
		"deleted":                 {State{Settings: on, Domains: []api.PortalDomain{deleted}}, ""},
		"approved":                {State{Settings: on, Domains: []api.PortalDomain{domain("a.example", api.PortalDomainSpec{Approved: true}, api.CertificateStatus{})}}, "a.example"},
		"a reseller's that is the cluster's": {State{Settings: on, PortalURL: "https://" + ownHost,
			Domains: []api.PortalDomain{domain(ownHost, api.PortalDomainSpec{Approved: true}, api.CertificateStatus{})}}, ownHost},
		"uploaded":             {State{Settings: on, Domains: []api.PortalDomain{domain("a.example", api.PortalDomainSpec{Approved: true, Certificate: "x", ExpiresAt: &later}, api.CertificateStatus{})}}, ""},
		"uploaded and expired": {State{Settings: on, Domains: []api.PortalDomain{domain("a.example", api.PortalDomainSpec{Approved: true, Certificate: "x", ExpiresAt: &earlier}, api.CertificateStatus{})}}, "a.example"},
		"waiting":              {State{Settings: on, Domains: []api.PortalDomain{domain("a.example", api.PortalDomainSpec{Approved: true}, api.CertificateStatus{NextAt: &later})}}, ""},
		"by time": {State{Settings: on, Domains: []api.PortalDomain{domain("b.example", api.PortalDomainSpec{Approved: true}, api.CertificateStatus{NextAt: &earlier}),
			domain("a.example", api.PortalDomainSpec{Approved: true}, api.CertificateStatus{NextAt: &now}), domain("c.example", api.PortalDomainSpec{Approved: true}, api.CertificateStatus{})}}, "c.example b.example a.example"},
	} {
		var got []string
		for _, n := range due(x.s, now) {
			got = append(got, n.host)
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: certificates are requested for %v, want %q", what, got, x.want)
		}
	}
}

// TestChallengeConfig checks that only a connection of an authority, for a name whose
// challenge is being answered, gets the certificate of a challenge.
func TestChallengeConfig(t *testing.T) {
	find := func(host string) (api.CertificateStatus, error) {
		return api.CertificateStatus{HostName: "other.example"}, nil
	}
	fails := func(string) (string, error) { return "", fmt.Errorf("not reached") }
	for _, protocols := range [][]string{nil, {"h2", "http/1.1"}, {acme.ALPNProto, "h2"}} {
		if c, err := ChallengeConfig(&tls.ClientHelloInfo{ServerName: shopHost, SupportedProtos: protocols}, find, fails); c != nil || err != nil {
			t.Errorf("protocols %v: %v, %v; want an ordinary connection", protocols, c, err)
		}
	}
	if c, err := ChallengeConfig(&tls.ClientHelloInfo{ServerName: shopHost, SupportedProtos: []string{acme.ALPNProto}}, find, fails); c != nil || err == nil {
		t.Errorf("challenge of a name without a request: %v, %v; want an error", c, err)
	}
}

// TestReasonOf checks that the text of an authority cannot break a message.
func TestReasonOf(t *testing.T) {
	got := reasonOf(fmt.Errorf("a\r\nb\x00c \xff%s", strings.Repeat("ä", 1000)))
	if strings.ContainsAny(got, "\r\n\x00") || len(got) > maxReason || !strings.HasPrefix(got, "a b c ä") {
		t.Errorf("reason = %q, want one line of at most %d bytes", got, maxReason)
	}
}
