package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// request is a request to the API.
type request struct {
	method string
	path   []string // elements of the path below /v1, unescaped
	params any      // a struct of package api with the query's parameters; nil: none
	query  url.Values
	body   any // sent as JSON; nil: none

	content io.Reader // sent unchanged; nil: none
	size    int64     // of content; -1: unknown
	kind    string    // media type of content; empty: bytes

	ifMatch string // ETag that the object must have; empty: any
}

// get sends a GET request for a path.
func get[T any](ctx context.Context, a *API, params any, path ...string) (T, error) {
	return call[T](ctx, a, request{method: http.MethodGet, path: path, params: params})
}

// post sends a POST request for a path.
func post[T any](ctx context.Context, a *API, body any, path ...string) (T, error) {
	return call[T](ctx, a, request{method: http.MethodPost, path: path, body: body})
}

// put sends a PUT request for a path.
func put[T any](ctx context.Context, a *API, body any, path ...string) (T, error) {
	return call[T](ctx, a, request{method: http.MethodPut, path: path, body: body})
}

// patch sends a PATCH request with a JSON merge patch (RFC 7396) for a path.
func patch[T any](ctx context.Context, a *API, body any, path ...string) (T, error) {
	return call[T](ctx, a, request{method: http.MethodPatch, path: path, body: body})
}

// call sends a request and decodes the response, or returns its error.
func call[T any](ctx context.Context, a *API, r request) (T, error) {
	var out T
	resp, err := a.send(ctx, r)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read response to %s %s: %w", r.method, strings.Join(r.path, "/"), err)
	}
	return out, nil
}

// save sends a request and copies the response's body to w.
func (a *API) save(ctx context.Context, w io.Writer, r request) error {
	resp, err := a.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// send sends a request. It returns a successful response, whose body the caller must
// close.
func (a *API) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := a.request(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := a.do(req)
	if err != nil {
		return nil, err
	}
	if err := failure(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func (a *API) request(ctx context.Context, r request) (*http.Request, error) {
	address := a.Address() + "/v1"
	for _, part := range r.path {
		if part == "" || part == "." || part == ".." {
			return nil, api.Errorf(api.CodeInvalid, "%q is neither a name nor an ID", part)
		}
		address += "/" + url.PathEscape(part)
	}
	query := r.query
	if r.params != nil {
		query = parameters(r.params)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	body, kind := r.content, cmp.Or(r.kind, "application/octet-stream")
	if r.body != nil {
		raw, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", r.body, err)
		}
		body, kind = bytes.NewReader(raw), "application/json"
		if r.method == http.MethodPatch {
			kind = "application/merge-patch+json"
		}
	} else if body != nil {
		body = io.NopCloser(body) // it is closed by the caller who provided it
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if r.content != nil {
		req.ContentLength = r.size
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	return req, nil
}

// parameters returns a query with the fields of a struct that have a form tag. Optional
// fields are left out if they are zero.
func parameters(of any) url.Values {
	out := url.Values{}
	all := reflect.ValueOf(of)
	for i := range all.NumField() {
		v := all.Field(i)
		name, optional := strings.CutSuffix(all.Type().Field(i).Tag.Get("form"), ",omitempty")
		if name == "" || optional && v.IsZero() {
			continue
		}
		if v.Kind() == reflect.Slice {
			for n := range v.Len() {
				out.Add(name, word(v.Index(n)))
			}
			continue
		}
		out.Set(name, word(v))
	}
	return out
}

func word(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v.Interface())
}
