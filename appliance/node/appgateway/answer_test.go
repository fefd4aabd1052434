package appgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestSecured checks which redirects lead to https.
func TestSecured(t *testing.T) {
	const host = "8888-4f9c2a7be01d.apps.example.com"
	for to, want := range map[string]string{
		"http://" + host + "/a/?b=%2F#c":            "https://" + host + "/a/?b=%2F#c",
		"http://8888-4F9C2A7BE01D.apps.example.com": "https://8888-4F9C2A7BE01D.apps.example.com",
		"https://" + host + "/a":                    "https://" + host + "/a",
		"http://example.com/":                       "http://example.com/",
		"http://" + host + ":8080/":                 "http://" + host + ":8080/",
		"/lab?":                                     "/lab?",
		"//" + host + "/":                           "//" + host + "/",
		"http://%zz":                                "http://%zz",
	} {
		if got := secured(to, host); got != want {
			t.Errorf("secured(%q) = %q, want %q", to, got, want)
		}
	}
}

// TestAnswers checks what the gateway changes in a response: a redirect to the address by
// which it connects to the app, Clear-Site-Data, and the script of a service worker.
func TestAnswers(t *testing.T) {
	b := start(t, usual, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/docs":
			http.Redirect(w, r, "http://"+r.Host+"/docs/", http.StatusTemporaryRedirect)
		case "/logout":
			w.Header().Set("Clear-Site-Data", `"cookies"`)
		case "/worker.js":
			if r.Header.Get("Accept-Encoding") == "" {
				_, _ = io.WriteString(w, "the script")
			}
		}
	})
	key := []string{"Authorization", "Bearer " + token}
	if _, h := b.want("a redirect", http.StatusTemporaryRedirect, "GET", home+"docs", "", key...); h.Get("Location") != home+"docs/" {
		t.Errorf("redirect to %q, want %s", h.Get("Location"), home+"docs/")
	}
	if _, h := b.want("a logout", http.StatusOK, "GET", home+"logout", "", key...); h.Get("Clear-Site-Data") != "" {
		t.Errorf("response with Clear-Site-Data %s, want none", h.Get("Clear-Site-Data"))
	}
	if text, _ := b.want("a script", http.StatusOK, "GET", home+"worker.js", "", append(key, "Accept-Encoding", "identity")...); text != "" {
		t.Errorf("script = %q, want the guest's response, which is empty", text)
	}
	if text, _ := b.want("a worker", http.StatusOK, "GET", home+"worker.js", "", append(key, "Service-Worker", "script", "Accept-Encoding", "br")...); !strings.HasPrefix(text, workerGuard) || !strings.HasSuffix(text, "the script") {
		t.Errorf("script of the worker = %q, want the guest's after the guard", text)
	}
}
