package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// operation describes an operation of openapi.yaml; the table is in operations.gen.go.
//
//go:generate go run ./operationtable
type operation struct {
	method, path string
	status       int      // of a successful response
	conditional  bool     // supports If-Match
	settings     bool     // it answers with settings, whose ETag is that of revision 0 before their first change
	dryRun       bool     // it has a dry run
	hides        []*marks // in its responses
}

// in is a request of an operation: the parameter in its path, its other parameters P,
// and its body B. An operation without parameters or body uses none.
type in[P, B any] struct {
	ID     string
	Params P
	Body   *B
}

type none struct{}

// body, byID and bare adapt functions that need only a part of a request.
func body[B, R any](f func(context.Context, *B) (*R, error)) func(context.Context, in[none, B]) (*R, error) {
	return func(ctx context.Context, r in[none, B]) (*R, error) { return f(ctx, r.Body) }
}

func byID[R any](f func(context.Context, string) (*R, error)) func(context.Context, in[none, none]) (*R, error) {
	return func(ctx context.Context, r in[none, none]) (*R, error) { return f(ctx, r.ID) }
}

func bare[R any](f func(context.Context) (*R, error)) func(context.Context, in[none, none]) (*R, error) {
	return func(ctx context.Context, _ in[none, none]) (*R, error) { return f(ctx) }
}

// stream is a body that is not JSON.
type stream struct{ io.Reader }

// answer is a response that is not JSON.
type answer interface {
	write(w http.ResponseWriter) error
}

// router collects the routes while they are registered.
type router struct {
	echo    *echo.Echo
	guard   func(operation string) echo.MiddlewareFunc
	missing []string // operations that are not in openapi.yaml or not in the table of rights
	served  map[string]shape
}

// shape is the types of an operation's parameters, body and response.
type shape struct{ parameters, body, answer reflect.Type }

// register registers the routes; every operation of openapi.yaml has one.
func (s *Server) register() error {
	r := &router{echo: s.echo, guard: s.guard, served: map[string]shape{}}
	(&handlers{s}).routes(r)
	for name := range contract {
		if _, ok := r.served[name]; !ok {
			r.missing = append(r.missing, name)
		}
	}
	if len(r.missing) > 0 {
		return fmt.Errorf("server: openapi.yaml, rights and routes do not agree on %q", r.missing)
	}
	return nil
}

// serve registers f as the handler of an operation, behind its guard.
func serve[P, B, R any](r *router, name string, f func(context.Context, in[P, B]) (*R, error)) {
	o, known := contract[name]
	if _, guarded := auth.Rights[name]; !known || !guarded {
		r.missing = append(r.missing, name)
		return
	}
	r.served[name] = shape{reflect.TypeFor[P](), reflect.TypeFor[B](), reflect.TypeFor[R]()}
	r.echo.Add(o.method, o.path, func(c echo.Context) error {
		ctx, err := withDryRun(c.Request(), name, o)
		if err != nil {
			return err
		}
		request, err := read[P, B](c)
		if err != nil {
			return err
		}
		if ctx, err = withIfMatch(ctx, c.Request(), o); err != nil {
			return err
		}
		out, err := f(ctx, request)
		if err != nil || out == nil {
			return unmatched(ctx, err)
		}
		if !dryRun(ctx) { // the tried revision is never stored
			setETag(c.Response().Header(), out, o)
		}
		if a, ok := any(*out).(answer); ok {
			return a.write(c.Response())
		}
		for _, s := range o.hides {
			s.clear(reflect.ValueOf(out).Elem(), readerOf(ctx))
		}
		return answerJSON(c.Response(), o.status, out)
	}, r.guard(name))
}

func answerJSON(w http.ResponseWriter, status int, out any) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(out); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err := text.WriteTo(w)
	return err
}

// read decodes a request.
func read[P, B any](c echo.Context) (in[P, B], error) {
	r := in[P, B]{ID: c.Param("id")}
	if c.Request().URL.RawPath != "" { // the router leaves it escaped
		id, err := url.PathUnescape(r.ID)
		if err != nil {
			return r, api.Errorf(api.CodeInvalid, "parameter id has an invalid value").At("id")
		}
		r.ID = id
	}
	if err := readParameters(c.Request(), reflect.ValueOf(&r.Params).Elem()); err != nil {
		return r, err
	}
	switch body := any(&r.Body).(type) {
	case **none:
	case **stream:
		if c.Request().Method == http.MethodPatch {
			if err := mediaType(c.Request(), patchType, jsonType); err != nil {
				return r, err
			}
		}
		*body = &stream{c.Request().Body}
	default:
		r.Body = new(B)
		if err := c.Bind(r.Body); err != nil {
			return r, err
		}
	}
	return r, nil
}

// readParameters fills a struct of package api: fields with a form tag from the query,
// the others from the headers that their json tags name.
func readParameters(r *http.Request, into reflect.Value) error {
	query := r.URL.Query()
	for i := range into.NumField() {
		tag := into.Type().Field(i).Tag
		if tag == "" { // an embedded group of parameters
			if err := readParameters(r, into.Field(i)); err != nil {
				return err
			}
			continue
		}
		name, optional := strings.CutSuffix(tag.Get("form"), ",omitempty")
		values := query[name]
		if name == "" {
			name, _, _ = strings.Cut(tag.Get("json"), ",")
			values, optional = r.Header.Values(name), true
		}
		if len(values) == 0 {
			if !optional {
				return api.Errorf(api.CodeInvalid, "parameter %s is required", name).At(name)
			}
			continue
		}
		if err := setAll(into.Field(i), values); err != nil {
			return api.Errorf(api.CodeInvalid, "parameter %s has an invalid value", name).At(name)
		}
	}
	return nil
}

func setAll(v reflect.Value, values []string) error {
	switch {
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), len(values), len(values)))
		for i, text := range values {
			if err := setOne(v.Index(i), text); err != nil {
				return err
			}
		}
		return nil
	case len(values) > 1:
		return fmt.Errorf("got %d values, want one", len(values))
	}
	return setOne(v, values[0])
}

func setOne(v reflect.Value, text string) error {
	if t, ok := v.Addr().Interface().(*time.Time); ok {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			at, err = time.Parse(time.DateOnly, text)
		}
		if err != nil {
			return fmt.Errorf("parse time: %w", err)
		}
		*t = at
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("parse number: %w", err)
		}
		v.SetInt(n)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("parse boolean: %w", err)
		}
		v.SetBool(b)
	default:
		return fmt.Errorf("unsupported parameter type %v", v.Type())
	}
	return nil
}

// file is a response whose content is complete in memory.
type file struct {
	kind    string
	content []byte
}

func (f file) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.content)))
	_, err := w.Write(f.content)
	return err
}

// nothing is a response without content.
type nothing struct{}

func (nothing) write(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
