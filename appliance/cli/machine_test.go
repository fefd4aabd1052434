package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/basalt-gpu/basalt/api"
)

// machine serves a node's own socket with prepared states. The first line of a script is the
// state before the rebuild request; each state request after it returns the next line, and the
// last one again and again. A second line with an error code is the response to the rebuild
// request instead.
type machine struct {
	mu      sync.Mutex // guards all below
	states  []json.RawMessage
	next    int
	rebuilt int
}

func (m *machine) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/setup", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, _ = w.Write(m.states[m.next])
		if m.next > 0 {
			m.next = min(m.next+1, len(m.states)-1)
		}
	})
	mux.HandleFunc("POST /v1/setup/rebuild", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		var refused api.Problem
		if err := json.Unmarshal(m.states[1], &refused); err == nil && refused.Code != "" {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(refused.Code.HTTPStatus())
			_, _ = w.Write(m.states[1])
			return
		}
		m.next, m.rebuilt = 1, m.rebuilt+1
		_, _ = w.Write(m.states[1])
	})
	return mux
}

// startMachine implements the script command machine FILE: from then on the CLI connects to
// such a node's socket without a key. The previous server is in $API.
func startMachine(ts *testscript.TestScript, _ bool, args []string) {
	m := &machine{}
	for line := range bytes.Lines([]byte(ts.ReadFile(args[0]))) {
		m.states = append(m.states, json.RawMessage(line))
	}
	l, err := net.Listen("unix", filepath.Join(ts.MkAbs("."), args[0]+".sock"))
	ts.Check(err)
	s := httptest.NewUnstartedServer(m.handler())
	s.Listener = l
	s.Start()
	ts.Defer(s.Close)
	if ts.Getenv("API") == "" {
		ts.Setenv("API", ts.Getenv("BASALT_SERVER"))
	}
	ts.Setenv("BASALT_SERVER", "unix:"+l.Addr().String())
	ts.Setenv("BASALT_TOKEN", "")
	ts.Value("machines").(map[string]*machine)["last"] = m
}

// rebuilt implements the script command rebuilt N: the node has received N rebuild requests.
func rebuilt(ts *testscript.TestScript, _ bool, args []string) {
	m := ts.Value("machines").(map[string]*machine)["last"]
	m.mu.Lock()
	defer m.mu.Unlock()
	if want, err := strconv.Atoi(args[0]); err != nil || m.rebuilt != want {
		ts.Fatalf("node received %d rebuild requests, want %s", m.rebuilt, args[0])
	}
}

// exitCode implements the script command code N PROGRAM ARGS: the program's exit status is N.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exited interface{ ExitCode() int }
	if errors.As(err, &exited) {
		got = exited.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status of %v = %d, want %d", args[1:], got, want)
	}
}
