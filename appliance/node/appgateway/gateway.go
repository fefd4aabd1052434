package appgateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/limit"
)

// Dialer connects to a TCP port of an instance in its network.
type Dialer interface {
	Dial(ctx context.Context, node api.NodeID, instance api.InstanceID, port uint16) (net.Conn, error)
}

// Options configures a gateway; all fields but Now and Log are required.
type Options struct {
	Domain    string // parent of the names of instances' ports
	Port      uint16 // port at which users access the gateway, for links
	Keys      *Keys
	Directory Directory
	Dialer    Dialer
	Now       func() time.Time
	Log       *slog.Logger
}

// Gateway serves browsers and programs. Its methods may be called concurrently.
type Gateway struct {
	o      Options
	limits limits
	proxy  *httputil.ReverseProxy
	visits *visits
}

// New returns a gateway that serves until ctx ends.
func New(ctx context.Context, o Options) *Gateway { return newGateway(ctx, o, usual) }

func newGateway(ctx context.Context, o Options, l limits) *Gateway {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Gateway{o: o, limits: l, visits: newVisits(ctx, l)}
	g.proxy = g.newProxy()
	return g
}

// Address returns the URL of a port of an instance. It does not grant access.
func (g *Gateway) Address(instance api.InstanceID, port uint16) string {
	host := hostOf(Target{instance, port}, g.o.Domain)
	if g.o.Port != 443 {
		host = net.JoinHostPort(host, strconv.Itoa(int(g.o.Port)))
	}
	return "https://" + host + "/"
}

// Link returns a URL that grants access to the holder of a session or an API key,
// and when it expires. The Directory decides when the link is followed.
func (g *Gateway) Link(ctx context.Context, holder string, instance api.InstanceID, port uint16) (url string, ends time.Time, err error) {
	ends = g.o.Now().UTC().Add(enterLife).Truncate(time.Second)
	text, err := g.o.Keys.sign(ctx, pass{Holder: holder, Target: Target{instance, port}, Use: toEnter, Ends: ends})
	return g.Address(instance, port) + EnterPath[1:] + "#" + text, ends, err
}

// Serve serves clients of the listener, which is closed when ctx ends. handler is
// the gateway, or a wrapper of it.
func (g *Gateway) Serve(ctx context.Context, l net.Listener, conf *tls.Config, handler http.Handler) error {
	s := &http.Server{Handler: handler, TLSConfig: conf, ReadHeaderTimeout: g.limits.headerTime, IdleTimeout: g.limits.idleTime, MaxHeaderBytes: g.limits.headers,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: g.limits.streams, MaxReceiveBufferPerStream: g.limits.unread, MaxReceiveBufferPerConnection: g.limits.unreadOfConnection,
			SendPingTimeout: g.limits.pingTime, PingTimeout: g.limits.silentTime, WriteByteTimeout: g.limits.silentTime},
		ErrorLog: slog.NewLogLogger(g.o.Log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	limited := limitedListener{l, limit.NewCounter(g.limits.ofAddress, g.limits.connections)}
	if err := s.ServeTLS(limited, "", ""); ctx.Err() == nil || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// limitedListener closes connections beyond the limits.
type limitedListener struct {
	net.Listener
	counter *limit.Counter
}

// Accept implements net.Listener.
func (l limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if leave, ok := l.counter.Enter(addressOf(c.RemoteAddr().String())); ok {
			return &limitedConn{c, leave}, nil
		}
		_ = c.Close()
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// addressOf returns the IP address of host and port, or remote if it cannot be
// parsed.
func addressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	return at.Addr().Unmap().WithZone("").String()
}
