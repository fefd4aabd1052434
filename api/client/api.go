package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Options are the options of a client.
type Options struct {
	// Server is "https://host[:port]", "http://…" or "unix:/path/of/socket", or several
	// of these for one cluster, separated by commas: if one does not answer, the next
	// is used.
	Server string
	Token  string
	// Stale requests the server's own state, even if it is out of date or the server
	// has lost its connection to the cluster.
	Stale bool
	// TLS settings; nil: the system's roots.
	TLS *tls.Config
	// Retries of requests that may be repeated, after no response or a 503; 0 means 4,
	// negative none.
	Retries int
}

// API is a connection to a server.
type API struct {
	base   *url.URL
	server string // in the form that the caller gave
	http   *http.Client
	token  string
	stale  bool
	rounds int
}

// New returns a client.
func New(o Options) (*API, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.TLS
	server := o.Server
	if path, ok := strings.CutPrefix(server, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
		server = "http://localhost"
	}
	bases, err := parseServers(server)
	if err != nil {
		return nil, err
	}
	if len(bases) > 1 {
		connectWithin(transport, patience)
	}
	base := bases[0]
	if o.Retries == 0 {
		o.Retries = 4
	}
	a := &API{base: base, server: o.Server, token: o.Token, stale: o.Stale, rounds: max(o.Retries, 0) + 1}
	a.http = &http.Client{Transport: &servers{next: transport, bases: bases}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a token must not be sent to another server
	}}
	return a, nil
}

// do authenticates a request, and retries it if that is safe.
func (a *API) do(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	if a.stale && r.Method == http.MethodGet {
		r.Header.Set("Basalt-Consistency", "stale")
	}
	if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	wait := 200 * time.Millisecond
	for round := 1; ; round++ {
		resp, err := a.http.Do(r)
		busy := err == nil && (resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests)
		if err == nil && !busy || round >= a.rounds || !repeatable(r) || r.Context().Err() != nil {
			return resp, a.unreachable(err, r)
		}
		if busy {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
			_ = resp.Body.Close()
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// repeatable reports whether a request may be sent again: it does not stream, has no
// effect if it is repeated, and creates no secret.
func repeatable(r *http.Request) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if strings.HasPrefix(path, "/v1/setup") {
		return false // the setup calls of a node are not repeated
	}
	if r.Method != http.MethodPost {
		return true
	}
	for _, once := range []string{"/exec", "/restart", "/api-keys", "/users", "/reset", "/login", "/password", "/password/link", "/totp", "/totp/confirm", "/passkeys", "/passkeys/confirm"} {
		if strings.HasSuffix(path, once) {
			return false
		}
	}
	return true
}

func (a *API) unreachable(err error, r *http.Request) error {
	if err == nil || r.Context().Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", api.Errorf(api.CodeUnavailable, "no response from %s", a.server).
		WithHint("check that the server is running and the address is correct"), err)
}

// failure returns the *api.Error of a response; nil if it is a success.
func failure(resp *http.Response) error {
	if resp.StatusCode < 300 {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	var p api.Problem
	if json.Unmarshal(raw, &p) != nil || p.Code == "" {
		return api.Errorf(api.CodeInternal, "the server answered %s", resp.Status).WithHint("check that this is a Basalt server")
	}
	return p.AsError()
}
