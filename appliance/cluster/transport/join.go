package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

// Limits for joining nodes, which are not trusted.
const (
	maxJoin     = 64 << 10 // bytes
	joinTimeout = time.Minute
)

// joinHTTP serves nodes that have no certificate yet: one small request, after
// which the connection is closed.
func (s *Server) joinHTTP(ctx context.Context) *http.Server {
	rate := &bucket{burst: 20, perSecond: 2}
	h := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer s.logPanic(r)
			handler := s.join.Load()
			switch {
			case r.Method != http.MethodPost || r.URL.Path != "/join":
				WriteError(w, api.Errorf(api.CodeNotFound, "only POST /join is available here"))
			case handler == nil:
				WriteError(w, api.Errorf(api.CodeUnavailable, "this node does not accept joining nodes yet").WithHint("try again in a moment"))
			case !rate.take(time.Now()):
				WriteError(w, api.Errorf(api.CodeRateLimited, "too many nodes are joining at the same time").WithHint("try again in a minute"))
			default:
				ctx, cancel := context.WithTimeout(r.Context(), joinTimeout)
				defer cancel()
				r.Body = http.MaxBytesReader(w, r.Body, maxJoin)
				(*handler).ServeHTTP(w, r.WithContext(ctx))
			}
		}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: joinTimeout + 10*time.Second,
		MaxHeaderBytes: 8 << 10,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	h.SetKeepAlivesEnabled(false)
	return h
}

// Join asks the token's members, one after the other, to admit this node: POST
// /join with in as JSON, decoding the answer into out. The next member is asked
// only if one could not be reached or cannot answer (CodeUnavailable). That member
// may have processed the request anyway, so the members must accept the same
// request twice.
func Join(ctx context.Context, token pki.Token, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var failures []error
	for _, address := range token.Peers {
		err := joinAt(ctx, address, token, raw, out)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
		var refused *api.Error
		if errors.As(err, &refused) && refused.Code != api.CodeUnavailable {
			return refused
		}
		if ctx.Err() != nil {
			break
		}
	}
	why := errors.Join(failures...)
	e := api.Errorf(api.CodeUnavailable, "no member of cluster %s accepted this node (%d addresses tried)", token.Cluster, len(failures)).
		WithHint("check that the network works and that one of %v belongs to a running node of the cluster", token.Peers)
	switch {
	case wrongTime(why):
		e = e.WithHint("%s", clockHint)
	case errors.Is(why, pki.ErrNotPeer):
		e = e.WithHint("an address belongs to another cluster, or the cluster's CA was replaced: create a new token")
	}
	return fmt.Errorf("%w: %w", e, why)
}

func joinAt(ctx context.Context, address string, token pki.Token, body []byte, out any) error {
	limit, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	once := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			t, err := dialTLS(ctx, address, pki.JoinClientConfig(token, ProtocolJoin))
			if err != nil {
				return nil, err
			}
			return newConn(t, "", address, 0), nil // net/http would check the ALPN protocol of a *tls.Conn
		},
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
	}
	r, err := http.NewRequestWithContext(limit, http.MethodPost, "http://join/join", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := once.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readAnswer(api.NodeID(address), resp, out)
}
