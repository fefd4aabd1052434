package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// MergePatch returns the JSON merge patch (RFC 7396) that changes was to now, which encode
// as objects: members that are gone are null, and arrays are replaced as a whole. It panics
// if a value cannot be encoded, which is a programming error.
func MergePatch[T any](was, now T) map[string]any { return difference(members(was), members(now)) }

func members(v any) (out map[string]any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("client: encode %T: %v", v, err))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		panic(fmt.Sprintf("client: %T does not encode as an object: %v", v, err))
	}
	return out
}

func difference(was, now map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range was {
		if _, kept := now[name]; !kept {
			patch[name] = nil
		}
	}
	for name, v := range now {
		before, both := was[name].(map[string]any)
		after, is := v.(map[string]any)
		switch {
		case both && is:
			if inner := difference(before, after); len(inner) > 0 {
				patch[name] = inner
			}
		case !reflect.DeepEqual(was[name], v):
			patch[name] = v
		}
	}
	return patch
}
