package libvirt

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// sockets returns both ends of a connection over a unix socket.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

// TestJoinPassesTheEndOn checks that the end of one direction is passed on and
// does not end the other.
func TestJoinPassesTheEndOn(t *testing.T) {
	left, a := sockets(t)
	b, right := sockets(t)
	done := make(chan error, 1)
	go func() { done <- join(context.Background(), a, b) }()
	if _, err := io.WriteString(left, "question"); err != nil {
		t.Fatal(err)
	}
	if err := left.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(right); err != nil || string(got) != "question" {
		t.Fatalf("received %q, %v, want question", got, err)
	}
	if _, err := io.WriteString(right, "answer"); err != nil {
		t.Fatal(err)
	}
	_ = right.Close()
	if got, err := io.ReadAll(left); err != nil || string(got) != "answer" {
		t.Fatalf("received %q, %v, want answer", got, err)
	}
	if err := <-done; err != nil {
		t.Errorf("join: %v", err)
	}
}

// TestJoinEndsWithItsContext checks that join closes both ends of a silent
// stream when its context ends.
func TestJoinEndsWithItsContext(t *testing.T) {
	left, a := sockets(t)
	b, right := net.Pipe() // it does not support CloseWrite
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- join(ctx, a, b) }()
	cancel()
	_ = patience.Receive(t, time.Minute, "join ends", done)
	for _, c := range []net.Conn{left, right} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("read from an end after the context has ended = nil, want an error")
		}
	}
}
