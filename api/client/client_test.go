package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestUnixSocket uses Serve with a Unix socket until its context ends.
func TestUnixSocket(t *testing.T) {
	e := servertest.Start(t, nil)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- e.Server.Serve(ctx, l) }()
	c, err := client.New(client.Options{Server: "unix:" + path, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	if me, err := c.Whoami(t.Context()); err != nil || me.Role != api.RoleOperator {
		t.Errorf("Whoami = %+v, %v; want role %s", me, err, api.RoleOperator)
	}
	// An open watch does not delay the shutdown.
	for event, err := range c.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == api.EventSync {
			cancel()
			break
		}
	}
	if err := patience.Receive(t, time.Minute, "Serve ends", served); err != nil {
		t.Error(err)
	}
}

func TestRetries(t *testing.T) {
	var calls atomic.Int64
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		w.Header().Set("Content-Type", "application/json")
		if calls.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"code":"unavailable","message":"no leader"}`))
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"Flavor","meta":{"id":"flv-1","name":"a"},"spec":{}}`))
	}))
	defer s.Close()
	c, err := client.New(client.Options{Server: s.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.Flavor](c).Create(t.Context(), api.Flavor{}); err != nil || calls.Load() != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("create: error %v after %d calls with keys %q; want success after 2 calls with one key", err, calls.Load(), keys)
	}
	// A request that would have an effect twice is not repeated.
	var e *api.Error
	if _, err := c.Exec(t.Context(), "i", api.ExecRequest{Argv: []string{"x"}}); !errors.As(err, &e) || e.Code != api.CodeUnavailable || calls.Load() != 3 {
		t.Errorf("exec: error %v after %d calls, want %s after one", err, calls.Load(), api.CodeUnavailable)
	}
}

func TestBadServers(t *testing.T) {
	for _, s := range []string{"", "host", "ftp://x", "http://"} {
		if _, err := client.New(client.Options{Server: s}); api.CodeOf(err) != api.CodeInvalid || err == nil {
			t.Errorf("New with server %q = %v, want %s", s, err, api.CodeInvalid)
		}
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c, err := client.New(client.Options{Server: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Whoami(t.Context()); err == nil || api.CodeOf(err) != api.CodeInternal {
		t.Errorf("Whoami of a server that is not Basalt = %v, want %s", err, api.CodeInternal)
	}
}

// TestSeveralServers checks that the next server is used when one is unreachable or
// unavailable.
func TestSeveralServers(t *testing.T) {
	e := servertest.Start(t, nil)
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	good := httptest.NewServer(e.Server)
	defer good.Close()
	c, err := client.New(client.Options{Server: gone.URL + "," + busy.URL + ", " + good.URL, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if me, err := c.Whoami(t.Context()); err != nil || me.Role != api.RoleOperator {
			t.Errorf("Whoami = %+v, %v; want role %s", me, err, api.RoleOperator)
		}
	}
	if _, err := client.New(client.Options{Server: good.URL + ",nonsense"}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("New with an invalid second server = %v, want %s", err, api.CodeInvalid)
	}
}
