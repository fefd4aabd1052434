package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// hostile is the attacker's servers: a malicious one that basaltd may reach, and one on
// this machine's loopback, which nothing may reach.
type hostile struct {
	// inside is the port of the latter, on IPv4 and if possible IPv6; closed is a port
	// without a listener.
	inside, closed string
	reached        atomic.Int64 // connections to it
	listeners      []net.Listener
	outside        *http.Server // nil: none
	address        string       // its address

	mu    sync.Mutex // guards what is below
	open  map[string]int
	hooks map[string]int // requests to /hook/NAME
}

func newHostile(own string) (*hostile, error) {
	h := &hostile{open: map[string]int{}, hooks: map[string]int{}}
	four, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.listeners = append(h.listeners, four)
	_, h.inside, _ = net.SplitHostPort(four.Addr().String())
	if six, err := net.Listen("tcp", "[::1]:"+h.inside); err == nil { // IPv6 may be unavailable
		h.listeners = append(h.listeners, six)
	}
	for _, l := range h.listeners {
		go h.accept(l)
	}
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, h.closed, _ = net.SplitHostPort(shut.Addr().String())
	_ = shut.Close()
	if own == "" {
		return h, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		return nil, fmt.Errorf("--own: %w", err)
	}
	h.outside, h.address = &http.Server{Handler: h.handler(), ReadHeaderTimeout: time.Minute}, l.Addr().String()
	go func() { _ = h.outside.Serve(l) }() // until it is closed
	return h, nil
}

// accept answers like a service that an attacker would look for.
func (h *hostile) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		h.reached.Add(1)
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ninside"))
		_ = c.Close()
	}
}

// url returns a URL of the server that basaltd may reach.
func (h *hostile) url(path string) (string, error) {
	if h.outside == nil {
		return "", leftOut("it needs a server that basaltd may fetch from: --own")
	}
	return "http://" + h.address + path, nil
}

const mib = 1 << 20

func (h *hostile) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) {
		disk := make([]byte, mib)
		disk[510], disk[511] = 0x55, 0xaa // boot sector signature
		_, _ = w.Write(disk)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/silent", h.counted(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	mux.HandleFunc("/stops", h.counted(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 100))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	mux.HandleFunc("/endless", h.counted(func(w http.ResponseWriter, _ *http.Request) {
		for block := bytes.Repeat([]byte{1}, 64<<10); ; time.Sleep(20 * time.Millisecond) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	mux.HandleFunc("/hook/{name}", func(_ http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hooks[r.PathValue("name")]++
	})
	return mux
}

// counted counts a request to a path while it lasts.
func (h *hostile) counted(f http.HandlerFunc) http.HandlerFunc {
	note := func(path string, n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.open[path] += n
	}
	return func(w http.ResponseWriter, r *http.Request) {
		note(r.URL.Path, 1)
		defer note(r.URL.Path, -1)
		f(w, r)
	}
}

// lasting returns how many requests to a path are running.
func (h *hostile) lasting(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[path]
}

// heard returns how many requests a webhook's name has received.
func (h *hostile) heard(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hooks[name]
}

// untouched returns an error if the server that nothing may reach was reached.
func (h *hostile) untouched() error {
	if n := h.reached.Swap(0); n > 0 {
		return fmt.Errorf("%d connections reached a service on the loopback interface", n)
	}
	return nil
}

func (h *hostile) close() {
	for _, l := range h.listeners {
		_ = l.Close()
	}
	if h.outside != nil {
		_ = h.outside.Close() // with all connections
	}
}
