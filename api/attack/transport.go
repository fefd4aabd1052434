package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) transportTries() []try {
	all := []try{
		{"A7 TLS before 1.2, or 1.2 with CBC or without forward secrecy", "no connection", w.oldTLS},
		{"A7 a browser comes without TLS next time", "it is told not to", w.strictTransport},
	}
	for _, c := range malformed {
		all = append(all, try{"A7 a body that is " + c.name, "400", func(ctx context.Context) error { return w.malformedBody(ctx, c.name, c.rest) }})
	}
	return all
}

const overTLS = leftOut("the API is spoken to without TLS")

func (w *world) oldTLS(ctx context.Context) error {
	if w.base.Scheme != "https" {
		return overTLS
	}
	try := func(change func(*tls.Config)) error {
		c := w.tls.Clone()
		c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		change(c)
		d := tls.Dialer{Config: c}
		conn, err := d.DialContext(ctx, "tcp", w.address())
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := try(func(*tls.Config) {}); err != nil {
		return fmt.Errorf("TLS 1.2 as it should be: %w", err)
	}
	for _, old := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if try(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, old }) == nil {
			return fmt.Errorf("a connection with %s", tls.VersionName(old))
		}
	}
	for _, suite := range []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_RSA_WITH_RC4_128_SHA} {
		if try(func(c *tls.Config) { c.CipherSuites = []uint16{suite} }) == nil {
			return fmt.Errorf("a connection with %s", tls.CipherSuiteName(suite))
		}
	}
	return nil
}

// address returns the address of the API's port.
func (w *world) address() string {
	port := w.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[w.base.Scheme]
	}
	return net.JoinHostPort(w.base.Hostname(), port)
}

func (w *world) strictTransport(ctx context.Context) error {
	if w.base.Scheme != "https" {
		return overTLS
	}
	for _, path := range []string{"/", "/v1/healthz", "/nowhere"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base.String()+path, nil)
		if err != nil {
			return err
		}
		resp, err := w.http.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.Header.Get("Strict-Transport-Security") == "" {
			return fmt.Errorf("%s has no Strict-Transport-Security", path)
		}
	}
	return nil
}

// malformed are bodies with the headers that precede them.
var malformed = []struct{ name, rest string }{
	{"a chunk whose length is no number", "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"},
	{"a chunk that is longer than it says", "Transfer-Encoding: chunked\r\n\r\n2\r\n{\"meta\":{}}\r\n0\r\n\r\n"},
	{"a chunk that ends early", "Transfer-Encoding: chunked\r\n\r\nffff\r\n{}"},
	{"a chunk of more than 64 bits", "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n"},
	{"chunks without an end", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"},
	{"shorter than its length", "Content-Length: 1000\r\n\r\n{}"},
	{"of two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"},
	{"of a negative length", "Content-Length: -1\r\n\r\n{}"},
	{"no JSON", "Content-Length: 1\r\n\r\n{"},
	{"empty", "Content-Length: 0\r\n\r\n"},
	{"not text", "Content-Length: 3\r\n\r\n\x00\xff\xfe"},
	{"nested without end", "Content-Length: 100000\r\n\r\n" + strings.Repeat("[", 100_000)},
	{"a field that is not there", "Content-Length: 13\r\n\r\n{\"hidden\":{}}"},
	{"the same field twice in other letters", "Content-Length: 36\r\n\r\n{\"meta\":{\"name\":\"x\"},\"Meta\":{\"x\":1}}"},
}

// endless are bodies whose end a server waits for.
var endless = map[string]bool{"a chunk that ends early": true, "chunks without an end": true, "shorter than its length": true}

// malformedBody sends a body in an operator's request to create an organization.
func (w *world) malformedBody(ctx context.Context, name, rest string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var dial interface {
		DialContext(context.Context, string, string) (net.Conn, error)
	} = &net.Dialer{}
	if w.base.Scheme == "https" {
		c := w.tls.Clone()
		c.NextProtos = []string{"http/1.1"}
		dial = &tls.Dialer{Config: c}
	}
	conn, err := dial.DialContext(ctx, "tcp", w.address())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = fmt.Fprintf(conn, "POST /v1/organizations HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nConnection: close\r\n%s", w.base.Host, w.op, rest)
	// A server treats the end of the connection after a whole request as a client that
	// has disconnected, so only bodies without an end get it.
	if half, ok := conn.(interface{ CloseWrite() error }); ok && endless[name] {
		_ = half.CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusBadRequest {
		err = errors.Join(err, fmt.Errorf("%s %.200s", resp.Status, said))
	}
	if strings.Contains(string(said), string(api.CodeInternal)) {
		err = errors.Join(err, fmt.Errorf("an internal error: %.200s", said))
	}
	return err
}
