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

// Only a provider that says success is one: whatever else it does is a failure, which
// is told apart from a captcha that was not solved.
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
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if got.Get("secret") != "geheim" || got.Get("response") != "token" {
			t.Errorf("%s: the provider got %v", name, got)
		}
	}
	for _, token := range []string{"", strings.Repeat("x", maxToken+1)} {
		if err := New(here).Verify(t.Context(), "http://127.0.0.1:1", "geheim", token); !errors.Is(err, ErrNotSolved) {
			t.Errorf("a token of %d bytes: %v", len(token), err)
		}
	}
	if err := New(here).Verify(t.Context(), "http://127.0.0.1:1", "geheim", "token"); err == nil || errors.Is(err, ErrNotSolved) || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a provider that is away: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"success":true}`, `{"success":false,"error-codes":["x"]}`, `null`, `[]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if answer(raw) == nil && !strings.Contains(strings.ToLower(string(raw)), "true") {
			t.Errorf("%q is success", raw)
		}
	})
}
