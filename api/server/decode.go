package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"reflect"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
)

// maxDepth of a request's JSON: ours needs six.
const maxDepth = 32

// strictBinder reads JSON bodies, and nothing but what the schema names.
type strictBinder struct{}

// Bind implements echo.Binder.
func (strictBinder) Bind(into any, c echo.Context) error {
	if mt, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); err != nil || mt != "application/json" {
		return api.Errorf(api.CodeInvalid, "the body has to be JSON").WithHint("Content-Type: application/json")
	}
	raw, err := io.ReadAll(c.Request().Body) // limited by the guard
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	return decodeStrict(raw, into)
}

// decodeStrict decodes one JSON value. Field names have to be exactly those of
// the type; errors are *api.Error and name the field.
func decodeStrict(raw []byte, into any) error {
	if depth(raw) > maxDepth {
		return api.Errorf(api.CodeInvalid, "the JSON is nested deeper than %d", maxDepth)
	}
	var generic any
	if err := json.Unmarshal(raw, &generic); err != nil {
		return badJSON(err)
	}
	if field := unknownField(generic, reflect.TypeOf(into), ""); field != "" {
		return api.Errorf(api.CodeInvalid, "there is no such field").At(field).WithHint("GET /openapi.yaml lists the fields")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(into); err != nil {
		return badJSON(err)
	}
	return nil
}

func badJSON(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return api.Errorf(api.CodeInvalid, "%s is not possible here", mismatch.Value).At(mismatch.Field).
			WithHint("it takes %s", typeWords(mismatch.Type))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return api.Errorf(api.CodeInvalid, "the JSON is broken at byte %d: %s", syntax.Offset, strings.TrimPrefix(syntax.Error(), "json: "))
	}
	return api.Errorf(api.CodeInvalid, "the JSON cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
}

func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// depth is how deep arrays and objects nest, whatever else is wrong.
func depth(raw []byte) int {
	most, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// unknownField is the path of the first field of v that type t does not have.
func unknownField(v any, t reflect.Type, path string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return ""
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			at := strings.TrimPrefix(path+"."+name, ".")
			var sub reflect.Type
			switch t.Kind() {
			case reflect.Struct:
				if sub = fieldType(t, name); sub == nil {
					return at
				}
			case reflect.Map:
				sub = t.Elem()
			default:
				return "" // the decoder says it better
			}
			if f := unknownField(value, sub, at); f != "" {
				return f
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return ""
		}
		for i, value := range v {
			if f := unknownField(value, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); f != "" {
				return f
			}
		}
	}
	return ""
}

func fieldType(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type
		}
	}
	return nil
}
