package appgateway

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api/memstore"
)

func TestHosts(t *testing.T) {
	for host, want := range map[string]Target{
		"8888-4f9c2a7be01d.apps.example.com":        {demo, 8888},
		"8888-4f9c2a7be01d.apps.example.com:7443":   {demo, 8888},
		"8888-4F9C2A7BE01D.Apps.Example.com.":       {demo, 8888},
		"65535-4f9c2a7be01d.apps.example.com":       {demo, 65535},
		"65536-4f9c2a7be01d.apps.example.com":       {},
		"0-4f9c2a7be01d.apps.example.com":           {},
		"08888-4f9c2a7be01d.apps.example.com":       {},
		"8888-4f9c2a7be01.apps.example.com":         {},
		"8888-4f9c2a7be01d.example.com":             {},
		"x.8888-4f9c2a7be01d.apps.example.com":      {},
		"8888-4f9c2a7be01d.apps.example.com.evil.x": {},
		"apps.example.com":                          {},
		"127.0.0.1":                                 {},
		"":                                          {},
	} {
		got, ok := parseHost(host, "apps.example.com")
		if got != want || ok != (want != Target{}) {
			t.Errorf("parseHost(%q) = %v, %v, want %v", host, got, ok, want)
		}
	}
}

func TestDomains(t *testing.T) {
	for s, want := range map[string]bool{"apps.example.com": true, "Apps.Example.COM.": true, "example": false, "": false, "*.example.com": false, "a..b": false, "-a.b": false, "a.b/c": false} {
		if got, ok := ParseDomain(s); ok != want {
			t.Errorf("ParseDomain(%q) = %q, %v, want %v", s, got, ok, want)
		}
	}
}

// FuzzParseHost checks that a parsed host is formatted to one that parses to the
// same.
func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"8888-4f9c2a7be01d.apps.example.com", "1-000000000000.apps.example.com:1", "x.apps.example.com", "[::1]:80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		to, ok := parseHost(host, "apps.example.com")
		if !ok {
			return
		}
		if again, ok := parseHost(hostOf(to, "apps.example.com"), "apps.example.com"); !ok || again != to {
			t.Errorf("parseHost(%q) = %v, and of its formatted address %v, %v; want the same", host, to, again, ok)
		}
	})
}

// FuzzPass checks that only a signed text is accepted as a pass.
func FuzzPass(f *testing.F) {
	keys, now := NewKeys(memstore.New(), plain{}), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := pass{Holder: holder, Target: Target{demo, 8888}, Use: toVisit, Ends: now.Add(time.Hour)}
	good, err := keys.sign(f.Context(), p)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{good, good[:len(good)-1], "a.b.c", "", "eyJhbGciOiJub25lIn0.e30."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := keys.open(t.Context(), text, toVisit, now)
		if err == nil && (got.Holder != p.Holder || got.Target != p.Target || !got.Ends.Equal(p.Ends)) {
			t.Errorf("open(%q) = %+v, want %+v or an error", text, got, p)
		}
	})
}
