package api

import (
	"errors"
	"fmt"
	"net/http"
)

// Code identifies a domain error. Codes are stable, for programs.
type Code string

// The codes, with the HTTP status that each is sent with.
const (
	CodeInvalid         Code = "invalid"                // 400
	CodeUnauthenticated Code = "unauthenticated"        // 401
	CodeForbidden       Code = "forbidden"              // 403
	CodeNotFound        Code = "not_found"              // 404
	CodeExists          Code = "already_exists"         // 409
	CodeConflict        Code = "conflict"               // 409: the revision is not the expected one
	CodePrecondition    Code = "precondition_failed"    // 412: the object does not match If-Match
	CodeInUse           Code = "in_use"                 // 409
	CodeState           Code = "wrong_state"            // 409: not possible in the object's phase
	CodeTooLarge        Code = "too_large"              // 413
	CodeMediaType       Code = "unsupported_media_type" // 415: the body has the wrong media type
	CodeRateLimited     Code = "rate_limited"           // 429
	CodeNoCapacity      Code = "no_capacity"            // 409: does not fit on any node
	CodeQuota           Code = "quota_exceeded"         // 409: exceeds a quota of the project or the organization
	CodeUnavailable     Code = "unavailable"            // 503: no leader, node unreachable
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

// HTTPStatus returns the HTTP status that the code is sent with.
func (c Code) HTTPStatus() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Error is an error that may be shown to a user: a code, a safe message, a hint about
// what to do, and the path of the invalid field ("spec.vgpu.vramBytes").
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Field   string `json:"field,omitempty"`
	// By is the object that refers to this one (CodeInUse) or holds what was requested
	// (CodeConflict). Stores set it; the API server turns it into text for callers who
	// may read that object, and never sends it.
	By *ObjectRef `json:"by,omitempty"`
	// Detail is what operators read in addition: names of nodes, why each is full.
	Detail string `json:"detail,omitempty"`
	// Cause is the cause that Message is about. Not set: none that programs distinguish.
	Cause Cause `json:"cause,omitempty,omitzero"`
	// Others are further invalid fields, each with its message.
	Others []*Error `json:"others,omitempty"`
}

func (e *Error) Error() string {
	s := e.Message
	if e.Detail != "" {
		s += ": " + e.Detail
	}
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

// Errorf returns a domain error with the code and a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint sets the hint, which says what to do, and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Because sets the cause, and the details about it that only operators read, and returns
// e.
func (e *Error) Because(c Cause, detail string) *Error {
	e.Cause, e.Detail = c, detail
	return e
}

// At sets the path of the invalid field and returns e.
func (e *Error) At(field string) *Error {
	e.Field = field
	return e
}

// CodeOf returns the code of the domain error in err's chain, or CodeInternal if there
// is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
