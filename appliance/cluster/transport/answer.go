package transport

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// WriteError sends err as the response.
func WriteError(w http.ResponseWriter, err error) {
	e := Domain(err)
	writeJSON(w, e.Code.HTTPStatus(), e)
}

// Domain returns err as a domain error. Any other error becomes an internal one
// with its text: only members and root on the node read it, and Client.Call does
// not pass it to users.
func Domain(err error) *api.Error {
	var e *api.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &large):
		e = api.Errorf(api.CodeTooLarge, "request body is larger than %d bytes", large.Limit)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e = api.Errorf(api.CodeUnavailable, "request timed out").WithHint("try again")
	default:
		e = api.Errorf(api.CodeInternal, "%s", err)
	}
	return e
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// JSON returns a handler that calls fn; it is the server's side of Client.Call. A
// request without a body leaves In zero. caller is the member that called, or ""
// for a joining node.
func JSON[In, Out any](fn func(ctx context.Context, caller api.NodeID, in In) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		if r.ContentLength != 0 {
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCall)).Decode(&in); err != nil {
				var large *http.MaxBytesError
				if !errors.As(err, &large) {
					err = api.Errorf(api.CodeInvalid, "message is malformed").WithHint("check that both nodes run the same version")
				}
				WriteError(w, err)
				return
			}
		}
		out, err := fn(r.Context(), Caller(r.Context()), in)
		if err != nil {
			WriteError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

type callerKey struct{}

// Caller returns the member that sent the request, or "" if no member did.
func Caller(ctx context.Context) api.NodeID {
	c, _ := ctx.Value(callerKey{}).(*conn)
	if c == nil {
		return ""
	}
	return c.node
}
