package server

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Fields that openapi.yaml marks as writeOnly are accepted and never returned: they are
// removed from every response, whichever handler made it, and from every change in a
// watch. The marks are in operations.gen.go; the schema of a response is that of its
// operation.

// secrets are the marks below a schema; nil: none.
type secrets struct {
	drop   map[string]bool     // properties
	fields map[string]*secrets // properties with marks further below
	each   *secrets            // of an array's items, or an object's other properties
}

var rawType = reflect.TypeFor[json.RawMessage]()

// clear removes the marked fields from a value that the caller owns.
func (s *secrets) clear(v reflect.Value) {
	switch {
	case s == nil:
	case v.Type() == rawType:
		v.SetBytes(s.clearJSON(v.Bytes()))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		s.clear(v.Elem())
	case v.Kind() == reflect.Slice && s.each != nil:
		for i := range v.Len() {
			s.each.clear(v.Index(i))
		}
	case v.Kind() == reflect.Map && s.each != nil:
		for _, k := range v.MapKeys() {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			s.each.clear(x)
			v.SetMapIndex(k, x)
		}
	case v.Kind() == reflect.Struct:
		s.clearFields(v)
	}
}

func (s *secrets) clearFields(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.clear(v.Field(i))
		case s.drop[name]:
			v.Field(i).SetZero()
		default:
			s.fields[name].clear(v.Field(i))
		}
	}
}

// clearJSON returns raw without the marked fields, or nothing if it cannot be parsed.
func (s *secrets) clearJSON(raw []byte) []byte {
	if s == nil || len(raw) == 0 {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(s.without(v)) != nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

func (s *secrets) without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			below := s.each
			for marked := range s.drop { // encoding/json ignores case in names
				if strings.EqualFold(marked, name) {
					delete(v, name)
				}
			}
			for field, f := range s.fields {
				if strings.EqualFold(field, name) {
					below = f
				}
			}
			if _, there := v[name]; there && below != nil {
				v[name] = below.without(x)
			}
		}
	case []any:
		for i := range v {
			if s.each != nil {
				v[i] = s.each.without(v[i])
			}
		}
	}
	return v
}

// withoutSecrets returns o in the form that a watch delivers.
func withoutSecrets(o api.Object) api.Object {
	if s := kindSecrets[o.Kind]; s != nil {
		o.Spec, o.Assignment, o.Status = s.fields["spec"].clearJSON(o.Spec), s.fields["assignment"].clearJSON(o.Assignment), s.fields["status"].clearJSON(o.Status)
	}
	return o
}
