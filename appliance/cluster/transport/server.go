package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

// Options are the options of a Server.
type Options struct {
	Certificates *pki.CertificateStore
	Client       *Client  // for Raft's outgoing connections and for relaying
	Listen       []string // host:port, one per path; the first is the main one
	// Member reports whether a node is a member now. It is called for every
	// request.
	Member func(api.NodeID) bool
	Log    *slog.Logger // nothing is logged if nil
}

// Server is the server for other nodes. NewServer listens, so that the addresses
// are known; requests are answered only by Serve.
type Server struct {
	options   Options
	log       *slog.Logger
	listeners []net.Listener
	tls       *tls.Config
	in        conns
	pending   gate
	handshake time.Duration // time limit of a handshake
	mux       *http.ServeMux
	raft      *RaftLayer
	peers     *queue // connections for the two HTTP servers
	joiners   *queue
	join      atomic.Pointer[http.Handler]
	relay     atomic.Pointer[RelayRule]

	mu      sync.RWMutex // guards streams
	streams map[string]StreamHandler
}

// NewServer listens on all paths, or returns an error and listens on none.
func NewServer(o Options) (*Server, error) {
	if o.Certificates == nil || o.Client == nil || o.Member == nil || len(o.Listen) == 0 {
		return nil, errors.New("peer server: Certificates, Client, Member and an address are required")
	}
	s := &Server{
		options: o, log: orDiscard(o.Log), mux: http.NewServeMux(), streams: map[string]StreamHandler{},
		handshake: handshakeTimeout,
		in:        conns{limit: maxPerNode, joiners: maxJoiners},
		peers:     newQueue(maxPerNode), joiners: newQueue(maxJoiners),
	}
	s.raft = &RaftLayer{self: o.Certificates.Node(), client: o.Client, queue: newQueue(0)}
	s.tls = s.choose()
	s.mux.HandleFunc("/stream/{name}", s.serveStream)
	s.mux.HandleFunc("POST /relay/{node}/{path...}", s.serveRelay)
	s.HandleStream(pingStream, servePing)
	listen := net.ListenConfig{KeepAliveConfig: keepAlive, Control: setUserTimeout}
	for _, address := range o.Listen {
		l, err := Listen(listen, address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for other nodes on %s: %w", address, err), s.closeListeners())
		}
		s.listeners = append(s.listeners, l)
	}
	return s, nil
}

// choose returns a TLS configuration that selects the rules by the protocol that
// the client offers.
func (s *Server) choose() *tls.Config {
	rules := map[string]*tls.Config{}
	for _, p := range []string{ProtocolRaft, ProtocolPeer, ProtocolJoin} {
		rules[p] = s.options.Certificates.ServerConfig(p != ProtocolJoin, p)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			for _, p := range []string{ProtocolRaft, ProtocolPeer, ProtocolJoin} {
				if slices.Contains(hello.SupportedProtos, p) {
					return rules[p], nil
				}
			}
			return nil, errors.New("it supports no protocol of this cluster")
		},
	}
}

// Addresses returns the addresses on which the server listens, one per path.
func (s *Server) Addresses() (all []string) {
	for _, l := range s.listeners {
		all = append(all, l.Addr().String())
	}
	return all
}

// Raft returns the stream layer for raft.NewNetworkTransport.
func (s *Server) Raft() *RaftLayer { return s.raft }

// Handle registers a handler of members' requests for a pattern of http.ServeMux.
// Caller(r.Context()) is the member.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// HandleAPI registers this node's API for requests that ProxyTo forwards here.
func (s *Server) HandleAPI(h http.Handler) {
	s.mux.Handle(apiPrefix+"/", http.StripPrefix(apiPrefix, h))
}

// HandleJoin sets the handler of POST /join; before that no node is admitted. The
// body is limited to 64 KiB and the handling to one minute.
func (s *Server) HandleJoin(h http.Handler) { s.join.Store(&h) }

// Disconnect closes all connections from and to a node.
func (s *Server) Disconnect(node api.NodeID) {
	s.in.abort(func(c *conn) bool { return c.node == node })
	s.options.Client.Disconnect(node)
}

