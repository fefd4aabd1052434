package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// patience limits the wait for a connection to one of several servers. A machine that
// is off sends no response, and a port forwarder in front of it accepts connections:
// with the transport's own limits, each command would wait 10 s or 30 s.
const patience = 4 * time.Second

func connectWithin(t *http.Transport, limit time.Duration) {
	t.DialContext = (&net.Dialer{Timeout: limit}).DialContext
	t.TLSHandshakeTimeout = limit
}

// servers sends requests to one of several servers of a cluster: to the same one as
// long as it answers, otherwise to the next.
type servers struct {
	next  http.RoundTripper
	bases []*url.URL
	at    atomic.Int64
}

// RoundTrip implements http.RoundTripper. It does not retry: API.do decides which
// requests may be repeated.
func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(s.bases) == 1 {
		return s.next.RoundTrip(r)
	}
	i := s.at.Load()
	to := r.Clone(r.Context())
	to.URL.Scheme, to.URL.Host, to.Host = s.bases[i].Scheme, s.bases[i].Host, ""
	resp, err := s.next.RoundTrip(to)
	// A server that does not answer before the deadline is treated like one that
	// refuses.
	if err != nil && !errors.Is(r.Context().Err(), context.Canceled) || err == nil && resp.StatusCode == http.StatusServiceUnavailable {
		s.at.CompareAndSwap(i, (i+1)%int64(len(s.bases)))
	}
	return resp, err
}

// parseServers parses one address or, for a cluster, several separated by commas.
func parseServers(text string) ([]*url.URL, error) {
	var out []*url.URL
	for part := range strings.SplitSeq(text, ",") {
		base, err := url.Parse(strings.TrimSpace(part))
		if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
			return nil, api.Errorf(api.CodeInvalid, "%q is not a valid server address", text).
				WithHint("want https://host, http://host:port or unix:/path; separate several of one cluster by commas")
		}
		out = append(out, base)
	}
	return out, nil
}
