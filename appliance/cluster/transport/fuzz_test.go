package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// FuzzAnswer checks that the answer of another node yields a value, or an error
// that is either meant for users or not an *api.Error at all.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"name":"x"}`))
	f.Add(409, []byte(`{"code":"conflict","message":"no"}`))
	f.Add(500, []byte(`{"code":"internal","message":"/secret"}`))
	f.Add(502, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		var out greeting
		resp := &http.Response{StatusCode: status, Status: "x", Body: io.NopCloser(bytes.NewReader(body))}
		err := readAnswer(nodeB, resp, &out)
		var e *api.Error
		if errors.As(err, &e) && (e.Code == "" || e.Code == api.CodeInternal) {
			t.Errorf("got *api.Error %+v, which is not meant for users", e)
		}
		if status >= 300 && err == nil {
			t.Errorf("response with status %d got no error", status)
		}
	})
}

// FuzzCall checks that for any body of a call either the handler runs or the answer
// is an API error.
func FuzzCall(f *testing.F) {
	f.Add([]byte(`{"name":"x"}`))
	f.Add([]byte(`{"name":`))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		greet := JSON(func(_ context.Context, _ api.NodeID, in greeting) (greeting, error) { return in, nil })
		greet.ServeHTTP(w, httptest.NewRequest("POST", "/hello", bytes.NewReader(body)))
		var out greeting
		err := readAnswer(nodeB, w.Result(), &out)
		if (w.Code == 200) != (err == nil) || (err != nil && api.CodeOf(err) != api.CodeInvalid) {
			t.Errorf("got status %d, error %v", w.Code, err)
		}
	})
}
