package appgateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// KeyHeader is a header with an API key in the form of Authorization ("Bearer
// bslt_…"), for apps that use Authorization themselves.
const KeyHeader = "Basalt-Authorization"

const tokenPrefix = "bslt_"

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, ok := parseHost(r.Host, g.o.Domain)
	switch {
	case !ok:
		g.refuse(w, r, api.Errorf(api.CodeNotFound, "no app has this address"))
		return
	case strings.HasPrefix(r.URL.Path, Reserved):
		g.own(w, r, to)
		return
	}
	p, err := g.present(r, to)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	v, leave, err := g.admit(r, to, p)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if !p.Ends.IsZero() { // WebSockets end with the visit's pass
		ctx, cancel = context.WithTimeout(ctx, p.Ends.Sub(g.o.Now()))
		defer cancel()
	}
	defer context.AfterFunc(v.ctx, cancel)()
	g.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, toKey{}, upstream{v.access, to.Port})))
}

// present returns the pass of a request's cookie. It is empty for a request with an API
// key.
func (g *Gateway) present(r *http.Request, to Target) (pass, error) {
	if apiKey(r.Header) != "" {
		return pass{}, nil
	}
	cookie, err := r.Cookie(visitCookie)
	if err != nil {
		return pass{}, api.Errorf(api.CodeUnauthenticated, "a visit is required")
	}
	p, err := g.o.Keys.open(r.Context(), cookie.Value, toVisit, g.o.Now())
	switch {
	case errors.Is(err, errPass), err == nil && p.Target != to:
		return pass{}, api.Errorf(api.CodeUnauthenticated, "the visit has ended")
	case err == nil && foreign(r):
		return pass{}, api.Errorf(api.CodeForbidden, "another site's page sent this request").WithHint("requests must come from the app's own pages")
	}
	return p, err
}

// admit returns the visit of a request by its API key or its pass. The caller must call
// the returned function when the request ends.
func (g *Gateway) admit(r *http.Request, to Target, p pass) (*visit, func(), error) {
	from := addressOf(r.RemoteAddr)
	if token := apiKey(r.Header); token != "" {
		sum := sha256.Sum256([]byte(token))
		return g.visits.enter(visitKey{to.Instance, hex.EncodeToString(sum[:]), from}, g.admits(from, func(ctx context.Context) (Access, error) {
			return g.o.Directory.AdmitToken(ctx, token, to.Instance, from)
		}))
	}
	return g.visits.enter(visitKey{to.Instance, p.Holder, from}, g.admits(from, func(ctx context.Context) (Access, error) {
		return g.o.Directory.Admit(ctx, p.Holder, to.Instance, from)
	}))
}

// admits returns a function that begins a visit: it is recorded in the audit log,
// and ends with the right.
func (g *Gateway) admits(from string, ask func(context.Context) (Access, error)) func(context.Context) (Access, context.Context, context.CancelFunc, error) {
	return func(whole context.Context) (Access, context.Context, context.CancelFunc, error) {
		ctx, done := context.WithTimeout(whole, g.limits.dialTime)
		defer done()
		a, err := ask(ctx)
		if err != nil {
			return a, nil, nil, err
		}
		right, end, err := g.o.Directory.While(whole, a)
		if err != nil {
			return a, nil, nil, fmt.Errorf("watch access rights to instance %s: %w", a.Instance, err)
		}
		if err := g.o.Directory.Entered(ctx, a, from); err != nil {
			end()
			return a, nil, nil, fmt.Errorf("record the visit: %w", err)
		}
		return a, right, end, nil
	}
}

// apiKey returns the API key of a request, or "". An Authorization that is not an
// API key of Basalt is the app's.
func apiKey(h http.Header) string {
	for _, name := range []string{KeyHeader, "Authorization"} {
		scheme, token, _ := strings.Cut(h.Get(name), " ")
		if strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(token, tokenPrefix) {
			return token
		}
	}
	return ""
}

type toKey struct{}

// upstream is the destination of a request.
type upstream struct {
	access Access
	port   uint16
}

// newProxy returns the proxy to instances. Responses are flushed at once: models
// stream theirs word by word.
func (g *Gateway) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: rewrite, ModifyResponse: cleanAnswer, ErrorHandler: g.failed, FlushInterval: -1, ErrorLog: nil,
		Transport: &http.Transport{DialContext: g.dial, DisableCompression: true, MaxIdleConnsPerHost: 16, MaxIdleConns: g.limits.connections, IdleConnTimeout: g.limits.poolIdle,
			MaxResponseHeaderBytes: int64(g.limits.headers)},
	}
}

// rewrite removes what is between browser and gateway only.
func rewrite(p *httputil.ProxyRequest) {
	to := p.In.Context().Value(toKey{}).(upstream)
	// The host is a key for the connection pool; dial parses it.
	p.SetURL(&url.URL{Scheme: "http", Host: net.JoinHostPort(string(to.access.Instance)+"."+string(to.access.Node), strconv.Itoa(int(to.port)))})
	p.Out.Host = p.In.Host // apps compare it with Origin
	p.SetXForwarded()
	p.Out.Header.Set("X-Forwarded-Proto", "https")
	p.Out.Header.Del(KeyHeader)
	if apiKey(http.Header{"Authorization": p.In.Header["Authorization"]}) != "" {
		p.Out.Header.Del("Authorization")
	}
	if isWorker(p.In.Header) {
		p.Out.Header.Del("Accept-Encoding") // guardWorker changes the response
	}
	p.Out.Header.Del("Cookie")
	if c := appCookies(p.In.Header["Cookie"]); c != "" {
		p.Out.Header.Set("Cookie", c)
	}
}

// appCookies returns a Cookie header without the gateway's own cookie; the others
// are not changed.
func appCookies(lines []string) string {
	cookies := strings.Split(strings.Join(lines, "; "), ";")
	return strings.Join(slices.DeleteFunc(cookies, func(c string) bool {
		name, _, _ := strings.Cut(strings.TrimSpace(c), "=")
		return name == "" || name == visitCookie
	}), ";")
}

func (g *Gateway) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("parse port of the app: %w", err)
	}
	instance, node, _ := strings.Cut(host, ".")
	ctx, cancel := context.WithTimeout(ctx, g.limits.dialTime)
	defer cancel()
	c, err := g.o.Dialer.Dial(ctx, api.NodeID(node), api.InstanceID(instance), uint16(n))
	if err != nil {
		return nil, fmt.Errorf("connect to instance %s on node %s: %w", instance, node, err)
	}
	return c, nil
}

// failed responds that an app does not answer. The reason is not given: the guest
// is the user's own.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	to := r.Context().Value(toKey{}).(upstream)
	g.o.Log.Debug("app gateway: no answer", "instance", to.access.Instance, "port", to.port, "error", err)
	if r.Context().Err() != nil {
		g.refuse(w, r, api.Errorf(api.CodeUnauthenticated, "the visit has ended"))
		return
	}
	g.refuse(w, r, api.Errorf(api.CodeUnavailable, "%s does not answer on port %d", to.access.Name, to.port).WithHint("it may still be starting, or listen on localhost only"))
}
