package transport

import (
	"log/slog"
	"net/http"
	"net/http/httputil"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// apiPrefix is where a node's API is mounted for other members.
	apiPrefix = "/api"
	// forwardedBy is the header with the member that forwarded an API request.
	forwardedBy = "Basalt-Forwarded-By"
)

// Forwarded reports whether another node forwarded this API request here. Such a
// request must be answered here and not forwarded again.
func Forwarded(r *http.Request) bool {
	return r.Header.Get(forwardedBy) != "" || Caller(r.Context()) != ""
}

// ProxyTo returns a handler that forwards API requests to another node's API,
// including authorization, bodies that stream in both directions, and WebSockets. A
// request that was already forwarded is refused, which prevents loops.
func (c *Client) ProxyTo(node api.NodeID) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Path = apiPrefix + p.In.URL.Path
			if p.In.URL.RawPath != "" {
				p.Out.URL.RawPath = apiPrefix + p.In.URL.RawPath
			}
			p.Out.URL.RawQuery = p.In.URL.RawQuery // unchanged, even if net/url cannot parse it
			p.SetXForwarded()
			p.Out.Header.Set(forwardedBy, string(c.Self()))
		},
		Transport:     toNode{c, node},
		FlushInterval: -1, // events of a watch must not be delayed
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			c.log.Info("peer: forward API request failed", "node", node, "path", r.URL.Path, "error", err)
			refuse(w, api.Errorf(api.CodeUnavailable, "the node that must handle this request is not reachable").WithHint("try again in a moment"))
		},
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Forwarded(r) {
			refuse(w, api.Errorf(api.CodeUnavailable, "the nodes disagree on which of them must handle this request").
				WithHint("try again in a moment"))
			return
		}
		// HTTP/1 otherwise reads the whole body before the answer is sent. HTTP/2
		// does not need this and returns an error.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
}

// refuse answers a request of the API's client, who need not be an operator.
func refuse(w http.ResponseWriter, e *api.Error) {
	_ = api.WriteProblem(w, e) // it fails only if the client is gone
}

// toNode is a transport that sends every request to one node.
type toNode struct {
	client *Client
	node   api.NodeID
}

// RoundTrip sends the request.
func (t toNode) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.client.Do(r.Context(), t.node, r)
}
