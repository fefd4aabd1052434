package api

import (
	"encoding/json"
	"net/http"
)

// ProblemType is the media type of errors in responses (RFC 9457).
const ProblemType = "application/problem+json"

var titles = map[Code]string{
	CodeInvalid: "Invalid request", CodeUnauthenticated: "Not authenticated", CodeForbidden: "Forbidden", CodeNotFound: "Not found",
	CodeExists: "Already exists", CodeConflict: "Conflict", CodePrecondition: "Precondition failed", CodeInUse: "In use", CodeState: "Wrong state", CodeTooLarge: "Too large", CodeMediaType: "Unsupported media type",
	CodeRateLimited: "Too many requests", CodeNoCapacity: "No capacity", CodeQuota: "Quota exceeded", CodeUnavailable: "Unavailable",
	CodeDiskFull: "Disk full", CodeInternal: "Internal error",
}

// Problem returns the problem document of the error. Its type is the URL of the section
// about the code in the API's own documentation.
func (e *Error) Problem() Problem {
	p := Problem{Type: "/docs#error-" + string(e.Code), Title: titles[e.Code], Status: int64(e.Code.HTTPStatus()),
		Detail: e.Message, Code: e.Code, Hint: e.Hint, Cause: e.Cause}
	if e.Field == "" {
		return p
	}
	for _, f := range append([]*Error{e}, e.Others...) {
		p.Errors = append(p.Errors, FieldProblem{Field: f.Field, Detail: f.Message, Hint: f.Hint, Cause: f.Cause})
	}
	return p
}

// AsError returns the error that a problem document describes.
func (p Problem) AsError() *Error {
	e := &Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Cause: p.Cause}
	for i, f := range p.Errors {
		if i == 0 {
			e.Field, e.Message, e.Hint, e.Cause = f.Field, f.Detail, f.Hint, f.Cause
			continue
		}
		e.Others = append(e.Others, &Error{Code: e.Code, Message: f.Detail, Hint: f.Hint, Field: f.Field, Cause: f.Cause})
	}
	return e
}

// WriteProblem writes an error as the response.
func WriteProblem(w http.ResponseWriter, e *Error) error {
	raw, err := json.Marshal(e.Problem())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", ProblemType)
	w.WriteHeader(e.Code.HTTPStatus())
	_, err = w.Write(append(raw, '\n'))
	return err
}
