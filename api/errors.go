package api

import (
	"errors"
	"fmt"
	"net/http"
)

// Code of a domain error: stable, for programs.
type Code string

// The codes, with the HTTP status each is sent with.
const (
	CodeInvalid         Code = "invalid"                // 400
	CodeUnauthenticated Code = "unauthenticated"        // 401
	CodeForbidden       Code = "forbidden"              // 403
	CodeNotFound        Code = "not_found"              // 404
	CodeExists          Code = "already_exists"         // 409
	CodeConflict        Code = "conflict"               // 409: the revision is not the expected one
	CodePrecondition    Code = "precondition_failed"    // 412: the object is not as If-Match says
	CodeInUse           Code = "in_use"                 // 409
	CodeState           Code = "wrong_state"            // 409: not possible in the object's phase
	CodeTooLarge        Code = "too_large"              // 413
	CodeMediaType       Code = "unsupported_media_type" // 415: the body is not of the type that is wanted
	CodeRateLimited     Code = "rate_limited"           // 429
	CodeNoCapacity      Code = "no_capacity"            // 409: fits nowhere
	CodeQuota           Code = "quota_exceeded"         // 409: more than the project or the organization may have
	CodeUnavailable     Code = "unavailable"            // 503: no leader, node away
	CodeDiskFull        Code = "insufficient_disk"      // 507
	CodeInternal        Code = "internal"               // 500
)

var statuses = map[Code]int{
	CodeInvalid: http.StatusBadRequest, CodeUnauthenticated: http.StatusUnauthorized, CodeForbidden: http.StatusForbidden,
	CodeNotFound: http.StatusNotFound, CodeExists: http.StatusConflict, CodeConflict: http.StatusConflict, CodePrecondition: http.StatusPreconditionFailed,
	CodeInUse: http.StatusConflict, CodeState: http.StatusConflict, CodeNoCapacity: http.StatusConflict, CodeQuota: http.StatusConflict,
	CodeTooLarge: http.StatusRequestEntityTooLarge, CodeMediaType: http.StatusUnsupportedMediaType, CodeRateLimited: http.StatusTooManyRequests,
	CodeUnavailable: http.StatusServiceUnavailable, CodeDiskFull: http.StatusInsufficientStorage,
	CodeInternal: http.StatusInternalServerError,
}

// HTTPStatus that carries the code.
func (c Code) HTTPStatus() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Error is what a user may see: a code, a safe message, a hint at what to do,
// and the field at fault as a path ("spec.vgpu.vramBytes").
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Field   string `json:"field,omitempty"`
	// By is who refers to the object (CodeInUse), or has what was asked for
	// (CodeConflict). Stores say it; the API server says it in words to those who may
	// know, and leaves it out.
	By *ObjectRef `json:"by,omitempty"`
	// Others are further fields at fault, each with its message.
	Others []*Error `json:"others,omitempty"`
}

func (e *Error) Error() string {
	s := e.Message
	if e.By != nil {
		s += " by " + e.By.String()
	}
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	for _, o := range e.Others {
		s += "; " + o.Error()
	}
	return s
}

// Errorf makes a domain error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint adds what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At names the field at fault.
func (e *Error) At(field string) *Error {
	e.Field = field
	return e
}

// CodeOf is the code of the domain error in err's chain, else CodeInternal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
