package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestPortalDomainNames(t *testing.T) {
	for _, name := range []string{"portal.example.com", "a.b", "xn--mller-kva.example", "portal.firma.internal", strings.Repeat("a", 60) + "." + strings.Repeat("b", 39)} {
		if err := ValidatePortalDomainName(name); err != nil {
			t.Errorf("name %q: %v, want it accepted", name, err)
		}
	}
	for _, name := range []string{"", "portal", "*.example.com", "Portal.example.com", "portal.example.com.", "portal.example.com:443", "portal..com", "-a.com", "a-.com", "192.0.2.1",
		"[2001:db8::1]", "müller.example", "a.localhost", "a.onion", "a.arpa", "a b.com", "a.com\n", "a.com\r\nHost: b.com", "a\x00.com", "a.com/b", "user@a.com", "a_b.com", "пример.com",
		strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 50) + "com"} {
		var e *Error
		if err := ValidatePortalDomainName(name); !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != "meta.name" {
			t.Errorf("name %q: %v, want it refused at meta.name", name, err)
		}
	}
}

func TestHostName(t *testing.T) {
	for host, want := range map[string]string{"Portal.Example.com": "portal.example.com", "portal.example.com:8443": "portal.example.com", "portal.example.com.": "portal.example.com",
		"portal.example.com.:443": "portal.example.com", "[2001:db8::1]:443": "2001:db8::1", "": "", "a:b:c": "a:b:c"} {
		if got := HostName(host); got != want {
			t.Errorf("host name of %q = %q, want %q", host, got, want)
		}
	}
}

// pair returns a certificate for names and its key.
func pair(t *testing.T, from, until time.Time, names ...string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, DNSNames: names}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func TestPortalCertificates(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hour := time.Hour
	good, key := pair(t, now.Add(-hour), now.Add(hour), "portal.example.com")
	wild, wildKey := pair(t, now.Add(-hour), now.Add(hour), "*.example.com")
	other, otherKey := pair(t, now.Add(-hour), now.Add(hour), "portal.other.example")
	old, oldKey := pair(t, now.Add(-2*hour), now, "portal.example.com")
	early, earlyKey := pair(t, now.Add(hour), now.Add(2*hour), "portal.example.com")
	for what, c := range map[string]struct{ cert, key, field string }{
		"a certificate of the name":        {good, key, ""},
		"one with an intermediate":         {good + other, key, ""},
		"a wildcard certificate":           {wild, wildKey, ""},
		"one of another name":              {other, otherKey, "spec.certificate"},
		"an expired one":                   {old, oldKey, "spec.certificate"},
		"one that is not valid yet":        {early, earlyKey, "spec.certificate"},
		"another key":                      {good, otherKey, "spec.key"},
		"no key":                           {good, "", "spec.key"},
		"text":                             {"hello", key, "spec.certificate"},
		"the key in place of it":           {key, key, "spec.certificate"},
		"a broken one":                     {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key, "spec.key"},
		"too long a certificate":           {good + strings.Repeat(" ", 64<<10), key, "spec.certificate"},
		"too long a key":                   {good, key + strings.Repeat(" ", 16<<10), "spec.key"},
		"the intermediate before the leaf": {other + good, key, "spec.key"},
	} {
		end, err := ValidatePortalCertificate("portal.example.com", PortalDomainSpec{Certificate: c.cert, Key: c.key}, now)
		var e *Error
		switch {
		case c.field == "" && (err != nil || !end.Equal(now.Add(hour))):
			t.Errorf("%s: expires %s, error %v; want %s", what, end, err, now.Add(hour))
		case c.field != "" && (!errors.As(err, &e) || e.Field != c.field):
			t.Errorf("%s: error %v, want one at %s", what, err, c.field)
		case c.field != "" && strings.Contains(err.Error(), "PRIVATE"):
			t.Errorf("%s: the error quotes the key: %v", what, err)
		}
	}
}

func TestNearestBrandingPortal(t *testing.T) {
	for _, c := range [][3]string{
		{"https://cloud.example.com", "", "https://cloud.example.com"},
		{"https://cloud.example.com", "portal.shop.example", "https://portal.shop.example"},
		{"https://cloud.example.com:8443/cloud", "portal.shop.example", "https://portal.shop.example:8443/cloud"},
		{"", "portal.shop.example", "https://portal.shop.example"},
		{"", "", ""},
	} {
		if got := (NearestBranding{Domain: c[1]}).Portal(c[0]); got != c[2] {
			t.Errorf("portal %q of a cluster at %q = %q, want %q", c[1], c[0], got, c[2])
		}
	}
}
