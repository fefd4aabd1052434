package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

const (
	// connectTimeout is the time limit of one path's TCP handshake, which the other
	// machine's kernel answers. That of TLS has handshakeTimeout: its process may be busy.
	connectTimeout = 3 * time.Second
	// stagger is how long a path has before the next one is tried in parallel.
	stagger = 250 * time.Millisecond
)

var dialer = net.Dialer{KeepAliveConfig: keepAlive, Control: setUserTimeout}

// dial connects to a node on the path that answers first.
func (c *Client) dial(ctx context.Context, node api.NodeID, alpn string) (*conn, error) {
	paths := order(c.book.Paths(node), time.Now())
	if len(paths) == 0 {
		return nil, api.Errorf(api.CodeUnavailable, "no address of node %s is known", node).WithHint("check that it is a member of the cluster")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn *conn
		err  error
	}
	results := make(chan result, len(paths))
	next := time.NewTimer(0)
	defer next.Stop()
	var failures []error
	for started, done := 0, 0; done < len(paths); {
		select {
		case <-next.C:
			if started < len(paths) {
				address := paths[started]
				started++
				go func() {
					conn, err := c.dialPath(ctx, node, address, alpn)
					results <- result{conn, err}
				}()
				next.Reset(stagger)
			}
		case r := <-results:
			done++
			if r.err != nil {
				failures = append(failures, r.err)
				next.Reset(0)
				continue
			}
			cancel()
			go func(open int) { // close the other connections
				for range open {
					if r := <-results; r.conn != nil {
						_ = r.conn.Close()
					}
				}
			}(started - done)
			return r.conn, nil
		}
	}
	return nil, unreachable(node, errors.Join(failures...))
}

const clockHint = "check the clocks of both nodes"

// unreachable explains to a user why a node could not be called.
func unreachable(node api.NodeID, why error) error {
	e := api.Errorf(api.CodeUnavailable, "node %s is not reachable", node).
		WithHint("check that it is running and that the network between the nodes works")
	var alert tls.AlertError
	switch {
	case wrongTime(why):
		e = e.WithHint("%s", clockHint)
	case errors.As(why, &alert): // in TLS 1.3 it is received with the first answer
		e = api.Errorf(api.CodeUnavailable, "node %s rejected this node's certificate", node).
			WithHint("this node may have been removed, or the clock of one of the two is wrong")
	case errors.Is(why, pki.ErrNotPeer):
		e = e.WithHint("another machine responds at its address: the addresses may have changed")
	}
	return fmt.Errorf("%w: %w", e, why)
}

// wrongTime reports whether a certificate was rejected only because of its dates.
func wrongTime(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// dialPath connects on one path and records the result.
func (c *Client) dialPath(ctx context.Context, node api.NodeID, address, alpn string) (*conn, error) {
	begin, trust := time.Now(), c.certificates.Generation()
	t, err := dialTLS(ctx, address, c.certificates.ClientConfig(node, alpn))
	if err != nil {
		err = fmt.Errorf("node %s on %s: %w", node, address, err)
		if ctx.Err() == nil { // otherwise another path was faster, or the caller gave up
			c.book.failed(node, address, time.Now(), err)
		}
		return nil, err
	}
	c.book.answered(node, address, time.Now(), time.Since(begin))
	conn := newConn(t, node, address, trust)
	if err := c.out.add(conn); err != nil {
		conn.abort()
		return nil, err
	}
	return conn, nil
}

func dialTLS(ctx context.Context, address string, conf *tls.Config) (*tls.Conn, error) {
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := dialer.DialContext(connecting, "tcp", address)
	if err != nil {
		return nil, err
	}
	ctx, cancel = context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	t := tls.Client(raw, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return t, nil
}
