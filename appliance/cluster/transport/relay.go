package transport

import (
	"context"
	"io"
	"net/http"
	"net/url"
	pathpkg "path"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of what is relayed. Heartbeats are small and useful only at once.
const (
	maxRelayed   = 64 << 10 // bytes, of the request and of the answer
	relayTimeout = 5 * time.Second
)

// relayedFor is the header with the member for which a request was relayed.
const relayedFor = "Basalt-Relayed-For"

// RelayRule reports whether this node relays a request for other members.
type RelayRule func(method, path string) bool

// AllowRelay makes this node relay the requests that the rule permits; before that
// it relays none. A request that was already relayed is never relayed again.
func (s *Server) AllowRelay(rule RelayRule) { s.relay.Store(&rule) }

// Origin returns the member that made the request: the caller, or the member for
// which the caller relays. The latter is the caller's statement, and members trust
// each other.
func Origin(r *http.Request) api.NodeID {
	if node := r.Header.Get(relayedFor); node != "" && Caller(r.Context()) != "" {
		return api.NodeID(node)
	}
	return Caller(r.Context())
}

func (s *Server) serveRelay(w http.ResponseWriter, r *http.Request) {
	node, path := api.NodeID(r.PathValue("node")), "/"+r.PathValue("path")
	method := r.URL.Query().Get("method")
	rule := s.relay.Load()
	switch {
	case rule == nil || path != pathpkg.Clean(path) || !(*rule)(method, path):
		WriteError(w, api.Errorf(api.CodeForbidden, "%s %s cannot be relayed", clip(method), clip(path)))
		return
	case r.Header.Get(relayedFor) != "":
		WriteError(w, api.Errorf(api.CodeForbidden, "the request was already relayed"))
		return
	case !s.options.Member(node):
		WriteError(w, api.Errorf(api.CodeNotFound, "node %s is not a member of the cluster", clip(string(node))))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), relayTimeout)
	defer cancel()
	// The body is read completely, because one that is being sent cannot be sent
	// again.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRelayed))
	if err != nil {
		WriteError(w, err)
		return
	}
	out, err := http.NewRequestWithContext(ctx, method, (&url.URL{Path: path}).String(), strings.NewReader(string(body)))
	if err != nil {
		WriteError(w, err)
		return
	}
	out.Header.Set("Content-Type", "application/json")
	out.Header.Set(relayedFor, string(Caller(r.Context())))
	resp, err := s.options.Client.Do(ctx, node, out)
	if err != nil {
		WriteError(w, err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxRelayed+1))
	if err == nil && len(answer) > maxRelayed {
		err = api.Errorf(api.CodeTooLarge, "the response is larger than %d bytes", maxRelayed)
	}
	if err != nil {
		WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer)
}

// CallVia is like Call, relayed by another member. The path must have no query.
func (c *Client) CallVia(ctx context.Context, via, node api.NodeID, method, path string, in, out any) error {
	to := url.URL{Path: "/relay/" + string(node) + path, RawQuery: url.Values{"method": {method}}.Encode()}
	return c.Call(ctx, via, http.MethodPost, to.String(), in, out)
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}
