package server

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// maxMisfits limits the errors in one response.
const maxMisfits = 32

// misfits are the errors of a body whose structure does not match its type: unknown
// fields, and values of a wrong type. The decoder alone would report only the first.
type misfits []error

// misfitsOf compares v, a JSON value with unparsed numbers, with type t. It returns nil
// if it matches.
func misfitsOf(v any, t reflect.Type) error {
	var m misfits
	m.compare("", v, t)
	return api.Join(m...)
}

func (m *misfits) compare(path string, v any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v == nil || len(*m) >= maxMisfits || decodesItself(t):
		return
	case !fits(v, t):
		*m = append(*m, api.Errorf(api.CodeInvalid, "invalid value: %s", valueWords(v)).At(path).WithHint("want %s", typeWords(t)))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if member := memberType(t, name); member != nil {
				m.compare(at, v[name], member)
			} else if len(*m) < maxMisfits {
				*m = append(*m, api.Errorf(api.CodeInvalid, "unknown field").At(at).WithHint("GET /openapi.yaml lists the fields"))
			}
		}
	case []any:
		for i, value := range v {
			m.compare(fmt.Sprintf("%s[%d]", path, i), value, t.Elem())
		}
	}
}

// decodesItself reports whether the type has its own decoding, or accepts any value.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Interface || p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fits reports whether a value has the type, ignoring its elements.
func fits(v any, t reflect.Type) bool {
	bytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 // base64
	switch v := v.(type) {
	case map[string]any:
		return t.Kind() == reflect.Struct || t.Kind() == reflect.Map
	case []any:
		return t.Kind() == reflect.Slice && !bytes
	case string:
		return t.Kind() == reflect.String || bytes
	case bool:
		return t.Kind() == reflect.Bool
	case json.Number:
		var err error
		switch t.Kind() {
		case reflect.Int, reflect.Int64:
			_, err = strconv.ParseInt(v.String(), 10, t.Bits())
		case reflect.Float64:
			_, err = strconv.ParseFloat(v.String(), 64)
		default:
			return false
		}
		return err == nil
	}
	return true
}

// memberType returns the type of a struct's field or of a map's values, or nil if there
// is no such field.
func memberType(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type
		}
	}
	return nil
}

// valueWords describes a JSON value in words.
func valueWords(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return fmt.Sprintf("the number %.32s", v)
	}
	return "null"
}

func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "text in base64"
		}
		return "a list"
	}
	return "an object"
}
