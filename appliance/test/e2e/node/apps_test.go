package node_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/appliance/test/kit/testcert"
)

const appDomain = "apps.example.com"

// appGate is the app gateway's port and certificate.
type appGate struct {
	address string
	testcert.Files
}

func newAppGate(t *testing.T) appGate {
	t.Helper()
	return appGate{port.Address(t), testcert.Write(t, t.TempDir(), "*."+appDomain, 1)}
}

func (g appGate) flags() []string {
	return []string{"--app-listen", g.address, "--app-domain", appDomain, "--app-port", "443", "--app-cert", g.Cert, "--app-key", g.Key}
}

// browser returns a client with cookies that resolves all names to the gateway.
func (g appGate) browser(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: g.Roots}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", g.address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport, Jar: jar}
}

// appGateway: a user of the project opens a web server of the Debian guest, by a link and by a
// token; users of other projects cannot.
func appGateway(t *testing.T, w *world) {
	session := w.user(t, "ben@example.com", api.Grant{Role: api.RoleMember, Project: "one"})
	stranger := w.user(t, "eva@example.com", api.Grant{Role: api.RoleMember, Project: "two"})
	w.mustCLI(session, "instance", "shell", "main", "--", "cd /etc && (setsid python3 -m http.server 8000 >/dev/null 2>&1 </dev/null &)")
	link := strings.TrimSpace(w.mustCLI(session, "instance", "open", "main", "--port", "8000", "-o", "json"))
	_, rest, _ := strings.Cut(link, `"url": "`)
	url, _, _ := strings.Cut(rest, `"`)
	entrance, pass, ok := strings.Cut(url, "#")
	if !ok {
		t.Fatalf("link = %s, want a URL with a fragment", link)
	}
	home := strings.TrimSuffix(entrance, ".basalt/enter")
	ask := func(browser *http.Client, method, url, body, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(w.ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	ben := w.apps.browser(t)
	if status, text := ask(ben, "GET", home+"hostname", "", ""); status != http.StatusUnauthorized {
		t.Errorf("GET without a visit of the link = %d, %q, want %d", status, text, http.StatusUnauthorized)
	}
	if status, text := ask(ben, "POST", entrance, pass, ""); status != http.StatusNoContent {
		t.Fatalf("POST of the link's pass = %d, %q, want %d", status, text, http.StatusNoContent)
	}
	patience.Until(t, time.Minute, "the guest's server", func() bool {
		status, text := ask(ben, "GET", home+"hostname", "", "")
		return status == http.StatusOK && text == "main\n"
	})
	if status, text := ask(w.apps.browser(t), "GET", home+"hostname", "", session); status != http.StatusOK || text != "main\n" {
		t.Errorf("GET with a token = %d, %q, want 200 and the host name", status, text)
	}
	if status, text := ask(w.apps.browser(t), "GET", home+"hostname", "", stranger); status != http.StatusNotFound {
		t.Errorf("GET by a user of another project = %d, %q, want %d", status, text, http.StatusNotFound)
	}
	if trail := w.mustCLI(operatorToken(t, w), "audit", "list", "--actor", "ben@example.com"); !strings.Contains(trail, "OpenInstanceApp") {
		t.Errorf("audit log does not contain OpenInstanceApp:\n%s", trail)
	}
	c, err := client.New(client.Options{Server: "http://" + w.listen, Token: session})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Logout(w.ctx); err != nil {
		t.Fatal(err)
	}
	if status, text := ask(ben, "GET", home+"hostname", "", ""); status != http.StatusUnauthorized {
		t.Errorf("GET after the session has ended = %d, %q, want %d", status, text, http.StatusUnauthorized)
	}
}
