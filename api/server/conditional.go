package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// An object's ETag is its revision in quotes; a change that names it in If-Match takes
// effect only while the object is as it was read (RFC 9110, 13.1.1).

type ifMatchKey struct{}

// withIfMatch puts a request's If-Match, where its operation heeds it, into the
// context.
func withIfMatch(r *http.Request, o operation) (context.Context, error) {
	ctx, tag := r.Context(), strings.TrimSpace(r.Header.Get("If-Match"))
	if !o.conditional || tag == "" {
		return ctx, nil
	}
	if tag == "*" {
		return context.WithValue(ctx, ifMatchKey{}, api.AnyRevision), nil
	}
	text, err := strconv.Unquote(tag)
	revision, numberErr := strconv.ParseInt(text, 10, 64)
	if err != nil || numberErr != nil || revision <= 0 {
		return ctx, api.Errorf(api.CodeInvalid, "%.64q is no ETag of an object", tag).At("If-Match").WithHint("the object's revision in quotes, as a GET answers in ETag")
	}
	return context.WithValue(ctx, ifMatchKey{}, revision), nil
}

// expected is the revision that If-Match asks for; AnyRevision without one.
func expected(ctx context.Context) int64 {
	if revision, ok := ctx.Value(ifMatchKey{}).(int64); ok {
		return revision
	}
	return api.AnyRevision
}

// anyRevision reports whether the caller said that any will do.
func anyRevision(ctx context.Context) bool {
	return ctx.Value(ifMatchKey{}) == api.AnyRevision
}

// unmatched is the error of a request whose If-Match did not hold.
func unmatched(ctx context.Context, err error) error {
	if err == nil || expected(ctx) == api.AnyRevision || api.CodeOf(err) != api.CodeConflict {
		return err
	}
	return api.Errorf(api.CodePrecondition, "the object has changed since it was read: If-Match says revision %d", expected(ctx)).At("If-Match").
		WithHint("GET it again")
}

// setETag of an answer that is an object.
func setETag(h http.Header, out any) {
	v := reflect.ValueOf(out).Elem()
	if v.Kind() != reflect.Struct || !v.FieldByName("Meta").IsValid() {
		return
	}
	if m, ok := v.FieldByName("Meta").Interface().(api.Meta); ok && m.Revision > 0 {
		h.Set("ETag", strconv.Quote(strconv.FormatInt(m.Revision, 10)))
	}
}

// mostPatches is how often a patch without If-Match is made again when somebody else
// was quicker.
const mostPatches = 8

// patch changes of an object what a JSON merge patch (RFC 7396) names.
func (k resource[T, S]) patch(ctx context.Context, h *handlers, ref string, body io.Reader) (*T, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	patch, err := document(raw)
	if err != nil {
		return nil, err
	}
	if _, ok := patch.(map[string]any); !ok {
		return nil, api.Errorf(api.CodeInvalid, "a patch is a JSON object").WithHint(`as {"spec": {"vcpus": 4}}`)
	}
	for i := 1; ; i++ {
		out, err := k.patchOnce(ctx, h, ref, patch)
		if err == nil || i == mostPatches || api.CodeOf(err) != api.CodeConflict || expected(ctx) != api.AnyRevision {
			return out, err
		}
	}
}

func (k resource[T, S]) patchOnce(ctx context.Context, h *handlers, ref string, patch any) (*T, error) {
	kind := api.KindOf[T]()
	now, err := get[T](ctx, h, kind, ref, "", "")
	if err != nil {
		return nil, err
	}
	kindSecrets[kind].clear(reflect.ValueOf(&now).Elem()) // who changes something else leaves them as they are
	m := api.MetaOf(&now)
	if revision := expected(ctx); revision != api.AnyRevision {
		m.Revision = revision
	}
	raw, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	target, err := document(raw)
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(mergePatch(target, patch)); err != nil {
		return nil, err
	}
	var next T
	if err := decodeStrict(raw, &next); err != nil {
		return nil, err
	}
	return k.update(ctx, h, m.ID, next)
}

// document is a JSON value of any form, with its numbers as they were written.
func document(raw []byte) (v any, err error) {
	if depth(raw) > maxDepth {
		return nil, api.Errorf(api.CodeInvalid, "the JSON is nested deeper than %d", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, badJSON(err)
	}
	return v, nil
}

// mergePatch is the algorithm of RFC 7396.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = mergePatch(out[name], value)
		}
	}
	return out
}
