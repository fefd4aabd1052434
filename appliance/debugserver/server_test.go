package debugserver

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var quiet = slog.New(slog.DiscardHandler)

func TestNoAddressListensNowhere(t *testing.T) {
	s, err := Start("", quiet)
	if s != nil || err != nil {
		t.Fatalf("Start without an address = %v, %v; want nil, nil", s, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close of a nil Server = %v, want nil", err)
	}
}

func TestRefusedAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		":6060":            `host is ""`,
		"0.0.0.0:6060":     "want a loopback address",
		"[::]:6060":        "want a loopback address",
		"192.0.2.1:6060":   "want a loopback address",
		"localhost:6060":   "want a loopback address",
		"6060":             "want unix:/PATH or HOST:PORT",
		"unix:":            "want an absolute path",
		"unix:debug.sock":  "want an absolute path",
		"unix:@debug":      "want an absolute path",
		"unix:" + file:     "is not a socket",
		"/run/debug.sock":  "want unix:/PATH or HOST:PORT",
		"unix:/none/x/y":   "no such file",
		"127.0.0.1:999999": "invalid port",
	} {
		s, err := Start(address, quiet)
		if err == nil {
			t.Errorf("Start(%q) listens on %s, want an error with %q", address, s.Address(), want)
			_ = s.Close()
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--debug-listen") {
			t.Errorf("Start(%q) = %v, want an error with %q and the flag's name", address, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		s, err := Start(address, quiet)
		if err != nil && strings.HasPrefix(address, "[") {
			t.Logf("IPv6 is not available: %v", err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if got := get(t, http.DefaultClient, "http://"+s.Address()+"/debug/pprof/goroutine?debug=2"); !strings.Contains(got, "debugserver.TestLoopback") {
			t.Errorf("goroutine profile from %s does not contain this test:\n%s", address, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if c, err := net.Dial("tcp", s.Address()); err == nil {
			t.Errorf("a process listens on %s after Close, want none", s.Address())
			_ = c.Close()
		}
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "debug.sock")
	// A killed process has left its socket.
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Start("unix:"+path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode of the socket = %v, %v; want 0600", st.Mode(), err)
	}
	if _, err := Start("unix:"+path, quiet); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("Start on a socket in use = %v, want an error", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	if got := get(t, client, "http://debug/debug/pprof/"); !strings.Contains(got, "heap") {
		t.Errorf("index of the profiles does not list the heap profile:\n%s", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket still exists after Close")
	}
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", url, response.Status, err, body)
	}
	return string(body)
}
