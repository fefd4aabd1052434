package server

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// The marks in openapi.yaml determine what a response contains, whichever handler made it,
// and every change in a watch. They are in operations.gen.go; the schema of a response is
// that of its operation.
//
//   - Fields that are writeOnly are accepted and never returned.
//   - Texts with x-cause are for operators. Other callers get the sentence of the cause that
//     is beside them (api.Cause).

// marks are those below a schema; nil: none.
type marks struct {
	drop   map[string]bool   // properties
	texts  map[string]string // properties for operators, with that of their cause
	fields map[string]*marks // properties with marks further below
	each   *marks            // of an array's items, or an object's other properties
}

var rawType = reflect.TypeFor[json.RawMessage]()

// reader is who a response is for.
type reader bool

const (
	anOperator reader = true
	aTenant    reader = false
)

// readerOf returns who the response to a request is for.
func readerOf(ctx context.Context) reader { return reader(auth.IsOperator(ctx)) }

// clear reduces a value that the caller owns to what the reader may see.
func (s *marks) clear(v reflect.Value, by reader) {
	switch {
	case s == nil:
	case v.Type() == rawType:
		v.SetBytes(s.clearJSON(v.Bytes(), by))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		s.clear(v.Elem(), by)
	case v.Kind() == reflect.Slice && s.each != nil:
		for i := range v.Len() {
			s.each.clear(v.Index(i), by)
		}
	case v.Kind() == reflect.Map && s.each != nil:
		for _, k := range v.MapKeys() {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			s.each.clear(x, by)
			v.SetMapIndex(k, x)
		}
	case v.Kind() == reflect.Struct:
		s.clearFields(v, by)
	}
}

func (s *marks) clearFields(v reflect.Value, by reader) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.clear(v.Field(i), by)
		case s.drop[name]:
			v.Field(i).SetZero()
		case s.texts[name] != "":
			if by == aTenant {
				v.Field(i).SetString(causeField(v, s.texts[name]).Text(v.Field(i).String()))
			}
		default:
			s.fields[name].clear(v.Field(i), by)
		}
	}
}

// causeField returns the cause in the field of a struct with a JSON name.
func causeField(v reflect.Value, name string) api.Cause {
	for i := range v.NumField() {
		if field, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); field == name {
			c, _ := v.Field(i).Interface().(api.Cause)
			return c
		}
	}
	return api.Cause{}
}

// clearJSON returns raw as clear leaves a value, or nothing if it cannot be parsed.
func (s *marks) clearJSON(raw []byte, by reader) []byte {
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
	if e.Encode(s.without(v, by)) != nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

func (s *marks) without(v any, by reader) any {
	switch v := v.(type) {
	case map[string]any:
		if by == aTenant {
			s.tell(v)
		}
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
				v[name] = below.without(x, by)
			}
		}
	case []any:
		for i := range v {
			if s.each != nil {
				v[i] = s.each.without(v[i], by)
			}
		}
	}
	return v
}

// tell replaces the texts of an object by the sentences of their causes.
func (s *marks) tell(v map[string]any) {
	for name, x := range v {
		for text, beside := range s.texts {
			if strings.EqualFold(text, name) {
				was, _ := x.(string)
				var c api.Cause
				_ = json.Unmarshal(api.Encode(v[beside]), &c) // an invalid cause is none
				v[name] = c.Text(was)
			}
		}
	}
}

// delivered returns o in the form that a watch delivers to the reader.
func delivered(o api.Object, by reader) api.Object {
	if s := kindMarks[o.Kind]; s != nil {
		o.Spec, o.Assignment, o.Status = s.fields["spec"].clearJSON(o.Spec, by), s.fields["assignment"].clearJSON(o.Assignment, by), s.fields["status"].clearJSON(o.Status, by)
	}
	return o
}
