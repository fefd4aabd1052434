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

// machine is a node's own socket: what a node says of itself, in order. The first
// line is what it says before it is told to rebuild, the others follow then, the last
// one for ever. A line with a code is the answer to that command instead.
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

// startMachine is the command machine FILE: the CLI speaks to such a node's socket
// from now on, without a key; the server of before is $API.
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

// rebuilt is the command rebuilt N: so often was the node told to rebuild.
func rebuilt(ts *testscript.TestScript, _ bool, args []string) {
	m := ts.Value("machines").(map[string]*machine)["last"]
	m.mu.Lock()
	defer m.mu.Unlock()
	if want, err := strconv.Atoi(args[0]); err != nil || m.rebuilt != want {
		ts.Fatalf("the node was told to rebuild %d times, want %s", m.rebuilt, args[0])
	}
}

// exitCode is the command code N PROGRAM ARGS: the program's exit status is N.
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
