package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server on a loopback address; the tests allow only 127.0.0.1.
func serve(t *testing.T, address string, h http.HandlerFunc) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func options() Options {
	return Options{Policy: Policy{Allow: prefixes("127.0.0.1/32")}, Redirects: 5}
}

// get reads a whole response and returns its size.
func get(c *http.Client, url string) (int64, error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return io.Copy(io.Discard, resp.Body)
}

// endless writes until the reader closes the connection.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 64<<10)
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// TestHostileServers checks that malicious servers achieve nothing, and that their
// client is not blocked for long.
func TestHostileServers(t *testing.T) {
	var reached atomic.Int64
	inside := serve(t, "127.0.0.2", func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
	}
	wait := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	hops := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := len(r.URL.Path); n < 6 {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		} else if n == 6 {
			_, _ = io.WriteString(w, "here")
		}
	})
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		limits func(*Options)
		want   error
	}{
		"redirects to another of the machine's addresses": {to(inside), nil, ErrRefused},
		"redirects to a file":                             {to("file:///etc/passwd"), nil, ErrRefused},
		"redirects to nowhere":                            {to("http://"), nil, ErrRefused},
		"redirects for ever":                              {to("/"), nil, ErrRefused},
		"redirects five times":                            {hops, nil, nil},
		"redirects once more than is allowed":             {hops, func(o *Options) { o.Redirects = 4 }, ErrRefused},
		"never answers":                                   {wait, func(o *Options) { o.Header = 50 * time.Millisecond }, ErrFailed},
		"is silent in the middle": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, 100))
			_ = http.NewResponseController(w).Flush()
			wait(w, r)
		}, func(o *Options) { o.Silence = 50 * time.Millisecond }, ErrFailed},
		"sends a byte now and then": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte{0})
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		}, func(o *Options) { o.Silence, o.Slowest = 100*time.Millisecond, 1<<20 }, ErrFailed},
		"sends for ever":           {endless, func(o *Options) { o.MaxBody = 1 << 20 }, ErrFailed},
		"sends for ever, for long": {endless, func(o *Options) { o.Total = 50 * time.Millisecond }, ErrFailed},
		"sends headers for ever": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", maxHeaders+10))
		}, nil, ErrFailed},
		"ends before its end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(make([]byte, 10))
		}, nil, ErrFailed},
	} {
		o := options()
		if c.limits != nil {
			c.limits(&o)
		}
		_, err := get(NewClient(o), serve(t, "127.0.0.1", c.serve))
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("request to a server that %s: error %v, want %v", name, err, c.want)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("a server that is not allowed got %d requests, want none", n)
	}
}

// TestNoSecondAnswer checks that a name is resolved once per connection, and that only
// checked addresses are used.
func TestNoSecondAnswer(t *testing.T) {
	var inside, asked atomic.Int64
	url := serve(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) {})
	port := netip.MustParseAddrPort(strings.TrimPrefix(url, "http://")).Port()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	}()
	defer l.Close()
	answers := [][]string{{"127.0.0.1"}, {"127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}, {"::ffff:127.0.0.2"}, {"127.0.0.1"}}
	d := dialer{Policy{Allow: prefixes("127.0.0.1/32")}, time.Minute, func(context.Context, string, string) ([]netip.Addr, error) {
		n := asked.Add(1) - 1
		var out []netip.Addr
		for _, a := range answers[n] {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}}
	for i, want := range []error{nil, ErrRefused, nil, ErrRefused, nil} {
		conn, err := d.dial(t.Context(), "tcp", fmt.Sprintf("rebinds.example:%d", port))
		if err == nil {
			if at := conn.RemoteAddr().(*net.TCPAddr).IP.String(); at != "127.0.0.1" {
				t.Errorf("answer %v: connected to %s, want 127.0.0.1", answers[i], at)
			}
			_ = conn.Close()
		}
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("answer %v: error %v, want %v", answers[i], err, want)
		}
	}
	if asked.Load() != int64(len(answers)) || inside.Load() != 0 {
		t.Errorf("%d DNS queries for %d connections, want as many; %d requests to an address that is not allowed, want none", asked.Load(), len(answers), inside.Load())
	}
}

// TestAddressesRevealNothing checks that errors do not depend on the form of a disallowed
// address, nor on whether its port is open.
func TestAddressesRevealNothing(t *testing.T) {
	open := serve(t, "127.0.0.2", func(http.ResponseWriter, *http.Request) {
		t.Error("a server that is not allowed got a request, want none")
	})
	port := open[strings.LastIndexByte(open, ':')+1:]
	var log bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, host := range []string{"127.0.0.2", "[::ffff:127.0.0.2]", "0.0.0.0", "[::]", "[::1]", "169.254.169.254", "[fe80::1%25lo]", "127.0.0.3"} {
		for _, p := range []string{port, "1"} {
			_, err := get(NewClient(o), "http://"+host+":"+p+"/")
			if out := PublicError(err); !errors.Is(out, ErrRefused) || out.Error() != "the address is not allowed" {
				t.Errorf("outward error for %s, port %s = %v, want %v", host, p, out, ErrRefused)
			}
		}
	}
	closed := serve(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	for _, url := range []string{"http://127.0.0.1:1/", closed, strings.Replace(closed, "http", "https", 1), "http://no-such-name.invalid/"} {
		_, err := get(NewClient(o), url)
		if out := PublicError(err); out.Error() != "the address cannot be fetched" {
			t.Errorf("outward error for %s = %v, want %v", url, out, ErrFailed)
		}
	}
	for _, exact := range []string{"127.0.0.2:" + port, "connection refused", "no-such-name.invalid"} {
		if !strings.Contains(log.String(), exact) {
			t.Errorf("log lacks %q: %s", exact, log.String())
		}
	}
}

// TestNoRedirects checks that without Redirects the redirect itself is the response.
func TestNoRedirects(t *testing.T) {
	o := options()
	o.Redirects = 0
	url := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/next", http.StatusFound) })
	resp, err := NewClient(o).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("status = %s, want %d", resp.Status, http.StatusFound)
	}
}
