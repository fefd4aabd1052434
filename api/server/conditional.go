package server

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// An object's ETag is its revision in quotes. A change with that ETag in If-Match
// succeeds only while the object still has the revision (RFC 9110, section 13.1.1).

type ifMatchKey struct{}

// withIfMatch puts the request's If-Match into the context, if the operation supports
// it.
func withIfMatch(ctx context.Context, r *http.Request, o operation) (context.Context, error) {
	tag := strings.TrimSpace(r.Header.Get("If-Match"))
	if !o.conditional || tag == "" {
		return ctx, nil
	}
	if tag == "*" {
		return context.WithValue(ctx, ifMatchKey{}, api.AnyRevision), nil
	}
	text, err := strconv.Unquote(tag)
	revision, numberErr := strconv.ParseInt(text, 10, 64)
	if err != nil || numberErr != nil || revision < 0 || revision == 0 && !o.settings {
		return ctx, api.Errorf(api.CodeInvalid, "%.64q is not an ETag of an object", tag).At("If-Match").WithHint("use the object's revision in quotes, as returned in the ETag header of a GET")
	}
	return context.WithValue(ctx, ifMatchKey{}, revision), nil
}

// expected returns the revision in If-Match, or AnyRevision without one.
func expected(ctx context.Context) int64 {
	if revision, ok := ctx.Value(ifMatchKey{}).(int64); ok {
		return revision
	}
	return api.AnyRevision
}

// anyRevision reports whether the caller explicitly accepts any revision.
func anyRevision(ctx context.Context) bool {
	return ctx.Value(ifMatchKey{}) == api.AnyRevision
}

// unmatched converts the conflict of a request whose If-Match did not match into its
// error.
func unmatched(ctx context.Context, err error) error {
	if err == nil || expected(ctx) == api.AnyRevision || api.CodeOf(err) != api.CodeConflict {
		return err
	}
	return mismatch(expected(ctx))
}

// matches refuses a request whose If-Match is not the object's revision. Handlers that
// let the store compare the revision do not need it.
func matches(ctx context.Context, m api.Meta) error {
	if revision := expected(ctx); revision != api.AnyRevision && revision != m.Revision {
		return mismatch(revision)
	}
	return nil
}

func mismatch(revision int64) error {
	return api.Errorf(api.CodePrecondition, "the object has changed since it was read: it is not at revision %d of If-Match", revision).At("If-Match").
		WithHint("GET it again")
}

// setETag sets the ETag if the response is an object or settings.
func setETag(h http.Header, out any, o operation) {
	v := reflect.ValueOf(out).Elem()
	if o.settings {
		h.Set("ETag", etag(v.FieldByName("Revision").Int()))
		return
	}
	if v.Kind() != reflect.Struct || !v.FieldByName("Meta").IsValid() {
		return
	}
	if m, ok := v.FieldByName("Meta").Interface().(api.Meta); ok && m.Revision > 0 {
		h.Set("ETag", etag(m.Revision))
	}
}

func etag(revision int64) string { return strconv.Quote(strconv.FormatInt(revision, 10)) }
