package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

// Protocols, by their ALPN names.
const (
	ProtocolRaft = "basalt-raft/1"
	ProtocolPeer = "basalt-peer/1"
	ProtocolJoin = "basalt-join/1"
)

// maxCall is the maximum size of the JSON of a call, and of its answer, in bytes.
const maxCall = 16 << 20

// Client reaches other nodes by their IDs. It is safe for concurrent use.
type Client struct {
	certificates *pki.CertificateStore
	book         *AddressBook
	log          *slog.Logger
	pool         *http.Transport
	out          conns
}

// NewClient creates the client of the node whose identity the CertificateStore holds.
func NewClient(certificates *pki.CertificateStore, book *AddressBook, log *slog.Logger) *Client {
	c := &Client{certificates: certificates, book: book, log: orDiscard(log)}
	c.pool = &http.Transport{
		// The "host" is a node's ID. The scheme is http because TLS is set up here
		// and not by net/http.
		DialContext: func(ctx context.Context, _, host string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(host)
			if err != nil {
				return nil, err
			}
			conn, err := c.dial(ctx, api.NodeID(node), ProtocolPeer)
			if err != nil {
				return nil, err
			}
			return conn, nil
		},
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: maxHeader,
		DisableCompression: true, ExpectContinueTimeout: time.Second,
	}
	return c
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Self returns this node's ID.
func (c *Client) Self() api.NodeID { return c.certificates.Node() }

// AddressBook returns the book of paths that the client uses.
func (c *Client) AddressBook() *AddressBook { return c.book }

// Close closes every connection.
func (c *Client) Close() {
	c.out.shut()
	c.pool.CloseIdleConnections()
}

// Disconnect closes this node's connections to another node.
func (c *Client) Disconnect(node api.NodeID) {
	c.out.abort(func(x *conn) bool { return x.node == node })
}

// leave closes the connections that can be reopened on another path, those of Raft
// and of the pool but not streams, and returns their number.
func (c *Client) leave(node api.NodeID, address string) int {
	return c.out.abort(func(x *conn) bool { return x.node == node && x.address == address && !x.stream.Load() })
}

// Do sends a request to a node over a pooled connection, on any path that works.
// Only the path and the query of the URL are used. The node's response is returned
// unchanged; see Call.
func (c *Client) Do(ctx context.Context, node api.NodeID, r *http.Request) (*http.Response, error) {
	var used *conn
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { used, _ = i.Conn.(*conn) }}
	out := r.Clone(httptrace.WithClientTrace(ctx, trace))
	out.URL = &url.URL{Scheme: "http", Host: string(node), Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	out.RequestURI = ""
	resp, err := c.pool.RoundTrip(out)
	if err == nil {
		return resp, nil
	}
	if used != nil && errors.Is(err, context.DeadlineExceeded) {
		// Either the path is dead or the node is slow. The next call tries another
		// path first, until a ping on this one is answered.
		c.book.failed(node, used.address, time.Now(), err)
	}
	var known *api.Error
	if !errors.As(err, &known) && used != nil {
		err = unreachable(node, err)
	}
	return nil, err
}

// Call sends in as JSON (no body if nil) and decodes the answer into out (ignored
// if nil). An error that the node returned is an *api.Error.
func (c *Client) Call(ctx context.Context, node api.NodeID, method, path string, in, out any) error {
	r, err := newCall(ctx, method, path, in)
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, node, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readAnswer(node, resp, out)
}

func newCall(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		if len(raw) > maxCall {
			return nil, api.Errorf(api.CodeTooLarge, "message to a node has %d bytes, want at most %d", len(raw), maxCall)
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// readAnswer reads the answer to a call. An internal error of the other node stays
// internal: it must not reach a user as if it were meant for users.
func readAnswer(from api.NodeID, resp *http.Response, out any) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxCall+1))
	if err != nil {
		return unreachable(from, err)
	}
	if len(raw) > maxCall {
		return fmt.Errorf("response of node %s is larger than %d bytes", from, maxCall)
	}
	if resp.StatusCode >= 300 {
		e := new(api.Error)
		switch {
		case json.Unmarshal(raw, e) != nil || e.Code == "":
			return fmt.Errorf("node %s responded with status %s", from, resp.Status)
		case e.Code == api.CodeInternal:
			return fmt.Errorf("node %s: %s", from, e.Message)
		}
		return e
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("read response of node %s: %w", from, err)
	}
	return nil
}
