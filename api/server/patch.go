package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/basalt-gpu/basalt/api"
)

// mostAttempts limits the attempts to make a change without If-Match after concurrent
// changes.
const mostAttempts = 8

// again calls once to change the current state, and again after concurrent changes unless
// the request has a revision.
func again[T any](ctx context.Context, once func() (*T, error)) (*T, error) {
	for i := 1; ; i++ {
		out, err := once()
		if err == nil || i == mostAttempts || api.CodeOf(err) != api.CodeConflict || expected(ctx) != api.AnyRevision {
			return out, err
		}
	}
}

// patched reads a JSON merge patch (RFC 7396), and calls once to apply it to the current
// state, as again does.
func patched[T any](ctx context.Context, body io.Reader, once func(patch any) (*T, error)) (*T, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	patch, err := document(raw)
	if err != nil {
		return nil, err
	}
	if _, ok := patch.(map[string]any); !ok {
		return nil, api.Errorf(api.CodeInvalid, "patch must be a JSON object").WithHint("send an object with the fields that change")
	}
	return again(ctx, func() (*T, error) { return once(patch) })
}

// patch applies a JSON merge patch to an object.
func (k resource[T, S]) patch(ctx context.Context, h *handlers, ref string, patch any) (*T, error) {
	kind := api.KindOf[T]()
	now, err := get[T](ctx, h, kind, ref, "", "")
	if err != nil {
		return nil, err
	}
	kindMarks[kind].clear(reflect.ValueOf(&now).Elem(), anOperator) // the patch must not contain secrets that it does not change
	m := api.MetaOf(&now)
	if revision := expected(ctx); revision != api.AnyRevision {
		m.Revision = revision
	}
	next, err := merged(now, patch)
	if err != nil {
		return nil, err
	}
	return k.update(ctx, h, m.ID, next)
}

// merged returns a value with a patch applied.
func merged[T any](now T, patch any) (next T, err error) {
	raw, err := json.Marshal(now)
	if err != nil {
		return next, err
	}
	target, err := document(raw)
	if err != nil {
		return next, err
	}
	if raw, err = json.Marshal(mergePatch(target, patch)); err != nil {
		return next, err
	}
	return next, decodeStrict(raw, &next)
}

// document parses JSON of any structure, leaving numbers unparsed.
func document(raw []byte) (v any, err error) {
	if depth(raw) > maxDepth {
		return nil, api.Errorf(api.CodeInvalid, "invalid JSON: nested more than %d levels deep", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, badJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, api.Errorf(api.CodeInvalid, "invalid JSON at byte %d: more than one value", dec.InputOffset())
	}
	return v, nil
}

// mergePatch implements the algorithm of RFC 7396.
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
