package imagefile

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sds"
)

const (
	maxRedirects = 5
	fetchTime    = 6 * time.Hour // for all of an image
	// slowest is the minimum rate in bytes per minute, below which a download is
	// abandoned: a server that sends a byte now and then would delay others'
	// images.
	slowest = 1 << 20
)

// Open opens the source of an image. size is -1 if it is unknown.
func (r Receiver) Open(ctx context.Context, in sds.ImageImport) (io.ReadCloser, int64, error) {
	if in.Content != nil {
		if in.SizeBytes > 0 {
			return io.NopCloser(in.Content), in.SizeBytes, nil
		}
		return io.NopCloser(in.Content), -1, nil
	}
	u, err := url.Parse(in.URL)
	if err != nil {
		return nil, 0, badURL("%q is not a valid URL", in.URL)
	}
	switch u.Scheme {
	case "file":
		if !r.AllowFileURL {
			return nil, 0, badURL("importing images from files of the node is not allowed")
		}
		return openFile(u.Path)
	case "http", "https":
		return r.fetch(ctx, u)
	}
	return nil, 0, badURL("unsupported URL scheme %q, want http or https", in.URL)
}

func openFile(path string) (io.ReadCloser, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not block
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, badURL("file %s does not exist", path)
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

// fetch requests the image with package outbound: users must not make the node
// send requests to its own services, or those in its network.
func (r Receiver) fetch(ctx context.Context, u *url.URL) (io.ReadCloser, int64, error) {
	o := r.URLs
	o.Redirects, o.Total, o.Slowest = maxRedirects, cmp.Or(o.Total, fetchTime), cmp.Or(o.Slowest, slowest)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, badURL("%q is not a valid URL", u.Redacted())
	}
	resp, err := outbound.NewClient(o).Do(req)
	if err != nil {
		return nil, 0, fetchError(err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, 0, badURL("the image server responded with status %d", resp.StatusCode).Because(api.Cause{Code: api.CauseSourceRefused, Count: int64(resp.StatusCode)}, "")
	}
	return fetched{resp.Body}, resp.ContentLength, nil
}

func badURL(format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, format, args...).At("spec.url")
}

// fetchError converts an error to one for users; the log contains the details.
func fetchError(err error) error {
	if errors.Is(err, outbound.ErrRefused) {
		return badURL("cannot download the image: %v", outbound.ErrRefused).
			Because(api.Cause{Code: api.CauseSourceForbidden}, "").WithHint("upload the image instead, or ask the operator to allow the address")
	}
	return api.Errorf(api.CodeUnavailable, "cannot download the image: %v", outbound.ErrFailed).
		Because(api.Cause{Code: api.CauseSourceUnreachable}, "").WithHint("try again, or upload the image instead")
}

// fetched is the body of an image that is being downloaded.
type fetched struct{ io.ReadCloser }

// Read implements io.Reader.
func (f fetched) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fetchError(err)
	}
	return n, err
}
