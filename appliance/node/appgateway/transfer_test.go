package appgateway

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// large is the size of a body that does not fit into the buffers on its way.
const large = 16<<20 + 7

// random returns a reader of n bytes that depend on the seed.
func random(seed byte, n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

func sum(r io.Reader) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return string(h.Sum(nil)), n, err
}

// files is a guest with files that are downloaded and uploaded.
func files(w http.ResponseWriter, r *http.Request) {
	seed := byte(len(r.URL.Query().Get("seed")))
	switch r.URL.Path {
	case "/known":
		w.Header().Set("Content-Length", strconv.Itoa(large))
		_, _ = io.Copy(w, random(seed, large))
	case "/chunked":
		_, _ = io.Copy(w, random(seed, large))
	case "/dies":
		w.Header().Set("Content-Length", strconv.Itoa(large))
		_, _ = io.Copy(w, random(seed, large/2))
		panic(http.ErrAbortHandler)
	case "/dies-chunked":
		_, _ = io.Copy(w, random(seed, large/2))
		panic(http.ErrAbortHandler)
	default: // an upload
		s, _, err := sum(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, s)
	}
}

// overEach runs a test over both versions of HTTP.
func overEach(t *testing.T, test func(*bench)) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			b := start(t, usual, files)
			if version == "HTTP/2.0" {
				b.overOneConnection()
			}
			test(b)
		})
	}
}

// request sends a request whose response is not read.
func (b *bench) request(method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(b.Context(), method, home+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return b.browser.Do(r)
}

// TestLargeTransfers checks that what is downloaded and uploaded at the same time arrives as
// it was sent.
func TestLargeTransfers(t *testing.T) {
	overEach(t, func(b *bench) {
		var all sync.WaitGroup
		for i, path := range []string{"known", "chunked", "known", "chunked", "upload", "upload"} {
			all.Go(func() {
				query := "?seed=" + "xxxxxx"[:i]
				want, _, _ := sum(random(byte(i), large))
				var body io.Reader
				if path == "upload" {
					body = random(byte(i), large)
				}
				resp, err := b.request("POST", path+query, body)
				if err != nil {
					b.Errorf("%s: %v", path, err)
					return
				}
				defer resp.Body.Close()
				var got string
				var n int64
				if path == "upload" {
					var text []byte
					text, err = io.ReadAll(resp.Body)
					got = string(text)
				} else {
					got, n, err = sum(resp.Body)
				}
				if err != nil || got != want {
					b.Errorf("%s: the bytes differ (status %d, %d bytes, error %v)", path, resp.StatusCode, n, err)
				}
			})
		}
		all.Wait()
	})
}

// TestCutOff checks that a response that the guest does not end is an error, not a short
// file.
func TestCutOff(t *testing.T) {
	overEach(t, func(b *bench) {
		for _, path := range []string{"dies", "dies-chunked"} {
			resp, err := b.request("GET", path, nil)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				b.Errorf("%s: %d bytes without an error, want an error after at most %d", path, n, large/2)
			}
		}
	})
}
