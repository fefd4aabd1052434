package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSilentServer checks that if a server accepts connections but never responds, like
// a port forwarder to a machine that is off, the next one is used before the
// transport's own limit of 10 s.
func TestSilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	good := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	defer good.Close()
	bases, err := parseServers("https://" + silent.Addr().String() + "," + good.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := good.Client().Transport.(*http.Transport)
	connectWithin(transport, 50*time.Millisecond)
	a := &http.Client{Transport: &servers{next: transport, bases: bases}}
	get := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, bases[0].String(), nil)
		if err != nil {
			return err
		}
		resp, err := a.Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	// The first request goes to the silent server; only the client's own limit ends it
	// before the context.
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	if err := get(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("request to the silent server: error %v, context %v; want an error before the context ends", err, ctx.Err())
	}
	transport.TLSHandshakeTimeout = time.Minute // so that a busy machine does not fail the test
	if err := get(t.Context()); err != nil {
		t.Errorf("request to the next server: %v", err)
	}
}

func TestPatienceIsForSeveral(t *testing.T) {
	for server, want := range map[string]time.Duration{
		"https://a.example":                   http.DefaultTransport.(*http.Transport).TLSHandshakeTimeout,
		"https://a.example,https://b.example": patience,
	} {
		a, err := New(Options{Server: server})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.http.Transport.(*servers).next.(*http.Transport).TLSHandshakeTimeout; got != want {
			t.Errorf("TLS handshake timeout with server %s = %v, want %v", server, got, want)
		}
	}
}
