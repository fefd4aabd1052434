package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cli"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// shown collects what a command has printed so far.
type shown struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.buf.Write(p) }
func (s *shown) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.buf.String() }

// TestLoginWithAnIdentityProvider verifies that the command's own port receives the browser's
// redirect, passes its parameters to the server and continues with the session.
func TestLoginWithAnIdentityProvider(t *testing.T) {
	var redirect string
	var finish api.OIDCFinish
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/login/oidc":
			var in api.OIDCBegin
			_ = json.NewDecoder(r.Body).Decode(&in)
			redirect = in.Redirect
			_ = json.NewEncoder(w).Encode(api.OIDCFlow{URL: "https://id.example/authorize?provider=" + in.Provider, Flow: "flow"})
		case "/v1/login/oidc/finish":
			_ = json.NewDecoder(r.Body).Decode(&finish)
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(api.Session{Token: "bslt_ses"})
		case "/v1/whoami":
			if r.Header.Get("Authorization") != "Bearer bslt_ses" {
				t.Errorf("whoami with Authorization %q, want \"Bearer bslt_ses\"", r.Header.Get("Authorization"))
			}
			_ = json.NewEncoder(w).Encode(api.Identity{Name: "ann@example.com", Role: api.RoleAdmin})
		}
	}))
	defer s.Close()
	for _, back := range []struct {
		query string
		code  int
	}{{"?state=st&code=co", 0}, {"?state=st&error=access_denied", 5}} {
		var out, errs shown
		app := &cli.App{In: bytes.NewReader(nil), Out: &out, Err: &errs, Now: time.Now, ConfigDir: t.TempDir(),
			Getenv: func(name string) string { return map[string]string{"BASALT_SERVER": s.URL}[name] }}
		done := make(chan int, 1)
		go func() { done <- app.Run(t.Context(), []string{"login", "--oidc", "id"}) }()
		address := regexp.MustCompile(`https://id.example/authorize\?provider=id`)
		patience.Until(t, time.Minute, "the address on standard error", func() bool { return address.MatchString(errs.String()) })
		u, err := url.Parse(redirect)
		if err != nil || u.Hostname() != "127.0.0.1" {
			t.Fatalf("redirect of the sign-in = %q (%v), want one to 127.0.0.1", redirect, err)
		}
		for _, q := range []string{"", back.query} { // the first has no state and is not answered
			resp, err := http.Get(redirect + q)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		select {
		case code := <-done:
			if code != back.code {
				t.Errorf("exit code after the redirect %s = %d, want %d: %s%s", back.query, code, back.code, out.String(), errs.String())
			}
		case <-patience.After(time.Minute):
			t.Fatal("basalt login --oidc did not end within a minute after the redirect")
		}
	}
	if finish.Flow != "flow" || finish.State != "st" || finish.Code != "co" {
		t.Errorf("finish of the sign-in = %+v, want flow \"flow\", state \"st\" and code \"co\"", finish)
	}
}
