package scim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// The types of errors (RFC 7644, section 3.12).
const (
	InvalidFilter = "invalidFilter"
	InvalidPath   = "invalidPath"
	InvalidSyntax = "invalidSyntax"
	InvalidValue  = "invalidValue"
	Mutability    = "mutability"
	NoTarget      = "noTarget"
	Uniqueness    = "uniqueness"
)

// Error is an error as a client gets it.
type Error struct {
	Status int    // of HTTP
	Type   string // empty: none of the RFC's fits
	Detail string
}

// Error implements error.
func (e *Error) Error() string { return e.Detail }

// MarshalJSON returns the error as a message.
func (e *Error) MarshalJSON() ([]byte, error) {
	m := map[string]any{"schemas": []string{errorSchema}, "status": strconv.Itoa(e.Status), "detail": e.Detail}
	if e.Type != "" {
		m["scimType"] = e.Type
	}
	return json.Marshal(m)
}

func invalid(typ, format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, typ, fmt.Sprintf(format, args...)}
}
