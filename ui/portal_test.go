package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func packed(t *testing.T, text string) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

// fakeAPI records what it received.
var fakeAPI = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/login":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"Session","token":"bslt_ses-1_ab"}`)
	case "GET /v1/whoami":
		w.Header().Set("Got", r.Header.Get("Authorization")+"|"+r.Header.Get("Cookie")+"|"+r.RequestURI)
	case "POST /v1/logout", "DELETE /v1/instances/a/b":
		w.Header().Set("Got", r.URL.EscapedPath())
	default:
		http.Error(w, "the API: not_found", http.StatusNotFound)
	}
})

func portal(t *testing.T) http.Handler {
	return newHandler(fstest.MapFS{".gitignore": {}, "index.html.gz": packed(t, "<title>Basalt</title>"), "licenses.txt.gz": packed(t, "MIT"),
		"assets/main-1234.js.gz": packed(t, "run()"), "secret.txt": {Data: []byte("not compressed, not served")}}, fakeAPI)
}

func ask(h http.Handler, method, target string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPages(t *testing.T) {
	h := portal(t)
	for path, want := range map[string]struct{ body, kind, cache string }{
		"/":                    {"<title>Basalt</title>", "text/html; charset=utf-8", "no-cache"},
		"/login/oidc?code=1":   {"<title>Basalt</title>", "text/html; charset=utf-8", "no-cache"},
		"/assets/main-1234.js": {"run()", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		"/licenses.txt":        {"MIT", "text/plain; charset=utf-8", "no-cache"},
	} {
		r := ask(h, "GET", path)
		if got := text(t, r); r.StatusCode != 200 || got != want.body || r.Header.Get("Content-Type") != want.kind || r.Header.Get("Cache-Control") != want.cache {
			t.Errorf("GET %s = %d %q, headers %v; want %+v", path, r.StatusCode, got, r.Header, want)
		}
		r = ask(h, "GET", path, "Accept-Encoding", "br, gzip")
		z, err := gzip.NewReader(r.Body)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("GET %s with gzip accepted: %v, headers %v; want a gzip body", path, err, r.Header)
		}
		if plain, _ := io.ReadAll(z); string(plain) != want.body {
			t.Errorf("decompressed body of %s = %q, want %q", path, plain, want.body)
		}
		if again := ask(h, "GET", path, "If-None-Match", r.Header.Get("ETag"), "Accept-Encoding", "gzip"); again.StatusCode != http.StatusNotModified {
			t.Errorf("GET %s with its ETag = %d, want 304", path, again.StatusCode)
		}
		for name, value := range map[string]string{"Content-Security-Policy": Policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin"} {
			if r.Header.Get(name) != value {
				t.Errorf("%s of %s = %q, want %q", name, path, r.Header.Get(name), value)
			}
		}
		if !strings.Contains(r.Header.Get("Permissions-Policy"), "camera=()") {
			t.Errorf("headers of %s = %v, want camera=() in Permissions-Policy", path, r.Header)
		}
	}
	if r := ask(h, "GET", "/sign-up"); r.StatusCode != http.StatusOK || r.Header.Get("Content-Security-Policy") != CaptchaPolicy || r.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("GET /sign-up = %d, headers %v; want 200 with CaptchaPolicy and X-Frame-Options DENY", r.StatusCode, r.Header)
	}
	for _, never := range []string{"unsafe-inline", "unsafe-eval", "http:", " *", "data:", "https: ", "https:;"} {
		if strings.Contains(CaptchaPolicy, never) {
			t.Errorf("CaptchaPolicy = %q, want it without %q", CaptchaPolicy, never)
		}
	}
	for _, never := range []string{"unsafe-inline", "unsafe-eval", "http:", "https:", "*", "data:"} {
		if strings.Contains(Policy, never) {
			t.Errorf("Policy = %q, want it without %q", Policy, never)
		}
	}
}

func TestBrotli(t *testing.T) {
	h := newHandler(fstest.MapFS{"index.html.gz": packed(t, "<title>Basalt</title>"), "index.html.br": {Data: []byte("brotli")}}, fakeAPI)
	tags := map[string]string{}
	for accepted, want := range map[string]string{"gzip, deflate, br, zstd": "br", "BR": "br", "gzip;q=1.0, br;q=0.5": "br", "br;q=0, gzip": "gzip", "br; q=0.000, gzip": "gzip",
		"gzip": "gzip", "br;q=nothing": "", "brotli": "", "identity": "", "": ""} {
		r := ask(h, "GET", "/", "Accept-Encoding", accepted)
		if got := r.Header.Get("Content-Encoding"); got != want || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: Content-Encoding = %q, Vary = %q; want %q, Accept-Encoding", accepted, got, r.Header.Get("Vary"), want)
		}
		if want == "br" && text(t, r) != "brotli" {
			t.Errorf("Accept-Encoding %q: body is not the Brotli file", accepted)
		}
		tags[want] = r.Header.Get("ETag")
	}
	if tags["br"] == tags["gzip"] || tags["gzip"] == tags[""] {
		t.Errorf("ETags by coding = %v, want different ones", tags)
	}
	if r := ask(h, "GET", "/index.html.br"); r.StatusCode != http.StatusNotFound {
		t.Errorf("GET /index.html.br = %d, want 404", r.StatusCode)
	}
}

