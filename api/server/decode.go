package server

import (
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
		return api.Errorf(api.CodeInvalid, "request body must be JSON").WithHint("Content-Type: application/json")
	}
	raw, err := io.ReadAll(c.Request().Body) // limited by the guard
	if err != nil {
		return fmt.Errorf("read request body: %w", err)
	}
	return decodeStrict(raw, into)
}

// decodeStrict decodes one JSON value. Field names have to be exactly those of
// the type; errors are *api.Error and name the fields.
func decodeStrict(raw []byte, into any) error {
	generic, err := document(raw)
	if err != nil {
		return err
	}
	if err := misfitsOf(generic, reflect.TypeOf(into)); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return badJSON(err)
	}
	return nil
}

func badJSON(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return api.Errorf(api.CodeInvalid, "invalid value: %s", mismatch.Value).At(mismatch.Field).
			WithHint("want %s", typeWords(mismatch.Type))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return api.Errorf(api.CodeInvalid, "invalid JSON at byte %d: %s", syntax.Offset, strings.TrimPrefix(syntax.Error(), "json: "))
	}
	return api.Errorf(api.CodeInvalid, "invalid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
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
