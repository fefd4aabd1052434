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
		return nil, api.Errorf(api.CodeInvalid, "patch must be a JSON object").WithHint(`as {"spec": {"vcpus": 4}}`)
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