// Recheck closes connections that would not be accepted now: those of nodes that
// are no longer members, and those with certificates that the bundle no longer
// trusts.
func (s *Server) Recheck() {
	refuse := func(c *conn) bool {
		if c.node == "" {
			return false
		}
		state := c.ConnectionState()
		_, err := s.options.Certificates.NodeOf(&state)
		return err != nil || !s.options.Member(c.node)
	}
	if n := s.in.abort(refuse) + s.options.Client.out.abort(refuse); n > 0 {
		s.log.Info("peer: closed connections of nodes that are no longer accepted", "count", n)
	}
}

// recheckEvery is how soon connections follow a change of trust. Handshakes and
// membership follow at once. A call in progress may complete.
const recheckEvery = time.Minute

// Serve answers requests until ctx ends, then closes everything.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peers, joiners := s.peerHTTP(ctx), s.joinHTTP(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = peers.Serve(s.peers) })
	running.Go(func() { _ = joiners.Serve(s.joiners) })
	running.Go(func() { s.watchTrust(ctx) })
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		running.Go(func() { failed <- s.accept(ctx, l, &running) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	err = errors.Join(err, s.closeListeners())
	s.peers.shut()
	s.joiners.shut()
	s.in.shut()
	_ = peers.Close()
	_ = joiners.Close()
	running.Wait()
	return err
}

func (s *Server) watchTrust(ctx context.Context) {
	every := time.NewTicker(recheckEvery)
	defer every.Stop()
	stale := false
	for {
		changed := s.options.Certificates.Changed()
		select {
		case <-ctx.Done():
			return
		case <-changed:
			// Connections in use are closed after their next call: see serveMember.
			s.options.Client.pool.CloseIdleConnections()
			stale = true
		case <-every.C:
			if stale { // connections that were in use then and are idle now
				s.options.Client.pool.CloseIdleConnections()
				stale = false
			}
			s.Recheck()
		}
	}
}

// Close closes the listeners of a server that was never served.
func (s *Server) Close() error { return s.closeListeners() }

func (s *Server) closeListeners() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// accept accepts connections on one path until the listener is closed.
func (s *Server) accept(ctx context.Context, l net.Listener, running *sync.WaitGroup) error {
	for {
		raw, err := l.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = raw.Close()
			}
			return nil
		case err != nil: // no file descriptors left, or the client has already gone
			s.log.Warn("peer: accept failed, retrying", "listen", l.Addr().String(), "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		host := hostOf(raw)
		if !s.pending.enter(host) {
			_ = raw.Close()
			continue
		}
		running.Go(func() {
			defer s.pending.leave(host)
			s.admit(ctx, raw)
		})
	}
}

// admit performs the handshake and passes the connection to the handler of its
// protocol.
func (s *Server) admit(ctx context.Context, raw net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, s.handshake)
	defer cancel()
	trust := s.options.Certificates.Generation()
	t := tls.Server(raw, s.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		s.log.Debug("peer: refused connection", "from", raw.RemoteAddr().String(), "error", err)
		return
	}
	state := t.ConnectionState()
	var node api.NodeID
	if state.NegotiatedProtocol != ProtocolJoin {
		var err error
		if node, err = s.options.Certificates.NodeOf(&state); err != nil {
			_ = raw.Close()
			return
		}
	}
	c := newConn(t, node, raw.RemoteAddr().String(), trust)
	queue := s.peers
	switch state.NegotiatedProtocol {
	case ProtocolRaft:
		if queue = s.raft.queue; !s.options.Member(node) {
			_ = c.Close()
			s.log.Info("peer: refused raft connection of a node that is not a member", "node", node)
			return
		}
	case ProtocolJoin:
		queue = s.joiners
	}
	if err := s.in.add(c); err != nil {
		c.abort()
		s.log.Warn("peer: refused connection", "error", err)
		return
	}
	if !queue.put(ctx, c) {
		c.abort()
	}
}
