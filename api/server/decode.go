package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
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
	if err := mediaType(c.Request(), jsonType); err != nil {
		return err
	}
	if c.Request().Header.Get("Content-Type") == "" { // which a form of another site's page can leave out
		return api.Errorf(api.CodeInvalid, "the request has no Content-Type, want %s", jsonType).WithHint("Content-Type: %s", jsonType)
	}
	raw, err := io.ReadAll(c.Request().Body) // limited by the guard
	if err != nil {
		return fmt.Errorf("read request body: %w", err)
	}
	return decodeStrict(raw, into)
}

// Media types of bodies.
const (
	jsonType  = "application/json"
	patchType = "application/merge-patch+json"
)

// mediaType refuses a body that says it is of another type than those that are wanted,
// the first of which is the one to send.
func mediaType(r *http.Request, want ...string) error {
	sent := r.Header.Get("Content-Type")
	if sent == "" {
		return nil
	}
	if mt, _, err := mime.ParseMediaType(sent); err == nil && slices.Contains(want, mt) {
		return nil
	}
	return api.Errorf(api.CodeMediaType, "the body's Content-Type is %.64q, want %s", sent, want[0]).WithHint("Content-Type: %s", want[0])
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
