package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
)

// sendError writes the error as the response, with its status.
func (s *Server) sendError(err error, c echo.Context) {
	if c.Response().Committed {
		return // an interrupted stream; the client notices that itself
	}
	if strings.HasPrefix(c.Request().URL.Path, scimPath) {
		s.sendScimError(err, c)
		return
	}
	e := s.outward(err, c.Request().Method, c.Path(), readerOf(c.Request().Context()))
	if e.Code == api.CodeUnauthenticated {
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}
	if sendErr := api.WriteProblem(c.Response(), e); sendErr != nil {
		s.opts.Log.Debug("write error response failed", "route", c.Path(), "error", sendErr)
	}
}

// outward returns what the client gets for err. Only operators get its details. An error that is not a domain error is
// logged, and the client gets the number of its log entry.
func (s *Server) outward(err error, method, route string, by reader) *api.Error {
	if e := domainError(err); e != nil {
		out := *e
		out.By = nil // the caller may not be allowed to see it (inuse.go)
		if out.Detail != "" && by == anOperator {
			out.Message += ": " + out.Detail
		}
		out.Detail = ""
		return &out
	}
	var id [6]byte
	_, _ = rand.Read(id[:])
	number := hex.EncodeToString(id[:])
	s.opts.Log.Error("request failed", "id", number, "method", method, "route", route, "error", err)
	return api.Errorf(api.CodeInternal, "internal error %s", number).WithHint("the server's log has details under this number")
}

// domainError returns the domain error in err, or nil if there is none.
func domainError(err error) *api.Error {
	var e *api.Error
	var h *echo.HTTPError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &tooLarge):
		return api.Errorf(api.CodeTooLarge, "request body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &h):
		return routeError(h)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return api.Errorf(api.CodeUnavailable, "request timed out").WithHint("try again")
	}
	return nil
}

// routeError converts the errors of echo and of the generated code.
func routeError(h *echo.HTTPError) *api.Error {
	switch h.Code {
	case http.StatusNotFound:
		return api.Errorf(api.CodeNotFound, "path does not exist").WithHint("GET /openapi.yaml lists them")
	case http.StatusMethodNotAllowed:
		return api.Errorf(api.CodeInvalid, "method is not allowed for this path").WithHint("GET /openapi.yaml lists them")
	case http.StatusBadRequest: // "Invalid format for parameter limit: …"
		msg := fmt.Sprint(h.Message)
		if rest, ok := strings.CutPrefix(msg, "Invalid format for parameter "); ok {
			name, _, _ := strings.Cut(rest, ":")
			return api.Errorf(api.CodeInvalid, "parameter %s has an invalid value", name).At(name)
		}
		return api.Errorf(api.CodeInvalid, "%s", msg)
	}
	return nil
}

// recovered converts a panic into an internal error and logs its stack.
func (s *Server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}()
		return next(c)
	}
}

// headers sets the headers that every response has.
func headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		return next(c)
	}
}
