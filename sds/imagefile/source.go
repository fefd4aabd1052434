package imagefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

const (
	dialTime     = 15 * time.Second
	headerTime   = 30 * time.Second
	stallTime    = 60 * time.Second // without a byte, a transfer is given up
	maxRedirects = 5
)

// Open begins to read an image. size is -1 when the source does not say.
func (r Receiver) Open(ctx context.Context, in sds.ImageImport) (io.ReadCloser, int64, error) {
	if in.Content != nil {
		if in.SizeBytes > 0 {
			return io.NopCloser(in.Content), in.SizeBytes, nil
		}
		return io.NopCloser(in.Content), -1, nil
	}
	u, err := url.Parse(in.URL)
	if err != nil {
		return nil, 0, badURL("not an address: %q", in.URL)
	}
	switch u.Scheme {
	case "file":
		if !r.AllowFileURL {
			return nil, 0, badURL("images from the node's own files are not allowed here")
		}
		return openFile(u.Path)
	case "http", "https":
		return r.fetch(ctx, u)
	}
	return nil, 0, badURL("%q is neither http nor https", in.URL)
}

func openFile(path string) (io.ReadCloser, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hang us
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, badURL("there is no file %s", path)
	}
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, 0, errors.Join(badURL("%s is not a regular file", path), err)
	}
	return f, st.Size(), nil
}

// fetch asks for the image. Nobody may make the node ask its own services, or
// those beside it, in his name: the address is checked after the name is
// resolved, at every redirect.
func (r Receiver) fetch(ctx context.Context, u *url.URL) (io.ReadCloser, int64, error) {
	dialer := &net.Dialer{Timeout: dialTime, Control: func(_, address string, _ syscall.RawConn) error {
		if r.AllowPrivateURL {
			return nil
		}
		return publicOnly(address)
	}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: headerTime,
		DisableCompression: true, DisableKeepAlives: true,
	}
	if r.AllowPrivateURL {
		transport.Proxy = http.ProxyFromEnvironment // whose addresses nobody could check
	}
	client := &http.Client{
		Transport: transport,
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || to.URL.Scheme != "http" && to.URL.Scheme != "https" {
				return badURL("the address leads on to %d others, or to none of http and https", len(via))
			}
			return nil
		},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, 0, badURL("not an address: %q", u.Redacted())
	}
	resp, err := client.Do(req)
	if err != nil {
		cancel(nil)
		var e *api.Error
		if errors.As(err, &e) {
			return nil, 0, e
		}
		return nil, 0, errors.Join(api.Errorf(api.CodeUnavailable, "the image's server %s does not answer", u.Host), err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		cancel(nil)
		return nil, 0, badURL("the image's server answers %s", resp.Status)
	}
	return newStall(resp.Body, cancel), resp.ContentLength, nil
}

func badURL(format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, format, args...).At("spec.url")
}

// private is what net/netip has no predicate for: carrier-grade NAT, the
// benchmarking nets, "this network", and addresses that carry an IPv4 one.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

// publicOnly refuses an address ("192.0.2.1:80") that is not of the public
// internet.
func publicOnly(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip := ap.Addr().Unmap()
	ok := ip.IsGlobalUnicast() && !ip.IsPrivate()
	for _, p := range private {
		ok = ok && !p.Contains(ip)
	}
	if !ok {
		return badURL("the image's server has the address %s, which is not public", ip).
			WithHint("send the image's content instead, or let the operator allow private addresses")
	}
	return nil
}

// stall gives a transfer up when no byte has come for a while.
type stall struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	timer  *time.Timer
	fired  atomic.Bool
}

func newStall(body io.ReadCloser, cancel context.CancelCauseFunc) *stall {
	s := &stall{body: body, cancel: cancel}
	s.timer = time.AfterFunc(stallTime, func() { s.fired.Store(true); cancel(errors.New("stalled")) })
	return s
}

func (s *stall) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 {
		s.timer.Reset(stallTime)
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case s.fired.Load():
		return n, api.Errorf(api.CodeUnavailable, "the image's server has sent nothing for %v", stallTime).WithHint("try again")
	default:
		return n, errors.Join(api.Errorf(api.CodeUnavailable, "the connection to the image's server broke").WithHint("try again"), err)
	}
}

func (s *stall) Close() error {
	s.timer.Stop()
	s.cancel(nil)
	return s.body.Close()
}
