package servertest

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// Server is a server that makes its test fail if an operation returns a status that
// openapi.yaml does not declare for it, or a response has an ETag that is not declared.
type Server struct {
	*server.Server

	mu         sync.Mutex        // guards undeclared
	undeclared map[string]string // operation and what it does not declare, and the response
}

// declaring returns s with that check, which is reported when t ends.
func declaring(t testing.TB, s *server.Server) *Server {
	t.Helper()
	d := &Server{Server: s, undeclared: map[string]string{}}
	if _, err := declared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, what := range slices.Sorted(maps.Keys(d.undeclared)) {
			t.Errorf("%s: openapi.yaml does not declare this, response: %s", what, d.undeclared[what])
		}
	})
	return d
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := operationOf(r)
	if o == nil {
		s.Server.ServeHTTP(w, r)
		return
	}
	n := &noted{ResponseWriter: w, status: http.StatusOK}
	defer func() { // interrupted streams panic
		what := fmt.Sprintf("%s answered %d", o.name, n.status)
		if slices.Contains(o.statuses, n.status) {
			if what += " with an ETag"; n.Header().Get("ETag") == "" || slices.Contains(o.tagged, n.status) {
				return
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.undeclared[what] = n.text
	}()
	s.Server.ServeHTTP(n, r)
}

// operation is an operation of openapi.yaml: the elements of its path, in which
// parameters are empty, the statuses that it declares, and those with the header ETag.
type operation struct {
	name, method string
	path         []string
	statuses     []int
	tagged       []int
}

// declared returns all operations, those without parameters first.
var declared = sync.OnceValues(func() ([]operation, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	var all []operation
	for _, path := range doc.Paths.InMatchingOrder() {
		parts := strings.Split(path, "/")
		for i := range parts {
			if strings.HasPrefix(parts[i], "{") {
				parts[i] = ""
			}
		}
		for method, op := range doc.Paths.Find(path).Operations() {
			o := operation{name: op.OperationID, method: method, path: parts[1:]}
			for text, r := range op.Responses.Map() {
				status, err := strconv.Atoi(text)
				if err != nil {
					return nil, fmt.Errorf("openapi.yaml: %s declares the status %q", op.OperationID, text)
				}
				o.statuses = append(o.statuses, status)
				if r.Value.Headers["ETag"] != nil {
					o.tagged = append(o.tagged, status)
				}
			}
			all = append(all, o)
		}
	}
	return all, nil
})

// operationOf returns the operation of a request, or nil.
func operationOf(r *http.Request) *operation {
	all, _ := declared()
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i := range all {
		if o := &all[i]; o.method == r.Method && slices.EqualFunc(o.path, parts, func(want, got string) bool { return want == got || want == "" && got != "" }) {
			return o
		}
	}
	return nil
}

// noted records the status of a response and the beginning of its body.
type noted struct {
	http.ResponseWriter
	status int
	text   string
	begun  bool
}

// WriteHeader implements http.ResponseWriter.
func (n *noted) WriteHeader(status int) {
	if !n.begun {
		n.begun, n.status = true, status
	}
	n.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (n *noted) Write(b []byte) (int, error) {
	n.begun = true
	if n.text == "" {
		n.text = string(b[:min(len(b), 500)])
	}
	return n.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Hijack implements http.Hijacker, for websockets.
func (n *noted) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	n.begun, n.status = true, http.StatusSwitchingProtocols
	return http.NewResponseController(n.ResponseWriter).Hijack()
}
