package server

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/basalt-gpu/basalt/api"
)

// StrictTransport tells browsers that connect over TLS to use only TLS for a year.
func StrictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// sentBody wraps a request's body, so that an error while reading it is reported as the
// client's error, not the server's.
type sentBody struct{ io.ReadCloser }

// Read implements io.Reader.
func (b sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &tooLarge):
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, api.Errorf(api.CodeInvalid, "request body was not received within %v", requestTime).WithHint("try again")
	}
	return n, api.Errorf(api.CodeInvalid, "request body is malformed or incomplete").WithHint("its length or chunks do not match what was declared")
}
