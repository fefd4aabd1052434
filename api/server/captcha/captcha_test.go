package captcha

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api/outbound"
)

var here = outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// TestVerify checks that only a provider's success is accepted, and that other
// responses are distinguished from an unsolved captcha.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string // empty: verified
	}{
		"solved":         {200, `{"success": true, "hostname": "cloud.example.com"}`, ""},
		"not solved":     {200, `{"success": false, "error-codes": ["timeout-or-duplicate"]}`, "not solved"},
		"wrong secret":   {200, `{"success": false, "error-codes": ["invalid-input-secret"]}`, "refuses the request"},
		"nonsense":       {200, `<html>`, "cannot be read"},
		"no answer":      {200, `{}`, "cannot be read"},
		"a text":         {200, `{"success": "true"}`, "cannot be read"},
		"a failure":      {500, `{"success": true}`, "status 500"},
		"a redirect":     {302, `{"success": true}`, "status 302"},
		"without an end": {200, `{"success": true, "x": "` + strings.Repeat("a", 1<<20), "captcha provider"},
	} {
		var got url.Values
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			got, _ = url.ParseQuery(string(raw))
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		err := New(here).Verify(t.Context(), s.URL, "geheim", "token")
		s.Close()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Verify = %v, want %q", name, err, c.want)
		}
		if got.Get("secret") != "geheim" || got.Get("response") != "token" {
			t.Errorf("%s: the provider received %v, want the secret and the token", name, got)
		}
	}
	for _, token := range []string{"", strings.Repeat("x", maxToken+1)} {
		if err := New(here).Verify(t.Context(), "http://127.0.0.1:1", "geheim", token); !errors.Is(err, ErrNotSolved) {
			t.Errorf("Verify of a token of %d bytes = %v, want %v", len(token), err, ErrNotSolved)
		}
	}
	if err := New(here).Verify(t.Context(), "http://127.0.0.1:1", "geheim", "token"); err == nil || errors.Is(err, ErrNotSolved) || strings.Contains(err.Error(), "geheim") {
		t.Errorf("Verify with an unreachable provider = %v, want an error other than %v", err, ErrNotSolved)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"success":true}`, `{"success":false,"error-codes":["x"]}`, `null`, `[]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if answer(raw) == nil && !strings.Contains(strings.ToLower(string(raw)), "true") {
			t.Errorf("answer(%q) is a success, want an error", raw)
		}
	})
}
