package sds

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	resumeTries = 5 // consecutive attempts without a byte
	resumePause = 200 * time.Millisecond
)

// Resume reads size bytes from a source that may be interrupted, such as
// another node's ExportImage: it is opened again at the next byte. It returns
// an error after some attempts without a byte, and at once if open returns an
// *api.Error that is not unavailable. The caller must close it.
func Resume(ctx context.Context, size int64, open func(ctx context.Context, from int64) (io.ReadCloser, error)) io.ReadCloser {
	return &resume{ctx: ctx, size: size, open: open, pause: resumePause}
}

type resume struct {
	ctx   context.Context
	open  func(ctx context.Context, from int64) (io.ReadCloser, error)
	size  int64
	pause time.Duration

	at    int64
	body  io.ReadCloser // nil: not open
	tries int           // since the last byte
}

func (r *resume) Read(p []byte) (int, error) {
	for {
		if r.at >= r.size {
			return 0, io.EOF
		}
		n, err := r.readOnce(p[:min(int64(len(p)), r.size-r.at)])
		if n > 0 {
			r.at, r.tries = r.at+int64(n), 0
			return n, nil // an error is returned again for the next byte
		}
		if err == nil {
			return 0, nil
		}
		if err := r.again(err); err != nil {
			return 0, err
		}
	}
}

func (r *resume) readOnce(p []byte) (int, error) {
	if r.body == nil {
		body, err := r.open(r.ctx, r.at)
		if err != nil {
			return 0, err
		}
		r.body = body
	}
	n, err := r.body.Read(p)
	if err != nil {
		_ = r.Close()
	}
	return n, err
}

// again waits for the next attempt, or returns why there is none.
func (r *resume) again(err error) error {
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	var said *api.Error
	if errors.As(err, &said) && said.Code != api.CodeUnavailable {
		return err
	}
	if r.tries++; r.tries >= resumeTries {
		return errors.Join(api.Errorf(api.CodeUnavailable, "the transfer was interrupted after %d of %d bytes", r.at, r.size).WithHint("try again"), err)
	}
	select {
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-time.After(r.pause << r.tries):
		return nil
	}
}

// Close implements io.Closer.
func (r *resume) Close() error {
	if r.body == nil {
		return nil
	}
	body := r.body
	r.body = nil
	return body.Close()
}
