package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	answerTime = 35 * time.Second // the server's own limit is 30 s
	maxAnswer  = 32 << 20
)

// wire sends requests to the API.
type wire struct {
	base *url.URL
	tls  *tls.Config
	http *http.Client
}

func newWire(o options) (*wire, error) {
	base, err := url.Parse(o.server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("--server: %q is not an address as https://HOST:PORT", o.server)
	}
	w := &wire{base: base, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	if o.caFile != "" {
		raw, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, err
		}
		w.tls.RootCAs = x509.NewCertPool()
		if !w.tls.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("--ca: %s has no certificates", o.caFile)
		}
	}
	w.http = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: w.tls, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w, nil
}

// answer is a response of the API.
type answer struct {
	status int
	raw    []byte
	to     string // of a redirect
	api.Problem
}

func (a answer) ok() bool { return a.status/100 == 2 }

// String returns the status and the beginning of the body, for a line of output.
func (a answer) String() string {
	return fmt.Sprintf("%d %.300s", a.status, bytes.TrimSpace(a.raw))
}

// once sends a request. headers are alternating names and values; a body that is a
// string is sent unchanged.
func (w *wire) once(ctx context.Context, token, method, path string, body any, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var content io.Reader
	if text, ok := body.(string); ok {
		content = strings.NewReader(text)
	} else if body != nil {
		content = bytes.NewReader(api.Encode(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, w.base.String()+path, content)
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, to: resp.Header.Get("Location")}
	if a.raw, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return a, err
	}
	if !a.ok() {
		_ = json.Unmarshal(a.raw, &a.Problem) // other responses have no code
	}
	return a, nil
}

// ask is once, repeated while a valid key is rate-limited.
func (w *wire) ask(ctx context.Context, token, method, path string, body any, headers ...string) (answer, error) {
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		a, err := w.once(ctx, token, method, path, body, headers...)
		if err != nil || a.Code != api.CodeRateLimited && a.Code != api.CodeUnavailable || wait > 5*time.Second {
			return a, err
		}
		if err := pause(ctx, wait); err != nil {
			return a, err
		}
	}
}

// refused sends a request, and returns an error unless it fails with one of the codes.
func (w *wire) refused(ctx context.Context, token, method, path string, body any, codes ...api.Code) error {
	a, err := w.ask(ctx, token, method, path, body)
	if err == nil && !slices.Contains(codes, a.Code) {
		err = fmt.Errorf("%s %s: %s", method, path, a)
	}
	return err
}

// fetch sends a request that must succeed.
func fetch[T any](ctx context.Context, w *wire, token, method, path string, body any) (T, error) {
	var out T
	a, err := w.ask(ctx, token, method, path, body)
	if err == nil && !a.ok() {
		err = fmt.Errorf("%s %s: %s", method, path, a)
	}
	if err == nil && len(a.raw) > 0 {
		err = json.Unmarshal(a.raw, &out)
	}
	return out, err
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// within calls ok until it returns true or an error.
func within(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		if done, err := ok(); done || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %v", what, limit)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// each joins the errors of f for all items.
func each[T any](all []T, f func(T) error) error {
	var wrong []error
	for _, x := range all {
		if err := f(x); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}
