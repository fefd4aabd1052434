package imagefile

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sds"
)

// TestFetchRevealsNothing checks that the error of an import is the same for
// every URL that is not allowed, and for every one that cannot be fetched.
func TestFetchRevealsNothing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/inside":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		case "/silent":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(make([]byte, 10))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "1000")
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	r := Receiver{URLs: outbound.Options{Policy: outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, Silence: 50 * time.Millisecond}}
	const refused, failed = "cannot download the image: the address is not allowed", "cannot download the image: the address cannot be fetched"
	for url, want := range map[string]string{
		s.URL + "/inside": refused, "http://127.0.0.2:22/": refused, "http://[::1]:1/": refused, "http://169.254.169.254/latest": refused, "http://10.0.0.1/": refused,
		"http://127.0.0.1:1/": failed, strings.Replace(s.URL, "http", "https", 1): failed, s.URL + "/silent": failed, s.URL + "/cut": failed,
		s.URL + "/none": "the image server responded with status 404",
	} {
		body, _, err := r.Open(t.Context(), sds.ImageImport{URL: url})
		if err == nil {
			_, err = io.Copy(io.Discard, body)
			_ = body.Close()
		}
		var e *api.Error
		if !errors.As(err, &e) || e.Message != want || strings.Contains(err.Error(), "dial") || strings.Contains(err.Error(), "127.0.0.") {
			t.Errorf("error of %s = %v, want only %q", url, err, want)
		}
	}
}
