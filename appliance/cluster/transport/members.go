package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// peerHTTP serves members. Bodies have no time limit, because some are streams.
func (s *Server) peerHTTP(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(s.serveMember),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, c)
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// serveMember checks the membership at each request, because a connection may be
// older than the node's removal. A connection that is older than this node's
// current certificate or bundle is closed after the request, so no rotation
// interrupts a call.
func (s *Server) serveMember(w http.ResponseWriter, r *http.Request) {
	defer s.logPanic(r)
	node := Caller(r.Context())
	if node == "" || !s.options.Member(node) {
		w.Header().Set("Connection", "close")
		WriteError(w, api.Errorf(api.CodeForbidden, "node %s is not a member of the cluster", node).
			WithHint("it was removed; let it join again with a new token"))
		return
	}
	if c, _ := r.Context().Value(callerKey{}).(*conn); c.trust != s.options.Certificates.Generation() && r.Header.Get("Upgrade") == "" {
		w.Header().Set("Connection", "close")
	}
	s.mux.ServeHTTP(w, r)
}

// logPanic logs a panic, which net/http would log only at debug level, and lets it
// close the connection.
func (s *Server) logPanic(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
		s.log.Error("peer: panic", "path", r.URL.Path, "node", Caller(r.Context()), "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}
