package deploy

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// served answers each connection to a new socket with the same text.
func served(t *testing.T, words string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10)) // the request
			_, _ = io.WriteString(conn, words)
			_ = conn.Close()
		}
	}()
	return socket
}

func TestAsk(t *testing.T) {
	for words, want := range map[string]string{
		`{"id":"basalt","result":"connected\n","error":null}`:                                             "connected\n",
		`{"id":"echo","method":"echo","params":[]}{"error":null,"id":"basalt","result":["a"]}`:            `["a"]`,
		`{"id":"basalt","result":null,"error":"unknown cluster\n"}`:                                       "error: unknown cluster",
		`{"id":"basalt","result":null,"error":{"details":"no such database","error":"unknown database"}}`: "error: unknown database",
		`{"id":"basalt","result":"` + strings.Repeat("x", maxOutput) + `","error":null}`:                  "error: unexpected EOF",
		`{"id":"other","result":"","error":null}`:                                                         "error: EOF",
		`connected`: "error: invalid character",
	} {
		got, err := appctl(t.Context(), served(t, words), "status")
		if sought, fails := strings.CutPrefix(want, "error: "); fails != (err != nil) || fails && !strings.Contains(err.Error(), sought) || !fails && got != want {
			t.Errorf("appctl with answer %.100s = %q, %v; want %q", words, got, err, want)
		}
	}
	if _, err := appctl(t.Context(), filepath.Join(t.TempDir(), "none"), "status"); err == nil {
		t.Error("appctl of a missing socket = nil, want an error")
	}
}

// TestAskEnds checks that a call of a stopped daemon, which accepts
// connections and does not answer, ends with its context.
func TestAskEnds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1<<10))
		}
		cancel()
	}()
	if _, err := call(ctx, socket, "status"); err == nil {
		t.Error("ask of a server that does not answer = nil, want an error")
	}
}
