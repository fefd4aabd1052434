// Package debugserver serves a daemon's profiles (net/http/pprof) to the administrator
// of the machine that it runs on. It is off unless an address is given, and it refuses
// an address that other machines could reach: a profile shows what a daemon is working
// on, and creating one costs processor time.
package debugserver

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"time"
)

// Flag is the name of the flag for the address in every daemon.
const Flag = "debug-listen"

// Usage is the flag's help text.
const Usage = "serve profiles (/debug/pprof/) on unix:/PATH, or on HOST:PORT with a loopback address; empty: nothing listens"

const unixPrefix = "unix:"

// Server serves the profiles of this process. A nil Server serves nothing and may be
// closed.
type Server struct {
	listener net.Listener
	http     http.Server
	done     chan struct{} // closed when the HTTP server has returned
}

// Start listens on the address and serves until Close. For an empty address, the flag's
// default, it returns nil and does not listen.
func Start(address string, log *slog.Logger) (*Server, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := listen(address)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", Flag, address, err)
	}
	// ReadHeaderTimeout only: a CPU profile or a trace is written for as long as
	// the request asks.
	s := &Server{listener: listener, http: http.Server{Handler: handler(), ReadHeaderTimeout: 10 * time.Second}, done: make(chan struct{})}
	log.Info("serving profiles", "address", s.Address())
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("serving profiles ended", "error", err)
		}
	}()
	return s, nil
}

// Address returns the address that s listens on, in the form that Start accepts.
func (s *Server) Address() string {
	if a := s.listener.Addr(); a.Network() == "unix" {
		return unixPrefix + a.String()
	}
	return s.listener.Addr().String()
}

// Close aborts running requests, stops listening and removes a Unix socket.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	err := s.http.Close()
	<-s.done
	return err
}

// handler returns the handlers of net/http/pprof on a separate mux. Importing that
// package also registers them in http.DefaultServeMux, which no server uses.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func listen(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		return listenUnix(path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("want unix:/PATH or HOST:PORT: %w", err)
	}
	// A name could be resolved to another machine's address, so only addresses count.
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("host is %q, want a loopback address such as 127.0.0.1, or unix:/PATH", host)
	}
	return net.Listen("tcp", address)
}

// listenUnix listens on a socket that only this process's user may connect to. It
// replaces a socket on which no process listens any more.
func listenUnix(path string) (net.Listener, error) {
	if !strings.HasPrefix(path, "/") { // also refuses @NAME, an abstract socket, which has no permissions
		return nil, fmt.Errorf("socket path is %q, want an absolute path", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(errors.New("another process listens on this socket"), c.Close())
	}
	switch st, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case st.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("the file exists and is not a socket")
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
