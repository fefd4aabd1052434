package appgateway

import (
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

// TestBrowserEnters has Chromium follow a link: the entrance page exchanges its
// pass for a cookie and shows the app, whose page and script it then loads with the
// cookie.
func TestBrowserEnters(t *testing.T) {
	chromium, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		t.Skip("chromium-headless-shell is not installed: make prepared installs it")
	}
	b := start(t, usual, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<p id="of">the guest</p><script src="/script.js"></script>`))
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`document.getElementById("of").textContent = "script of the guest, fragment '" + location.hash + "', cookies '" + document.cookie + "'"`))
		default:
			http.NotFound(w, r)
		}
	})
	link, _, err := b.g.Link(t.Context(), holder, demo, 8888)
	if err != nil {
		t.Fatal(err)
	}
	show := func(address string) string {
		t.Helper()
		at, err := url.Parse("https://" + b.address)
		if err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), chromium, "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--ignore-certificate-errors",
			"--host-resolver-rules=MAP *.apps.example.com "+at.Host, "--virtual-time-budget=10000", "--dump-dom", address)
		out, err := run.Output()
		if err != nil {
			t.Fatalf("chromium: %v", err)
		}
		return string(out)
	}
	if got, want := show(link), "script of the guest, fragment '', cookies ''"; !strings.Contains(got, want) {
		t.Errorf("after the link: got %s, want %q", got, want)
	}
	if got := show(home + ".basalt/enter#rubbish"); !strings.Contains(got, "The link is not valid any more") {
		t.Errorf("with another pass: got %s, want that it is not valid", got)
	}
}
