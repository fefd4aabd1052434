package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// The errors of a client. Each error matches one of them with errors.Is and wraps the
// exact one, which is only for the log; PublicError removes it.
var (
	ErrRefused = errors.New("the address is not allowed")
	ErrFailed  = errors.New("the address cannot be fetched")
)

// PublicError returns what may be shown of an error to whoever chose the address.
func PublicError(err error) error {
	if errors.Is(err, ErrRefused) {
		return ErrRefused
	}
	return ErrFailed
}

// Options are the options of a client. For times of 0, the constants below apply.
type Options struct {
	Policy Policy
	// Redirects is how many redirects are followed; 0: none, and the redirect itself is
	// the response.
	Redirects int
	// MaxBody limits how many bytes of a body are read before it fails; 0: no limit.
	MaxBody int64
	Connect time.Duration // limit of each of name resolution, connection and TLS handshake
	Header  time.Duration // from the request to the response's headers
	Silence time.Duration // without a byte of the body
	// Slowest is the least number of bytes of a body per Silence of waiting; fewer are
	// an error; 0: any.
	Slowest int64
	Total   time.Duration // of a request with its body, separately for each redirect; 0: a day
	// Keep keeps connections open for later requests.
	Keep bool
	// Log receives the exact errors; nil: they are discarded.
	Log *slog.Logger
}

const (
	connectTime = 15 * time.Second
	headerTime  = 30 * time.Second
	silenceTime = 60 * time.Second
	totalTime   = 24 * time.Hour
	maxHeaders  = 64 << 10
	// maxTries limits the addresses of a name that are tried.
	maxTries = 4
)

// NewClient returns a client that reaches only addresses allowed by the policy.
func NewClient(o Options) *http.Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Connect, o.Header, o.Silence, o.Total = cmp.Or(o.Connect, connectTime), cmp.Or(o.Header, headerTime), cmp.Or(o.Silence, silenceTime), cmp.Or(o.Total, totalTime)
	d := dialer{o.Policy, o.Connect, net.DefaultResolver.LookupNetIP}
	t := &http.Transport{
		DialContext: d.dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: o.Connect,
		ResponseHeaderTimeout: o.Header, MaxResponseHeaderBytes: maxHeaders, DisableCompression: true,
		DisableKeepAlives: !o.Keep, MaxIdleConns: 64, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}
	return &http.Client{Transport: transport{t, o}, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if o.Redirects == 0 {
			return http.ErrUseLastResponse
		}
		err := checkScheme(to.URL)
		if len(via) > o.Redirects {
			err = fmt.Errorf("%w: more than %d redirects", ErrRefused, o.Redirects)
		}
		return o.logged(to.URL, err)
	}}
}

// logged logs and returns an error of a request to an address, without the parts of the address that
// may be secret.
func (o Options) logged(to *url.URL, err error) error {
	if err != nil {
		o.Log.Warn("fetch of an address set by a tenant or provider failed", "scheme", to.Scheme, "host", to.Host, "error", err)
	}
	return err
}

func checkScheme(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: %q is neither http nor https", ErrRefused, u.Redacted())
	}
	return nil
}

// dialer resolves a name once, and connects only to the addresses that it has checked.
type dialer struct {
	policy Policy
	limit  time.Duration
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func (d dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	refused := fmt.Errorf("%w: %s is %v", ErrRefused, host, found)
	tries := 0
	for _, ip := range found {
		if tries == maxTries || !d.policy.Allows(ip) {
			continue
		}
		tries++
		conn, err := (&net.Dialer{Timeout: d.limit}).DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), port))
		if err == nil {
			return conn, nil
		}
		refused = err
	}
	return nil, refused
}

// resolve resolves a name, or parses an address.
func (d dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	found, err := d.lookup(ctx, "ip", host)
	for i, ip := range found {
		found[i] = ip.Unmap() // the resolver returns IPv4 addresses in both forms
	}
	return found, err
}

// transport limits the time and size of a response's body.
type transport struct {
	http *http.Transport
	o    Options
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkScheme(r.URL); err != nil {
		return nil, t.o.logged(r.URL, err)
	}
	ctx, end := context.WithTimeout(r.Context(), t.o.Total)
	ctx, because := context.WithCancelCause(ctx)
	cancel := func(why error) { because(why); end() }
	resp, err := t.http.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		if !errors.Is(err, ErrRefused) {
			err = fmt.Errorf("%w: %w", ErrFailed, err)
		}
		return nil, t.o.logged(r.URL, err)
	}
	silent := fmt.Errorf("no data received for %v", t.o.Silence)
	resp.Body = &body{ReadCloser: resp.Body, o: t.o, from: r.URL, left: t.o.MaxBody, ctx: ctx, cancel: cancel,
		timer: time.AfterFunc(t.o.Silence, func() { cancel(silent) })}
	return resp, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t transport) CloseIdleConnections() { t.http.CloseIdleConnections() }

// body fails when no data arrives for too long, and when it is too large.
type body struct {
	io.ReadCloser
	o      Options
	from   *url.URL
	left   int64
	ctx    context.Context
	cancel func(error)
	timer  *time.Timer
	// waited is the time that passed while came bytes arrived, since the last check.
	waited time.Duration
	came   int64
}

// Read implements io.Reader. Its errors are io.EOF and those that match ErrFailed.
func (b *body) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(b.o.Silence)
	}
	b.waited, b.came = b.waited+time.Since(began), b.came+int64(n)
	if b.waited >= b.o.Silence {
		if b.came < b.o.Slowest && err == nil {
			err = fmt.Errorf("too slow: received only %d bytes in %v", b.came, b.waited.Round(time.Millisecond))
		}
		b.waited, b.came = 0, 0
	}
	if b.left -= int64(n); b.o.MaxBody > 0 && b.left < 0 {
		return 0, b.o.logged(b.from, fmt.Errorf("%w: response body is larger than %d bytes", ErrFailed, b.o.MaxBody))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if why := context.Cause(b.ctx); why != nil {
			err = why
		}
		err = b.o.logged(b.from, fmt.Errorf("%w: %w", ErrFailed, err))
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
