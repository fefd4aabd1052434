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

// A server's place where somebody takes connections and says nothing, as what
// forwards a port to a machine that is off: the next one is asked before the
// transport's own 10 s are over.
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
	// The first asks the silent one: without the limit only our own ends it.
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	if err := get(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("the silent one: %v, %v", err, ctx.Err())
	}
	transport.TLSHandshakeTimeout = time.Minute // however busy this machine is
	if err := get(t.Context()); err != nil {
		t.Errorf("the next one: %v", err)
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
			t.Errorf("%s: %v, want %v", server, got, want)
		}
	}
}