// TestOtherPaths verifies that paths that are not files of the portal go to the API, and that
// none reads a file of the machine.
func TestOtherPaths(t *testing.T) {
	h := portal(t)
	for _, path := range []string{"/nowhere", "/assets/", "/assets/nothing.js", "/secret.txt", "/.gitignore", "/index.html.gz", "/assets/main-1234.js.gz",
		"/..%2f..%2fetc/passwd", "/assets/..%2f..%2fgo.mod", "/assets/%2e%2e/%2e%2e/go.mod", "/portal", "/portal/index.html", "/v1/nothing"} {
		r := ask(h, "GET", path)
		for r.StatusCode/100 == 3 { // the mux cleans the path first
			r = ask(h, "GET", r.Header.Get("Location"))
		}
		if got := text(t, r); r.StatusCode != 404 || !strings.Contains(got, "not_found") {
			t.Errorf("GET %s = %d %q, want 404 from the API", path, r.StatusCode, got)
		}
	}
	if r := ask(h, "POST", "/"); r.StatusCode/100 == 2 {
		t.Errorf("POST / = %d, want no success", r.StatusCode)
	}
}

func TestMissingPortal(t *testing.T) {
	h := newHandler(fstest.MapFS{".gitignore": {}}, fakeAPI)
	r := ask(h, "GET", "/")
	if got := text(t, r); r.StatusCode != 503 || !strings.Contains(got, "make ui") {
		t.Errorf("GET / without the portal = %d %q, want 503 that names make ui", r.StatusCode, got)
	}
	if r := ask(h, "GET", "/v1/whoami"); r.StatusCode != 200 {
		t.Errorf("GET /v1/whoami without the portal = %d, want 200", r.StatusCode)
	}
	if h := Handler(fakeAPI); ask(h, "GET", "/v1/whoami").StatusCode != 200 {
		t.Error("GET /v1/whoami through Handler with the embedded files failed, want 200")
	}
}

func TestDoor(t *testing.T) {
	h := portal(t)
	same := []string{"Sec-Fetch-Site", "same-origin"}
	r := ask(h, "POST", "/portal/v1/login", same...)
	body, set := text(t, r), r.Header.Get("Set-Cookie")
	if r.StatusCode != 201 || strings.Contains(body, "bslt_") || !strings.Contains(body, `"Session"`) {
		t.Errorf("login = %d %s, want 201 with a Session without its token", r.StatusCode, body)
	}
	if set != "basalt-session=bslt_ses-1_ab; Path=/portal/; HttpOnly; SameSite=Strict" {
		t.Errorf("cookie = %q, want basalt-session with the token, HttpOnly and SameSite=Strict", set)
	}
	if r := ask(h, "POST", "https://cloud.example/portal/v1/login", same...); !strings.Contains(r.Header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("cookie over TLS = %q, want it Secure", r.Header.Get("Set-Cookie"))
	}
	r = ask(h, "GET", "/portal/v1/whoami?a=1", append(same, "Cookie", "basalt-session=bslt_ses-1_ab; other=1", "Authorization", "Bearer x")...)
	if got := r.Header.Get("Got"); got != "Bearer bslt_ses-1_ab||/v1/whoami?a=1" {
		t.Errorf("request that the API received = %q, want the token as Bearer and no cookie", got)
	}
	// /v1 itself ignores the cookie.
	if got := ask(h, "GET", "/v1/whoami", append(same, "Cookie", "basalt-session=bslt_ses-1_ab")...).Header.Get("Got"); !strings.HasPrefix(got, "|") {
		t.Errorf("request to /v1 with the cookie = %q, want no Authorization", got)
	}
	r = ask(h, "POST", "/portal/v1/logout", same...)
	if got := r.Header.Get("Set-Cookie"); !strings.Contains(got, "Max-Age=0") {
		t.Errorf("cookie after logout = %q, want Max-Age=0", got)
	}
	// Names of objects keep their escapes.
	if got := ask(h, "DELETE", "/portal/v1/instances/a%2Fb", same...).Header.Get("Got"); got != "/v1/instances/a%2Fb" {
		t.Errorf("path that the API received = %q, want /v1/instances/a%%2Fb", got)
	}
}

func TestDoorIsForOwnPages(t *testing.T) {
	h := portal(t)
	for _, c := range []struct {
		name    string
		ok      bool
		headers []string
	}{
		{"a page of ours", true, []string{"Sec-Fetch-Site", "same-origin"}},
		{"an old browser's page of ours", true, []string{"Origin", "http://example.com"}},
		{"another site", false, []string{"Sec-Fetch-Site", "cross-site"}},
		{"another site, whatever its origin says", false, []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://example.com"}},
		{"a neighbour's page", false, []string{"Sec-Fetch-Site", "same-site"}},
		{"a link or a bookmark", false, []string{"Sec-Fetch-Site", "none"}},
		{"another origin", false, []string{"Origin", "http://evil.example"}},
		{"another port", false, []string{"Origin", "http://example.com:81"}},
		{"a page without an origin", false, []string{"Origin", "null"}},
		{"a program", false, nil},
	} {
		r := ask(h, "GET", "/portal/v1/whoami", append(c.headers, "Cookie", "basalt-session=bslt_ses-1_ab")...)
		if ok := r.StatusCode == 200; ok != c.ok {
			t.Errorf("%s: status = %d, want success %v", c.name, r.StatusCode, c.ok)
		}
	}
}
