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

// maxDepth limits the nesting of a request's JSON; valid requests need six levels.
const maxDepth = 32

// strictBinder decodes JSON bodies and refuses fields that the schema does not have.
type strictBinder struct{}

// Bind implements echo.Binder.
func (strictBinder) Bind(into any, c echo.Context) error {
	if err := mediaType(c.Request(), jsonType); err != nil {
		return err
	}
	if c.Request().Header.Get("Content-Type") == "" { // a form on another site's page could omit the header
		return api.Errorf(api.CodeInvalid, "the request has no Content-Type, want %s", jsonType).WithHint("Content-Type: %s", jsonType)
	}
	raw, err := io.ReadAll(c.Request().Body) // limited by guard
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

// mediaType refuses a body with a Content-Type other than those in want; the first is
// the one that the hint suggests.
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

// decodeStrict decodes one JSON value. Field names must match those of the type
// exactly. Errors are *api.Error and name all faulty fields.
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

// depth returns the nesting depth of arrays and objects, also of invalid JSON.
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
